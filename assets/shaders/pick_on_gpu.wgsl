// Draws Bevy's standard material, and notes which instance the pixel under the pointer shows.
#import bevy_pbr::{
    forward_io::{VertexOutput, FragmentOutput},
    mesh_view_bindings::globals,
    pbr_fragment::pbr_input_from_standard_material,
    pbr_functions::{alpha_discard, apply_pbr_lighting, main_pass_post_lighting_processing},
    prepass_utils::prepass_depth,
}

struct Pointer {
    // In physical pixels.
    place: vec2<u32>,
    // The instance to mark.
    marked: u32,
    pad: u32,
}

struct Picked {
    // The last frame in which an instance was under the pointer, and its index.
    frame: u32,
    instance: u32,
}

@group(#{MATERIAL_BIND_GROUP}) @binding(100) var<uniform> pointer: Pointer;
@group(#{MATERIAL_BIND_GROUP}) @binding(101) var<storage, read_write> picked: Picked;

@fragment
fn fragment(
    in: VertexOutput,
    @builtin(front_facing) is_front: bool,
    @location(14) @interpolate(flat) instance: vec2<u32>,
) -> FragmentOutput {
    var pbr_input = pbr_input_from_standard_material(in, is_front);
    var color = pbr_input.material.base_color;
    if instance.y == pointer.marked {
        color = vec4(1.0, 0.45, 0.05, color.a);
    }
    pbr_input.material.base_color = alpha_discard(pbr_input.material, color);
    // A shader that writes to a buffer also runs for what is hidden. The depth prepass knows what
    // is seen.
    let is_seen = in.position.z >= prepass_depth(in.position, 0u);
    if is_seen && all(vec2<u32>(in.position.xy) == pointer.place) {
        picked = Picked(globals.frame_count, instance.y);
    }
    var out: FragmentOutput;
    out.color = main_pass_post_lighting_processing(pbr_input, apply_pbr_lighting(pbr_input));
    return out;
}
