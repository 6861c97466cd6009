#import bevy_pbr::{
    forward_io::{VertexOutput, FragmentOutput},
    mesh_functions,
    pbr_fragment::pbr_input_from_standard_material,
    pbr_functions::{apply_pbr_lighting, main_pass_post_lighting_processing},
}

@group(#{MATERIAL_BIND_GROUP}) @binding(100) var<storage, read> palette: array<vec4<f32>>;

@fragment
fn fragment(
    in: VertexOutput,
    @builtin(front_facing) is_front: bool,
#ifdef GPU_INSTANCES
    // Every set's vertex stage passes this on: the instance's tag, and its index in the set.
    @location(14) @interpolate(flat) instance: vec2<u32>,
#endif
) -> FragmentOutput {
    var pbr_input = pbr_input_from_standard_material(in, is_front);
#ifdef GPU_INSTANCES
    let tag = instance.x;
#else
    // An ordinary mesh with a `MeshTag`, or a set with `InstanceMeshUniforms`.
    let tag = mesh_functions::get_tag(in.instance_index);
#endif
    pbr_input.material.base_color = palette[tag % arrayLength(&palette)];
    var out: FragmentOutput;
    out.color = main_pass_post_lighting_processing(pbr_input, apply_pbr_lighting(pbr_input));
    return out;
}
