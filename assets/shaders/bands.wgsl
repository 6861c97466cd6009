#import bevy_pbr::forward_io::VertexOutput

@group(#{MATERIAL_BIND_GROUP}) @binding(0) var<uniform> low: vec4<f32>;
@group(#{MATERIAL_BIND_GROUP}) @binding(1) var<uniform> high: vec4<f32>;

@fragment
fn fragment(in: VertexOutput) -> @location(0) vec4<f32> {
    let band = smoothstep(-1.5, 1.5, in.world_position.y);
    let light = 0.6 + 0.4 * in.world_normal.y;
    return vec4(mix(low.rgb, high.rgb, band) * light, 1.0);
}
