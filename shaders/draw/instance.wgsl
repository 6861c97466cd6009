// What a vertex stage reads of a set: the survivor's id, its packed instance and its channels.
//
// A material's own vertex shader that imports this module may be used on sets. It may call:
//   load(vertex.instance_index)           the instance, its tag, its data and its index in the set;
//   load_previous(vertex.instance_index)  the same in the previous frame, for motion vectors;
//   position_to_world                     the mesh's space to the world, in the previous frame if
//                                         the instance is;
//   position_to_set, normal_to_set, tangent_to_set, direction_to_set
//                                         the mesh's space to the set's (the entity's own space);
//   bevy_pbr::mesh_functions with SET     the set's space to the world: get_world_from_local(SET),
//                                         get_previous_world_from_local(SET),
//                                         mesh_position_local_to_world (position_to_world is
//                                         exacter far from the set's origin),
//                                         mesh_normal_local_to_world(.., SET),
//                                         mesh_tangent_local_to_world(.., SET).
// It must not pass `instance_index` to `mesh_functions`, nor use skinning, morph targets or
// `get_tag`. If it passes an `instance_index` to one of Bevy's fragment stages, that is SET.
#define_import_path bevy_gpu_culling::draw_instance

#import bevy_gpu_culling::instance::{PackedInstance, rotate, unpack_quat}
#import bevy_gpu_culling::thin::{LEAST_SHARE, threshold_of, thinned_scale}
#import bevy_pbr::mesh_functions::{get_previous_world_from_local, get_world_from_local}
#import bevy_pbr::mesh_view_bindings::view

// The bytes of the entity's MeshUniform (group 2, binding 0), then the fields of this crate.
struct DrawSlot {
    mesh_uniform: array<vec4<f32>, 11>,
    flags: u32,
    // First instance of the region, counted from the start of the page and of the set.
    region_first: u32,
    set_first: u32,
    // Distance from an instance to its copy of the previous frame; 0 if no copy is kept.
    previous_offset: u32,
    // How instances fade (fade.wgsl). The radius is of an instance of scale 1, in the world.
    errors: vec4<f32>,
    distances: vec4<f32>,
    center: vec3<f32>,
    radius: f32,
    // Only with DRAW_IS_THINNED. x: diameter in the world of an instance of scale 1, over the
    // diameter in pixels below which it is thinned out. w: 1 if the view is a camera. Otherwise y
    // is the camera's pixels per world unit at distance 1, and z is 1 if they hold at any distance.
    thin: vec4<f32>,
    // Only with DRAW_HAS_OFFSET: rows of the transform between mesh and instance, of the same in
    // the previous frame, and of its matrix for normals. Behind the first row of the last: its
    // sign.
    instance_from_mesh: mat3x4<f32>,
    previous_instance_from_mesh: mat3x4<f32>,
    instance_from_mesh_normals: mat3x4<f32>,
}

// The index for `bevy_pbr::mesh_functions`: only the MeshUniform of the set's entity is bound.
const SET: u32 = 0u;

const DRAW_HAS_SCALE: u32 = 1u;
const DRAW_RANGE_OF_CENTERS: u32 = 4u;
const DRAW_HAS_OFFSET: u32 = 8u;
// With DRAW_HAS_SCALE: a scale is three numbers.
const DRAW_NON_UNIFORM_SCALE: u32 = 16u;
const DRAW_IS_THINNED: u32 = 32u;
// The draw is colored as early or as late, for debugging.
const DRAW_IS_EARLY: u32 = 64u;
const DRAW_IS_LATE: u32 = 128u;
// From this bit of the flags on: words of data per instance.
const DRAW_DATA_WORDS: u32 = 8u;

@group(2) @binding(20) var<storage, read> slot: DrawSlot;
@group(2) @binding(21) var<storage, read> survivors: array<u32>;
@group(2) @binding(22) var<storage, read> instances: array<PackedInstance>;
@group(2) @binding(23) var<storage, read> scales: array<f32>;
@group(2) @binding(24) var<storage, read> data: array<u32>;

struct Instance {
    position: vec3<f32>,
    // Along the axes of the mesh; equal unless the set has a scale per axis.
    scale: vec3<f32>,
    rotation: vec4<f32>,
    // Index in the set.
    index: u32,
    // Tag, and all data, of which the tag is the first word. What the set does not have is 0.
    tag: u32,
    data: vec4<u32>,
    // Whether it is the instance in the previous frame.
    is_previous: bool,
    // What `position_to_set` scales the instance by besides, as aggregate detail asks (thin.wgsl).
    // It is as in this frame.
    drawn_scale: f32,
}

// `draw_instance` is the built-in instance index.
fn load(draw_instance: u32) -> Instance {
    let id = survivors[draw_instance];
    return load_at(id, id, false);
}

// The instance in the previous frame. If that is not kept or not finite, the instance as it is now.
fn load_previous(draw_instance: u32) -> Instance {
    let id = survivors[draw_instance];
    var at = id + slot.previous_offset;
    let exponents = bitcast<vec3<u32>>(instances[at].position) & vec3<u32>(0x7f800000u);
    if any(exponents == vec3<u32>(0x7f800000u)) {
        at = id;
    }
    return load_at(id, at, true);
}

fn load_at(id: u32, at: u32, is_previous: bool) -> Instance {
    let packed = instances[at];
    let words = data_of(id);
    let index = id - slot.region_first + slot.set_first;
    let rotation = unpack_quat(packed.rotation);
    var drawn_scale = 1.0;
    if (slot.flags & DRAW_IS_THINNED) != 0u {
        drawn_scale = thinned_scale_of(id);
    }
    return Instance(
        packed.position, scale_at(at), rotation, index, words.x, words, is_previous, drawn_scale);
}

fn scale_at(at: u32) -> vec3<f32> {
    var scale = vec3<f32>(1.0);
    if (slot.flags & DRAW_HAS_SCALE) != 0u {
        if (slot.flags & DRAW_NON_UNIFORM_SCALE) != 0u {
            scale = vec3<f32>(scales[at * 3u], scales[at * 3u + 1u], scales[at * 3u + 2u]);
        } else {
            scale = vec3<f32>(scales[at]);
        }
    }
    return scale;
}

// Pixels of one unit of the world, at distance 1 if the view is not orthographic: as in
// src/render/views.rs.
fn pixels_of_unit() -> f32 {
    var height = abs(view.clip_from_view[1].y);
    if view.clip_from_view[3].w == 1.0 {
        let clip = view.clip_from_world;
        height = length(vec3<f32>(clip[0].y, clip[1].y, clip[2].y));
    }
    return 0.5 * view.viewport.w * height;
}

// How much larger or smaller than it is an instance of a set is drawn that is thinned out. It
// measures as `kept_share` of the culling does (visibility.wgsl).
fn thinned_scale_of(id: u32) -> f32 {
    let scale = scale_at(id);
    let packed = instances[id];
    let center = rotate(unpack_quat(packed.rotation), slot.center * scale);
    let in_world = set_to_world(get_world_from_local(SET), packed.position, center);
    var pixels = slot.thin.y;
    var is_parallel = slot.thin.z != 0.0;
    if slot.thin.w != 0.0 {
        pixels = pixels_of_unit();
        is_parallel = view.clip_from_view[3].w == 1.0;
    }
    if pixels <= 0.0 {
        return 1.0;
    }
    let apart = select(distance(in_world, view.lod_view_world_position), 1.0, is_parallel);
    let wide = slot.thin.x * max(max(scale.x, scale.y), scale.z) * pixels / apart;
    return thinned_scale(max(wide * wide, LEAST_SHARE), threshold_of(id - slot.region_first));
}

fn data_of(id: u32) -> vec4<u32> {
    let words = slot.flags >> DRAW_DATA_WORDS;
    let first = id * words;
    var result = vec4<u32>(0u);
    if words > 0u {
        result.x = data[first];
    }
    if words > 1u {
        result.y = data[first + 1u];
    }
    if words > 2u {
        result.z = data[first + 2u];
    }
    if words > 3u {
        result.w = data[first + 3u];
    }
    return result;
}

// A vertex color as the main pass draws it.
fn colored(color: vec4<f32>) -> vec4<f32> {
    if (slot.flags & DRAW_IS_EARLY) != 0u {
        return color * vec4<f32>(0.1, 0.6, 0.2, 1.0);
    }
    if (slot.flags & DRAW_IS_LATE) != 0u {
        return color * vec4<f32>(1.0, 0.3, 0.02, 1.0);
    }
    return color;
}

fn largest_scale(instance: Instance) -> f32 {
    return max(max(instance.scale.x, instance.scale.y), instance.scale.z);
}

// The point `origin + from_origin` of the set's space in the world. The origin goes first, by
// itself: if it is large and the entity's transform cancels it, the small part keeps all its bits.
// The sums have the order in which Bevy composes a GlobalTransform, so that they round alike.
fn set_to_world(
    world_from_set: mat4x4<f32>,
    origin: vec3<f32>,
    from_origin: vec3<f32>,
) -> vec3<f32> {
    let m = world_from_set;
    let at = m[0].xyz * origin.x + m[1].xyz * origin.y + m[2].xyz * origin.z + m[3].xyz;
    return at + (m * vec4<f32>(from_origin, 0.0)).xyz;
}

// From the instance's space, behind the offset, to the set's, seen from the instance's position.
fn turned(instance: Instance, position: vec3<f32>) -> vec3<f32> {
    return rotate(instance.rotation, position * instance.scale);
}

// From the mesh's space to the instance's.
fn position_in_instance(instance: Instance, position: vec3<f32>) -> vec3<f32> {
    var at = position;
    if (slot.flags & DRAW_HAS_OFFSET) != 0u {
        if instance.is_previous {
            at = vec4<f32>(position, 1.0) * slot.previous_instance_from_mesh;
        } else {
            at = vec4<f32>(position, 1.0) * slot.instance_from_mesh;
        }
    }
    return at * instance.drawn_scale;
}

// From the mesh's space to the set's.
fn position_to_set(instance: Instance, position: vec3<f32>) -> vec4<f32> {
    let from_origin = turned(instance, position_in_instance(instance, position));
    return vec4<f32>(from_origin + instance.position, 1.0);
}

// From the mesh's space to the world, in the frame in which the instance is.
fn position_to_world(instance: Instance, position: vec3<f32>) -> vec4<f32> {
    return instance_to_world(instance, position_in_instance(instance, position));
}

// From the instance's space, behind the offset, to the world.
fn instance_to_world(instance: Instance, position: vec3<f32>) -> vec4<f32> {
    var world_from_set = get_world_from_local(SET);
    if instance.is_previous {
        world_from_set = get_previous_world_from_local(SET);
    }
    let from_origin = turned(instance, position);
    return vec4<f32>(set_to_world(world_from_set, instance.position, from_origin), 1.0);
}

// The same for a direction along the surface, such as a tangent. Its length may change.
fn direction_to_set(instance: Instance, direction: vec3<f32>) -> vec3<f32> {
    var along = direction;
    if (slot.flags & DRAW_HAS_OFFSET) != 0u {
        along = vec4<f32>(direction, 0.0) * slot.instance_from_mesh;
    }
    if (slot.flags & DRAW_NON_UNIFORM_SCALE) != 0u {
        along *= instance.scale;
    }
    return rotate(instance.rotation, along);
}

// The same for a normal. Its length may change.
fn normal_to_set(instance: Instance, normal: vec3<f32>) -> vec3<f32> {
    var up = normal;
    if (slot.flags & DRAW_HAS_OFFSET) != 0u {
        up = vec4<f32>(normal, 0.0) * slot.instance_from_mesh_normals;
    }
    if (slot.flags & DRAW_NON_UNIFORM_SCALE) != 0u {
        // Over the scale, times the product of all three: nothing is divided by 0.
        up *= instance.scale.yzx * instance.scale.zxy;
    }
    return rotate(instance.rotation, up);
}

// The same for a tangent and, in w, the handedness of the bitangent.
fn tangent_to_set(instance: Instance, tangent: vec4<f32>) -> vec4<f32> {
    var handedness = tangent.w;
    if (slot.flags & DRAW_HAS_OFFSET) != 0u {
        handedness *= slot.instance_from_mesh_normals[0].w;
    }
    return vec4<f32>(direction_to_set(instance, tangent.xyz), handedness);
}
