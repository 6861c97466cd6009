// Vertex stage of the prepasses and shadow maps: Bevy's prepass.wgsl, plus the transform
// of the instance in its set.
#import bevy_pbr::{
    mesh_functions,
    prepass_io::Vertex,
    view_transformations::position_world_to_clip,
}
#import bevy_gpu_culling::{draw_fade, draw_instance}

// Bevy's prepass_io::VertexOutput, location by location, and two locations more.
struct SetVertexOutput {
    @builtin(position) position: vec4<f32>,
#ifdef VERTEX_UVS_A
    @location(0) uv: vec2<f32>,
#endif
#ifdef VERTEX_UVS_B
    @location(1) uv_b: vec2<f32>,
#endif
#ifdef NORMAL_PREPASS_OR_DEFERRED_PREPASS
    @location(2) world_normal: vec3<f32>,
#ifdef VERTEX_TANGENTS
    @location(3) world_tangent: vec4<f32>,
#endif
#endif
    @location(4) world_position: vec4<f32>,
#ifdef MOTION_VECTOR_PREPASS
    @location(5) previous_world_position: vec4<f32>,
#endif
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    @location(6) unclipped_depth: f32,
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    @location(7) @interpolate(flat) instance_index: u32,
#endif
#ifdef VERTEX_COLORS
    @location(8) color: vec4<f32>,
#endif
#ifdef VISIBILITY_RANGE_DITHER
    @location(9) @interpolate(flat) visibility_range_dither: i32,
#endif
    // The instance's tag, its index in the set, and its data, for fragment stages that want them.
    @location(14) @interpolate(flat) instance: vec2<u32>,
    @location(13) @interpolate(flat) data: vec4<u32>,
}

@vertex
fn vertex(vertex: Vertex) -> SetVertexOutput {
    var out: SetVertexOutput;
    let instance = draw_instance::load(vertex.instance_index);
    let world_from_set = mesh_functions::get_world_from_local(draw_instance::SET);

    out.world_position = draw_instance::position_to_world(instance, vertex.position);
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
        draw_instance::normal_to_set(instance, vertex.normal), draw_instance::SET);
#endif
#ifdef VERTEX_TANGENTS
    let tangent = draw_instance::tangent_to_set(instance, vertex.tangent);
    out.world_tangent = mesh_functions::mesh_tangent_local_to_world(
        world_from_set, tangent, draw_instance::SET);
#endif
#endif
#ifdef VERTEX_COLORS
    out.color = vertex.color;
#endif
#ifdef MOTION_VECTOR_PREPASS
    let previous = draw_instance::load_previous(vertex.instance_index);
    out.previous_world_position = draw_instance::position_to_world(previous, vertex.position);
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    out.instance_index = draw_instance::SET;
#endif
#ifdef VISIBILITY_RANGE_DITHER
    out.visibility_range_dither = draw_fade::dither_level(instance);
#endif
    out.instance = vec2(instance.tag, instance.index);
    out.data = instance.data;
    return out;
}
