// A vertex shader for ordinary meshes, which does not know instances. It draws waves in the mesh's
// space, and a color that depends on the entity's tag.
#import bevy_pbr::{
    mesh_functions,
    forward_io::{Vertex, VertexOutput},
    view_transformations::position_world_to_clip,
}

@vertex
fn vertex(vertex: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let tag = f32(mesh_functions::get_tag(vertex.instance_index) % 8u);
    var position = vertex.position;
    position.x += 0.15 * sin(position.y * 9.0 + tag);
    let world_from_local = mesh_functions::get_world_from_local(vertex.instance_index);
    out.world_position = mesh_functions::mesh_position_local_to_world(world_from_local, vec4(position, 1.0));
    out.world_normal = mesh_functions::mesh_normal_local_to_world(vertex.normal, vertex.instance_index);
    out.position = position_world_to_clip(out.world_position.xyz);
#ifdef VERTEX_UVS_A
    // Transforms back into the mesh's space, which checks the inverse matrix.
    let local = mesh_functions::get_local_from_world(vertex.instance_index) * out.world_position;
    out.uv = local.xy + vertex.uv;
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    out.instance_index = vertex.instance_index;
#endif
    return out;
}
