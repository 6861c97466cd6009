//! Multi-draws: the commands of many rows, gathered next to each other.

use crate::common::{Scene, gpu, kernel, options, random_scene, rng, upload};
use bevy_gpu_culling::cull::{
    Culler, CullingTier, DrawPart, Follower, Gpu, IndirectDraws, MultiDraws, PlainPasses,
    WantedDraws, layout::DrawCommand,
};
use rand::seq::SliceRandom;

/// Reads the commands of a draw, and their number.
fn read(gpu: Gpu<'_>, draws: &IndirectDraws<'_>) -> (Vec<DrawCommand>, u32) {
    let commands = kernel::read(gpu, draws.buffer, draws.offset, draws.max as usize);
    let (buffer, offset) = draws.count;
    (commands, kernel::read::<u32>(gpu, buffer, offset, 1)[0])
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
    let gpu = gpu();
    let mut rng = rng(0x6d);
    let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
    let mut multi = MultiDraws::new(gpu.device).unwrap();
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
                        Some(draws) => draws.draws[0].push(command),
                        None => wanted.push(WantedDraws {
                            batch: part.batch,
                            draws: vec![vec![command]],
                        }),
                    }
                }
                // One of all commands, one of a part of them, one of none.
                for draws in &mut wanted {
                    let all = &draws.draws[0];
                    let some = all[all.len() / 3..all.len() - all.len() / 4].to_vec();
                    draws.draws.extend([some, Vec::new()]);
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
    let followers: &mut [&mut dyn Follower] = &mut [&mut &*multi];
    let frame = culler.prepared().unwrap();
    let recorded = frame.record_with(gpu, &mut encoder, &mut PlainPasses, followers);
    gpu.queue.submit([encoder.finish()]);
    culler.finish(recorded);
    for batch in 0..culler.batch_count() {
        let of_batch = all.iter().filter(|(part, _)| part.batch == batch);
        let of_batch: Vec<_> = of_batch.collect();
        let len = of_batch.len();
        assert!(multi.source(batch, 2).is_none() && multi.source(batch, 3).is_none());
        for (draw, range) in [0..len, len / 3..len - len / 4].into_iter().enumerate() {
            let Some(source) = multi.source(batch, draw) else {
                assert!(range.is_empty());
                continue;
            };
            let (commands, count) = read(gpu, &source);
            let all = of_batch[range].iter().map(|(part, shape)| {
                let (command, _) = culler.read_command(gpu, part, *shape).unwrap();
                command
            });
            // What draws nothing is left out.
            let full: Vec<_> = all.filter(|command| command.instance_count > 0).collect();
            let (found, rest) = commands.split_at(count as usize);
            assert_eq!(found, full);
            assert!(rest.iter().all(|command| command.instance_count == 0));
            *compared += commands.len();
            *drawn += full.len();
        }
    }
}

#[test]
fn nothing_is_gathered_if_nothing_is_wanted() {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, options(CullingTier::Workgroup, true)).unwrap();
    let mut multi = MultiDraws::new(gpu.device).unwrap();
    let scene = random_scene(&mut rng(1), &[100]);
    upload(&mut culler, gpu, &scene);
    culler.prepare(gpu, &scene.frame);
    assert_eq!(multi.plan(gpu, &[]).unwrap(), 0);
    multi.prepare(gpu.device, &culler).unwrap();
    assert!(!(&multi).has_work());
    assert!(multi.source(0, 0).is_none());
    assert!(multi.gpu_bytes() > 0);
}
