// Takes each vertex of a figure from a texture of poses. One file for all passes, because what
// casts a shadow must walk, too.
#import bevy_pbr::{mesh_functions, view_transformations::position_world_to_clip}
#import bevy_gpu_culling::draw_instance::{
    Instance, SET, load, load_previous, normal_to_set, position_to_world,
}
#ifdef PREPASS_PIPELINE
// Shadow maps, and the prepasses of depth, normals and motion vectors.
#import bevy_pbr::prepass_io::{Vertex, VertexOutput}
#import bevy_render::globals::Globals
@group(0) @binding(1) var<uniform> globals: Globals;
#else
#import bevy_pbr::{forward_io::{Vertex, VertexOutput}, mesh_view_bindings::globals}
#endif

// A column per vertex. The upper half has a row of positions per pose, the lower half of normals.
@group(#{MATERIAL_BIND_GROUP}) @binding(100) var poses: texture_2d<f32>;
// Strides per second.
@group(#{MATERIAL_BIND_GROUP}) @binding(101) var<uniform> pace: f32;

// Position (half 0) or normal (half 1) of a vertex: between two poses.
fn posed(instance: Instance, column: f32, half: i32, time: f32) -> vec3<f32> {
    let count = i32(textureDimensions(poses).y) / 2;
    // The low byte of the tag says where in its stride a figure is at time 0.
    let at = fract(f32(instance.tag & 0xffu) / 256.0 + pace * time) * f32(count);
    let before = i32(at) % count;
    let after = (before + 1) % count;
    let x = i32(column);
    return mix(
        textureLoad(poses, vec2(x, half * count + before), 0).xyz,
        textureLoad(poses, vec2(x, half * count + after), 0).xyz,
        fract(at));
}

@vertex
fn vertex(vertex: Vertex) -> VertexOutput {
    var out: VertexOutput;
    let instance = load(vertex.instance_index);
    // The first texture coordinate is the number of the vertex. The built-in index counts from the
    // start of a buffer that several meshes share.
    let column = vertex.uv.x;
    let position = posed(instance, column, 0, globals.time);
    out.world_position = position_to_world(instance, position);
    out.position = position_world_to_clip(out.world_position.xyz);
    out.uv = vertex.uv;
#ifdef PREPASS_PIPELINE
#ifdef UNCLIPPED_DEPTH_ORTHO_EMULATION
    out.unclipped_depth = out.position.z;
    out.position.z = min(out.position.z, 1.0);
#endif
#ifdef NORMAL_PREPASS_OR_DEFERRED_PREPASS
    let normal = posed(instance, column, 1, globals.time);
    out.world_normal = mesh_functions::mesh_normal_local_to_world(normal_to_set(instance, normal), SET);
#endif
#ifdef MOTION_VECTOR_PREPASS
    let before = load_previous(vertex.instance_index);
    let last = posed(before, column, 0, globals.time - globals.delta_time);
    out.previous_world_position = position_to_world(before, last);
#endif
#else
    let normal = posed(instance, column, 1, globals.time);
    out.world_normal = mesh_functions::mesh_normal_local_to_world(normal_to_set(instance, normal), SET);
#endif
#ifdef VERTEX_COLORS
    // Clothes (alpha 0) have a color per figure: the next byte of the tag is a hue.
    let hue = f32((instance.tag >> 8u) & 0xffu) / 256.0;
    let cloth = 0.35 + 0.3 * cos(6.2831853 * (hue - vec3(0.0, 0.333, 0.667)));
    out.color = vec4(select(vertex.color.rgb, cloth, vertex.color.a == 0.0), 1.0);
#endif
#ifdef VERTEX_OUTPUT_INSTANCE_INDEX
    out.instance_index = SET;
#endif
    return out;
}
