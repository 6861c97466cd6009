// A fragment shader for sets and ordinary meshes. It colors an instance by the second word of
// its data, and a mesh by its tag.
#import bevy_pbr::{
    mesh_functions,
    pbr_fragment::pbr_input_from_standard_material,
    pbr_functions::alpha_discard,
}
#ifdef PREPASS_PIPELINE
#import bevy_pbr::{
    prepass_io::{VertexOutput, FragmentOutput},
    pbr_deferred_functions::deferred_output,
}
#else
#import bevy_pbr::{
    forward_io::{VertexOutput, FragmentOutput},
    pbr_functions::{apply_pbr_lighting, main_pass_post_lighting_processing},
}
#endif

@group(#{MATERIAL_BIND_GROUP}) @binding(100) var<uniform> tint: vec4<f32>;

@fragment
fn fragment(
    in: VertexOutput,
    @builtin(front_facing) is_front: bool,
#ifdef GPU_INSTANCES
    @location(13) @interpolate(flat) data: vec4<u32>,
#endif
) -> FragmentOutput {
#ifdef GPU_INSTANCES
    let number = data.y;
#else
    let number = mesh_functions::get_tag(in.instance_index);
#endif
    let own = vec4(0.6 + 0.4 * vec3<f32>(vec3(number, number / 3u, number / 7u) % vec3(5u)) / 4.0, 1.0);
    var pbr_input = pbr_input_from_standard_material(in, is_front);
    pbr_input.material.base_color = alpha_discard(pbr_input.material, pbr_input.material.base_color * tint * own);
#ifdef PREPASS_PIPELINE
    return deferred_output(in, pbr_input);
#else
    var out: FragmentOutput;
    out.color = main_pass_post_lighting_processing(pbr_input, apply_pbr_lighting(pbr_input));
    return out;
#endif
}
