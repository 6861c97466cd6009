//! Compares the WGSL decoding of an instance with `PackedQuat::decode`.

use crate::common::{gpu, rng};
use bevy_gpu_culling::{
    cull::{Gpu, shaders},
    instance::{PackedInstance, PackedQuat},
};
use glam::{Quat, Vec3};
use rand::RngExt;
use wgpu::util::DeviceExt;

const KERNEL: &str = "
@group(0) @binding(0) var<storage, read> bits: array<u32>;
@group(0) @binding(1) var<storage, read_write> decoded: array<vec4<f32>>;

@compute @workgroup_size(64)
fn decode(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&bits)) {
        decoded[id.x] = unpack_quat(bits[id.x]);
    }
}
";

#[test]
fn the_gpu_decodes_the_same_rotations() {
    let Gpu { device, queue } = gpu();
    let mut rng = rng(44);
    let mut bits: Vec<u32> = (0..20_000).map(|_| rng.random()).collect();
    bits.extend([
        PackedQuat::IDENTITY.to_bits(),
        0,
        u32::MAX,
        PackedQuat::encode(Quat::from_xyzw(0.5, 0.5, 0.5, 0.5)).to_bits(),
        PackedQuat::encode(Quat::from_xyzw(-0.5, 0.5, -0.5, 0.5)).to_bits(),
    ]);
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(format!("{}{KERNEL}", shaders::INSTANCE).into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("decode"),
        compilation_options: Default::default(),
        cache: None,
    });
    let input = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: None,
        contents: bytemuck::cast_slice(&bits),
        usage: wgpu::BufferUsages::STORAGE,
    });
    let size = bits.len() as u64 * 16;
    let buffer = |usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    };
    let output = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry {
                binding: 0,
                resource: input.as_entire_binding(),
            },
            wgpu::BindGroupEntry {
                binding: 1,
                resource: output.as_entire_binding(),
            },
        ],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(bits.len().div_ceil(64) as u32, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&output, 0, &staging, 0, size);
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let view = staging.get_mapped_range(..).unwrap();
    let decoded: &[[f32; 4]] = bytemuck::cast_slice(&view);
    for (bits, gpu) in bits.iter().zip(decoded) {
        let cpu = PackedQuat::from_bits(*bits).decode().to_array();
        // Compares squares, because near zero a square root magnifies the last bit of its argument.
        // The largest component of an encoded rotation is at least a half, so it is not near zero.
        for (a, b) in cpu.iter().zip(gpu) {
            assert!(
                (a * a - b * b).abs() <= 1e-6 && a * b >= -1e-6,
                "{bits:#010x}: {cpu:?} on the CPU, {gpu:?} on the GPU"
            );
        }
    }
    let identity = decoded[20_000];
    assert_eq!(identity, [0.0, 0.0, 0.0, 1.0], "the identity must be exact");
}

#[test]
fn a_packed_instance_is_sixteen_bytes() {
    assert_eq!(
        (size_of::<PackedInstance>(), align_of::<PackedInstance>()),
        (16, 4)
    );
    let instance = PackedInstance::new(Vec3::new(1.0, 2.0, 3.0), Quat::IDENTITY);
    let words: [u32; 4] = bytemuck::cast(instance);
    assert_eq!(
        words[..3]
            .iter()
            .map(|word| f32::from_bits(*word))
            .collect::<Vec<_>>(),
        [1.0, 2.0, 3.0]
    );
    assert_eq!(words[3], PackedQuat::IDENTITY.to_bits());
}
