//! Compares the WGSL decoding of an instance with `PackedQuat::decode`.

use crate::common::{
    gpu,
    kernel::{self, Kernel},
    rng,
};
use bevy_gpu_culling::{
    cull::shaders,
    instance::{PackedInstance, PackedQuat},
};
use glam::{Quat, Vec3};
use rand::RngExt;

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
    let gpu = gpu();
    let mut rng = rng(44);
    let mut bits: Vec<u32> = (0..20_000).map(|_| rng.random()).collect();
    bits.extend([
        PackedQuat::IDENTITY.to_bits(),
        0,
        u32::MAX,
        PackedQuat::encode(Quat::from_xyzw(0.5, 0.5, 0.5, 0.5)).to_bits(),
        PackedQuat::encode(Quat::from_xyzw(-0.5, 0.5, -0.5, 0.5)).to_bits(),
    ]);
    let kernel = Kernel::new(
        gpu.device,
        &format!("{}{KERNEL}", shaders::INSTANCE),
        "decode",
    );
    let input = kernel::buffer_of(gpu.device, bytemuck::cast_slice(&bits));
    let output = kernel::buffer(gpu.device, bits.len() as u64 * 16);
    let workgroups = bits.len().div_ceil(64) as u32;
    kernel.run(gpu, &[(0, &input), (1, &output)], workgroups);
    let decoded: Vec<[f32; 4]> = kernel::read(gpu, &output, 0, bits.len());
    for (bits, gpu) in bits.iter().zip(&decoded) {
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
