// Bends plants in the wind. One file for all passes, because what a plant shows to the light and to
// the camera must bend alike.
#import bevy_pbr::{mesh_functions, view_transformations::position_world_to_clip}
#import bevy_gpu_culling::draw_instance::{
    Instance, SET, load, load_previous, normal_to_set, position_to_set,
}
#ifdef PREPASS_PIPELINE
// Shadow maps, and the prepasses of depth, normals and motion vectors.
#import bevy_pbr::prepass_io::{Vertex, VertexOutput}
#import bevy_render::globals::Globals
@group(0) @binding(1) var<uniform> globals: Globals;
#else
#import bevy_pbr::{forward_io::{Vertex, VertexOutput}, mesh_view_bindings::globals}
#endif

struct Wind {
    direction: vec2<f32>,
    // How far a vertex at height 1 moves at most.
    strength: f32,
}

@group(#{MATERIAL_BIND_GROUP}) @binding(100) var<uniform> wind: Wind;

// A vertex of the mesh, bent and in the set's space.
fn bent(instance: Instance, vertex: vec3<f32>, time: f32) -> vec4<f32> {
    // Gusts cross the meadow. Each plant also trembles at its own time.
    let along = dot(instance.position.xz, wind.direction);
    let across = dot(instance.position.zx, wind.direction);
    let gust = 0.5 + 0.35 * sin(0.25 * along + 0.1 * sin(0.3 * across) - 1.5 * time);
    let tremble = 0.15 * sin(5.0 * time + 2.4 * f32(instance.index));
    let lean = wind.strength * (gust + tremble) * vertex.y * vertex.y;
    let place = position_to_set(instance, vertex);
    // What leans is less high.
    let bend = vec3(lean * wind.direction.x, -0.4 * lean * lean / max(vertex.y, 0.1), lean * wind.direction.y);
    return vec4(place.xyz + instance.scale.y * bend, 1.0);
}

@vertex
fn vertex(vertex: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let instance = load(vertex.instance_index);
    out.world_position = mesh_functions::mesh_position_local_to_world(
        mesh_functions::get_world_from_local(SET), bent(instance, vertex.position, globals.time));
    out.position = position_world_to_clip(out.world_position.xyz);
#ifdef PREPASS_PIPELINE
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    out.unclipped_depth = out.position.z;
    out.position.z = min(out.position.z, 1.0);
#endif
#ifdef NORMAL_PREPASS_OR_DEFERRED_PREPASS
    out.world_normal = mesh_functions::mesh_normal_local_to_world(
        normal_to_set(instance, vertex.normal), SET);
#endif
#ifdef MOTION_VECTOR_PREPASS
    let before = load_previous(vertex.instance_index);
    out.previous_world_position = mesh_functions::mesh_position_local_to_world(
        mesh_functions::get_previous_world_from_local(SET),
        bent(before, vertex.position, globals.time - globals.delta_time));
#endif
#else
    out.world_normal = mesh_functions::mesh_normal_local_to_world(
        normal_to_set(instance, vertex.normal), SET);
#endif
#ifdef VERTEX_COLORS
    out.color = vertex.color;
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    out.instance_index = SET;
#endif
    return out;
}
