// Vertex stage of the prepasses and shadow maps: Bevy's prepass.wgsl with the transform of the instance.
#import bevy_pbr::{
    mesh_functions,
    prepass_io::{Vertex, VertexOutput},
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
    let position = draw_instance::position_to_set(instance, vertex.position);

    out.world_position = mesh_functions::mesh_position_local_to_world(world_from_set, position);
    out.position = position_world_to_clip(out.world_position.xyz);
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    out.unclipped_depth = out.position.z;
    out.position.z = min(out.position.z, 1.0);
#endif
#ifdef VERTEX_UVS_A
    out.uv = vertex.uv;
#endif
#ifdef VERTEX_UVS_B
    out.uv_b = vertex.uv_b;
#endif
#ifdef NORMAL_PREPASS_OR_DEFERRED_PREPASS
#ifdef VERTEX_NORMALS
    out.world_normal = mesh_functions::mesh_normal_local_to_world(
        draw_instance::direction_to_set(instance, vertex.normal), SET);
#endif
#ifdef VERTEX_TANGENTS
    let tangent = vec4(draw_instance::direction_to_set(instance, vertex.tangent.xyz), vertex.tangent.w);
    out.world_tangent = mesh_functions::mesh_tangent_local_to_world(world_from_set, tangent, SET);
#endif
#endif
#ifdef VERTEX_COLORS
    out.color = vertex.color;
#endif
#ifdef MOTION_VECTOR_PREPASS
    // The entity's motion; the instances have not moved within the set.
    out.previous_world_position = mesh_functions::mesh_position_local_to_world(
        mesh_functions::get_previous_world_from_local(SET), position);
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    out.instance_index = SET;
#endif
#ifdef VISIBILITY_RANGE_DITHER
    out.visibility_range_dither = mesh_functions::get_visibility_range_dither_level(SET, world_from_set[3]);
#endif
    return out;
}
