// Vertex stage of the main passes: Bevy's mesh.wgsl with one more transform, that of the instance in its set.
#import bevy_pbr::{
    mesh_functions,
    forward_io::{Vertex, VertexOutput},
    view_transformations::position_world_to_clip,
}
#import bevy_gpu_culling::draw_instance

// The set's MeshUniform is the only one that is bound.
const SET: u32 = 0u;

@vertex
fn vertex(vertex: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let instance = draw_instance::load(vertex.instance_index);
    let world_from_set = mesh_functions::get_world_from_local(SET);

#ifdef VERTEX_NORMALS
    out.world_normal = mesh_functions::mesh_normal_local_to_world(
        draw_instance::direction_to_set(instance, vertex.normal), SET);
#endif
#ifdef VERTEX_POSITIONS
    out.world_position = mesh_functions::mesh_position_local_to_world(
        world_from_set, draw_instance::position_to_set(instance, vertex.position));
    out.position = position_world_to_clip(out.world_position.xyz);
#endif
#ifdef VERTEX_UVS_A
    out.uv = vertex.uv;
#endif
#ifdef VERTEX_UVS_B
    out.uv_b = vertex.uv_b;
#endif
#ifdef VERTEX_TANGENTS
    let tangent = vec4(draw_instance::direction_to_set(instance, vertex.tangent.xyz), vertex.tangent.w);
    out.world_tangent = mesh_functions::mesh_tangent_local_to_world(world_from_set, tangent, SET);
#endif
#ifdef VERTEX_COLORS
    out.color = vertex.color;
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    // Fragment stages look up the entity's flags, material slot and lightmap with it.
    out.instance_index = SET;
#endif
#ifdef VISIBILITY_RANGE_DITHER
    out.visibility_range_dither = mesh_functions::get_visibility_range_dither_level(SET, world_from_set[3]);
#endif
    return out;
}
