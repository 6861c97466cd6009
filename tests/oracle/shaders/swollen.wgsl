// A vertex shader for sets and ordinary meshes. It moves vertices along their normals.
#import bevy_pbr::{
    mesh_functions,
    forward_io::{Vertex, VertexOutput},
    view_transformations::position_world_to_clip,
}
#ifdef GPU_INSTANCES
#import bevy_gpu_culling::draw_instance::{load, normal_to_set, position_to_set, SET}
#endif

@vertex
fn vertex(vertex: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let swollen = vertex.position + 0.1 * vertex.normal;
#ifdef GPU_INSTANCES
    let instance = load(vertex.instance_index);
    let entity = SET;
    let position = position_to_set(instance, swollen);
    let normal = normal_to_set(instance, vertex.normal);
#else
    let entity = vertex.instance_index;
    let position = vec4(swollen, 1.0);
    let normal = vertex.normal;
#endif
    let world_from_local = mesh_functions::get_world_from_local(entity);
    out.world_position = mesh_functions::mesh_position_local_to_world(world_from_local, position);
    out.world_normal = mesh_functions::mesh_normal_local_to_world(normal, entity);
    out.position = position_world_to_clip(out.world_position.xyz);
#ifdef VERTEX_UVS_A
    out.uv = vertex.uv;
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    out.instance_index = entity;
#endif
    return out;
}
