//! Multi-draws: the commands of many rows, gathered next to each other.
#![cfg(feature = "study")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use bevy_gpu_culling::cull::{
    Culler, CullingTier, DrawPart, Follower, Gpu, IndirectDraws, MultiDraws, PlainPasses,
    WantedDraws, layout::DrawCommand,
};
use common::{Scene, gpu, options, random_scene, rng, upload};
use rand::seq::SliceRandom;

/// Reads the commands of a draw.
fn read(Gpu { device, queue }: Gpu<'_>, draws: &IndirectDraws<'_>) -> (Vec<DrawCommand>, u32) {
    let size = u64::from(draws.max) * size_of::<DrawCommand>() as u64;
    let copy = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(draws.buffer, draws.offset, &copy, 0, size);
    queue.submit([encoder.finish()]);
    copy.slice(..)
        .map_async(wgpu::MapMode::Read, |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let commands = bytemuck::cast_slice(&copy.slice(..).get_mapped_range().unwrap()).to_vec();
    (commands, (draws.count.1 / 4) as u32)
}

/// All draws of a frame, with the index of their shape, view after view.
fn parts(culler: &Culler, scene: &Scene) -> Vec<(DrawPart, usize)> {
    let mut all = Vec::new();
    for (index, request) in scene.frame.requests.iter().enumerate() {
        for (place, view) in request.views.iter().enumerate() {
            for part in culler.draw_parts(index, place) {
                let shapes = 0..=request.more.len();
                all.extend(shapes.map(|shape| (*view, *part, shape)));
            }
        }
    }
    all.sort_by_key(|(view, ..)| *view);
    all.into_iter()
        .map(|(_, part, shape)| (part, shape))
        .collect()
}

#[test]
fn gathered_commands_are_those_that_are_wanted() {
    let (device, queue, _) = gpu();
    let gpu = Gpu::new(&device, &queue);
    let mut rng = rng(0x6d);
    let (mut culler, _) = Culler::new(&device, options(CullingTier::Workgroup, true)).unwrap();
    let mut multi = MultiDraws::new(&device).unwrap();
    let (mut compared, mut drawn) = (0, 0);
    for case in 0..8 {
        let lengths: &[usize] = match case % 3 {
            0 => &[3000, 40, 700, 1, 90],
            1 => &[9000, 2000, 5],
            _ => &[10; 70],
        };
        if case == 4 {
            culler.limit_pages(4096, 10, 3);
        }
        let scene = random_scene(&mut rng, lengths);
        // The second frame has the same plan, and another size of the set changes nothing.
        for frame in 0..2 {
            upload(&mut culler, gpu, &scene);
            let version = culler.plan_version();
            culler.prepare(gpu, &scene.frame);
            assert_eq!(culler.plan_version() == version, frame == 1);
            let mut all = parts(&culler, &scene);
            if frame == 0 {
                all.shuffle(&mut rng);
                let mut wanted: Vec<WantedDraws> = Vec::new();
                for (part, shape) in &all {
                    let command = culler.command_of(part, *shape).unwrap();
                    match wanted.iter_mut().find(|draws| draws.batch == part.batch) {
                        Some(draws) => draws.commands.push(command),
                        None => wanted.push(WantedDraws {
                            batch: part.batch,
                            commands: vec![command],
                        }),
                    }
                }
                multi.plan(gpu, &wanted).unwrap();
                compare(
                    &mut culler,
                    &mut multi,
                    gpu,
                    &all,
                    [&mut compared, &mut drawn],
                );
            }
        }
    }
    assert!(compared > 500 && drawn > 100, "{compared} {drawn}");
}

/// Records the frame that is prepared, and compares the commands of each batch.
fn compare(
    culler: &mut Culler,
    multi: &mut MultiDraws,
    gpu: Gpu<'_>,
    all: &[(DrawPart, usize)],
    [compared, drawn]: [&mut usize; 2],
) {
    multi.prepare(gpu.device, culler).unwrap();
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let followers: &mut [&mut dyn Follower] = &mut [multi];
    let frame = culler.prepared().unwrap();
    let recorded = frame.record_with(gpu, &mut encoder, &mut PlainPasses, followers);
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
    for batch in 0..culler.batch_count() {
        let of_batch = all.iter().filter(|(part, _)| part.batch == batch);
        let of_batch: Vec<_> = of_batch.collect();
        let len = of_batch.len() as u32;
        assert!(multi.source(batch, &(0..len + 1)).is_none());
        assert!(multi.source(batch, &(0..0)).is_none());
        // All of them, and a part.
        for range in [0..len, len / 3..len - len / 4] {
            if range.is_empty() {
                continue;
            }
            let (commands, count) = read(gpu, &multi.source(batch, &range).unwrap());
            assert_eq!(count, range.len() as u32);
            let wanted = &of_batch[range.start as usize..range.end as usize];
            for (found, (part, shape)) in commands.iter().zip(wanted) {
                let (command, _) = culler.read_command(gpu, part, *shape).unwrap();
                assert_eq!(*found, command);
                *compared += 1;
                *drawn += usize::from(command.instance_count > 0);
            }
        }
    }
}

#[test]
fn nothing_is_gathered_if_nothing_is_wanted() {
    let (device, queue, _) = gpu();
    let gpu = Gpu::new(&device, &queue);
    let (mut culler, _) = Culler::new(&device, options(CullingTier::Workgroup, true)).unwrap();
    let mut multi = MultiDraws::new(&device).unwrap();
    let scene = random_scene(&mut rng(1), &[100]);
    upload(&mut culler, gpu, &scene);
    culler.prepare(gpu, &scene.frame);
    assert_eq!(multi.plan(gpu, &[]).unwrap(), 0);
    multi.prepare(&device, &culler).unwrap();
    assert!(!multi.has_work());
    assert!(multi.source(0, &(0..1)).is_none());
    assert!(multi.gpu_bytes() > 0);
}
