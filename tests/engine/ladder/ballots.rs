//! `shaders/shared/ballot.wesl` at all subgroup sizes: no adapter has them all.

use crate::common::{gpu, rng};
use bevy_gpu_culling::cull::Gpu;
use rand::RngExt;
use wgpu::{BufferUsages, util::DeviceExt};

/// One thread per lane of 128 counts the bits of its workgroup's ballot.
const ASK: &str = "
@group(0) @binding(0) var<storage, read> ballots: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> answers: array<u32>;

@compute @workgroup_size(128)
fn ask(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let ballot = ballots[group.x];
    answers[group.x * 128u + lane] = ballot_before(ballot, lane) | (ballot_count(ballot) << 16u);
}
";

#[test]
fn ballots_are_counted_before_every_lane() {
    let Gpu { device, queue } = gpu();
    let mut rng = rng(128);
    let mut ballots = vec![
        0,
        u128::MAX,
        1,
        1 << 127,
        u128::from(u32::MAX),
        u128::MAX << 32,
    ];
    ballots.extend((0..58).map(|_| rng.random::<u128>()));
    // The adapter may lack subgroups.
    let file = include_str!("../../../shaders/shared/ballot.wesl");
    let counting = file.split("// ----").next().unwrap();
    let source = [counting, ASK].concat();
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(source.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("ask"),
        compilation_options: Default::default(),
        cache: None,
    });
    // The first component holds the lowest lanes, as in the bytes of a little-endian u128.
    let bytes: Vec<u8> = ballots
        .iter()
        .flat_map(|ballot| ballot.to_le_bytes())
        .collect();
    let usage = BufferUsages::STORAGE;
    let input = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: None,
        contents: &bytes,
        usage,
    });
    let size = ballots.len() as u64 * 512;
    let buffer = |usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    };
    let answers = buffer(BufferUsages::STORAGE | BufferUsages::COPY_SRC);
    let staging = buffer(BufferUsages::COPY_DST | BufferUsages::MAP_READ);
    let entries = [(0, &input), (1, &answers)].map(|(binding, buffer)| wgpu::BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    });
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &bind_group, &[]);
    pass.dispatch_workgroups(ballots.len() as u32, 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&answers, 0, &staging, 0, size);
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let answers: Vec<u32> = bytemuck::pod_collect_to_vec(&staging.get_mapped_range(..).unwrap());
    for (ballot, answers) in ballots.iter().zip(answers.chunks(128)) {
        for (lane, answer) in answers.iter().enumerate() {
            let before = (ballot & ((1 << lane) - 1)).count_ones();
            assert_eq!(
                *answer,
                before | (ballot.count_ones() << 16),
                "lane {lane} of {ballot:#x}"
            );
        }
    }
}
