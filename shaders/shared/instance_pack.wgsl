// Encoding of a packed instance, for compute passes that write instances. The twins are
// `PackedInstance::new` and `PackedQuat::encode` (src/instance). Join it with instance.wgsl, whose
// decoding it calls.

import package::shared::instance::{QUAT_STEP, unpack_quat};

struct PackedInstance {
    // In the set's space.
    position: vec3<f32>,
    rotation: u32,
}

struct UnpackedInstance {
    position: vec3<f32>,
    // x, y, z, w.
    rotation: vec4<f32>,
}

// No rotation.
const QUAT_IDENTITY: u32 = 0xdff7fdffu;

// A rotation of any length, as x, y, z, w. A quaternion without a direction (zero or not finite)
// becomes no rotation.
fn pack(position: vec3<f32>, rotation: vec4<f32>) -> PackedInstance {
    return PackedInstance(position, pack_quat(rotation));
}

fn unpack(instance: PackedInstance) -> UnpackedInstance {
    return UnpackedInstance(instance.position, unpack_quat(instance.rotation));
}

// An instance that no view keeps: its position is not a number. A block of 1,024 hidden instances
// costs almost nothing.
fn hidden() -> PackedInstance {
    // A variable, because constants must be finite.
    var bits = vec3<u32>(0x7fc00000u);
    return PackedInstance(bitcast<vec3<f32>>(bits), QUAT_IDENTITY);
}

fn pack_quat(q: vec4<f32>) -> u32 {
    let exponents = bitcast<vec4<u32>>(q) & vec4<u32>(0x7f800000u);
    let size = abs(q);
    // The first of equal components, so that q and -q choose the same one.
    var largest = 0u;
    var pivot = q.x;
    if (size.y > abs(pivot)) { largest = 1u; pivot = q.y; }
    if (size.z > abs(pivot)) { largest = 2u; pivot = q.z; }
    if (size.w > abs(pivot)) { largest = 3u; pivot = q.w; }
    if (pivot == 0.0 || any(exponents == vec4<u32>(0x7f800000u))) {
        return QUAT_IDENTITY;
    }
    // Division by the signed pivot makes it +1: nothing overflows at any length, and q and -q
    // agree.
    let scaled = q / pivot;
    let length = sqrt(dot(scaled, scaled));
    var others = scaled.xyz;
    switch largest {
        case 0u: { others = scaled.yzw; }
        case 1u: { others = scaled.xzw; }
        case 2u: { others = scaled.xyw; }
        default: {}
    }
    let steps = others / length / QUAT_STEP;
    // Halves away from zero.
    let half = select(vec3<f32>(-0.5), vec3<f32>(0.5), steps >= vec3<f32>(0.0));
    let rounded = vec3<i32>(steps + half);
    let codes = vec3<u32>(clamp(rounded, vec3<i32>(-511), vec3<i32>(511)) + 511);
    return (largest << 30u) | (codes.z << 20u) | (codes.y << 10u) | codes.x;
}
