// A fragment shader that calls Bevy's `get_tag`.
#import bevy_pbr::{
    forward_io::{VertexOutput, FragmentOutput},
    mesh_functions,
    pbr_fragment::pbr_input_from_standard_material,
    pbr_functions::{apply_pbr_lighting, main_pass_post_lighting_processing},
}

@fragment
fn fragment(in: VertexOutput, @builtin(front_facing) is_front: bool) -> FragmentOutput {
    var pbr_input = pbr_input_from_standard_material(in, is_front);
    let tag = mesh_functions::get_tag(in.instance_index);
    pbr_input.material.base_color = vec4(vec3<f32>(vec3(tag, tag / 3u, tag / 7u) % vec3(5u)) / 4.0, 1.0);
    var out: FragmentOutput;
    out.color = main_pass_post_lighting_processing(pbr_input, apply_pbr_lighting(pbr_input));
    return out;
}
