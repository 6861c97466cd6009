// Colors that depend on the texture coordinates.
#import bevy_pbr::forward_io::VertexOutput

@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    return vec4(fract(in.uv * 2.0), 0.5 + 0.5 * in.world_normal.y, 1.0);
}
