// A vertex shader for sets and ordinary meshes. It moves vertices along their normals, as far as
// the last word of the instance's data or the mesh's tag says.
#import bevy_pbr::{
    mesh_functions,
    forward_io::{Vertex, VertexOutput},
    view_transformations::position_world_to_clip,
}
#ifdef GPU_INSTANCES
#import bevy_gpu_culling::draw_instance::{load, normal_to_set, position_to_world, SET}
#endif

fn swell(vertex: Vertex, number: u32) -> vec3<f32> {
    return vertex.position + 0.04 * f32(number % 4u) * vertex.normal;
}

@vertex
fn vertex(vertex: Vertex) -> VertexOutput {
    var out: VertexOutput;
#ifdef GPU_INSTANCES
    let instance = load(vertex.instance_index);
    let swollen = swell(vertex, instance.data.w);
    let entity = SET;
    out.world_position = position_to_world(instance, swollen);
    let normal = normal_to_set(instance, vertex.normal);
#else
    let entity = vertex.instance_index;
    let swollen = swell(vertex, mesh_functions::get_tag(entity));
    out.world_position = mesh_functions::mesh_position_local_to_world(
        mesh_functions::get_world_from_local(entity), vec4(swollen, 1.0));
    let normal = vertex.normal;
#endif
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
