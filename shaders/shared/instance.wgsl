// Decoding of a packed instance; the twin is `PackedQuat::decode` (src/instance/quat.rs).

import package::shared::layout::PackedInstance;

// 1/sqrt(2) divided by the 511 steps on each side of zero.
const QUAT_STEP: f32 = 0.0013837706;

// The rotation as x, y, z, w. Smallest three: bits 31..30 name the largest component, three codes
// of 10 bits hold the others.
fn unpack_quat(bits: u32) -> vec4<f32> {
    let codes = vec3<u32>(bits, bits >> 10u, bits >> 20u) & vec3<u32>(1023u);
    // Subtracted as integers: a fused multiply-add would leave a remainder of zero.
    let v = vec3<f32>(vec3<i32>(codes) - 511) * QUAT_STEP;
    let largest = sqrt(max(0.0, 1.0 - dot(v, v)));
    switch bits >> 30u {
        case 0u: { return vec4<f32>(largest, v.x, v.y, v.z); }
        case 1u: { return vec4<f32>(v.x, largest, v.y, v.z); }
        case 2u: { return vec4<f32>(v.x, v.y, largest, v.z); }
        default: { return vec4<f32>(v.x, v.y, v.z, largest); }
    }
}

// `v` rotated by the quaternion `q`.
fn rotate(q: vec4<f32>, v: vec3<f32>) -> vec3<f32> {
    let t = 2.0 * cross(q.xyz, v);
    return v + q.w * t + cross(q.xyz, t);
}

// ---- How kernels read an instance of 16 bytes: the constant `INSTANCE_PACKED`. Other WGSL with
// the same declarations can replace it and read another encoding (`CompactorOptions::encoding`);
// the ladder benchmark has two (benches/common/encoding).

@group(0) @binding(3) var<storage, read> instances: array<PackedInstance>;

alias Instance = PackedInstance;

// Instance `at`, counted from the start of the page. It has a field `position`.
fn load_instance(at: u32) -> Instance {
    return instances[at];
}

// Whether `instance_scale` is always 1.
const INSTANCE_IS_RIGID: bool = true;

// Scale that the encoding itself holds, besides the optional channel.
fn instance_scale(instance: Instance) -> f32 {
    return 1.0;
}

// `v` rotated as the instance is.
fn instance_turn(instance: Instance, v: vec3<f32>) -> vec3<f32> {
    return rotate(unpack_quat(instance.rotation), v);
}
