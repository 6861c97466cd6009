#import bevy_pbr::forward_io::VertexOutput

@group(#{MATERIAL_BIND_GROUP}) @binding(0) var<uniform> color: vec4<f32>;

@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    let stripe = step(0.5, fract(in.world_position.y * 2.0));
    return vec4(color.rgb * (0.4 + 0.6 * stripe) * (0.5 + 0.5 * in.world_normal.y), 1.0);
}
