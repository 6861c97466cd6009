// The left half shows normals. The right half shows motion vectors and depth.
#import bevy_pbr::{forward_io::VertexOutput, prepass_utils}

@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
#ifdef NORMAL_PREPASS
#ifdef MOTION_VECTOR_PREPASS
    let normal = prepass_utils::prepass_normal(in.position, 0u);
    let motion = prepass_utils::prepass_motion_vector(in.position, 0u);
    let depth = prepass_utils::prepass_depth(in.position, 0u);
    if in.uv.x < 0.5 {
        return vec4(0.5 * normal + 0.5, 1.0);
    }
    return vec4(0.5 + 10.0 * motion, fract(20.0 * depth), 1.0);
#endif
#endif
    return vec4(1.0, 0.0, 1.0, 1.0);
}
