// Decoding of a packed instance; the twin is `PackedQuat::decode` (src/instance/quat.rs).

// 1/sqrt(2) over the 511 steps on each side of zero.
const QUAT_STEP: f32 = 0.0013837706;

// Smallest three: bits 31..30 name the largest component, three codes of 10 bits hold the others.
fn unpack_quat(bits: u32) -> vec4<f32> {
    let codes = vec3<u32>(bits, bits >> 10u, bits >> 20u) & vec3<u32>(1023u);
    // Subtracted as integers: a fused multiply-add would leave a trace of zero.
    let v = vec3<f32>(vec3<i32>(codes) - 511) * QUAT_STEP;
    let largest = sqrt(max(0.0, 1.0 - dot(v, v)));
    switch bits >> 30u {
        case 0u: { return vec4<f32>(largest, v.x, v.y, v.z); }
        case 1u: { return vec4<f32>(v.x, largest, v.y, v.z); }
        case 2u: { return vec4<f32>(v.x, v.y, largest, v.z); }
        default: { return vec4<f32>(v.x, v.y, v.z, largest); }
    }
}

fn rotate(q: vec4<f32>, v: vec3<f32>) -> vec3<f32> {
    let t = 2.0 * cross(q.xyz, v);
    return v + q.w * t + cross(q.xyz, t);
}
