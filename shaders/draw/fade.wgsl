// How an instance fades, by Bevy's dither levels: -16 is not drawn yet, 0 is drawn whole, 16 is not
// drawn any more. Two levels of detail that fade into each other have levels l - 16 and l, and
// Bevy's dither pattern draws each pixel of exactly one of them.
#define_import_path bevy_gpu_culling::draw_fade

#import bevy_pbr::{mesh_bindings::mesh, mesh_functions, mesh_view_bindings::view}
#import bevy_gpu_culling::draw_instance::{
    DRAW_RANGE_OF_CENTERS, Instance, SET, instance_to_world, largest_scale, pixels_of_unit, slot,
}

#ifdef VISIBILITY_RANGE_DITHER

// A margin that is never reached.
const FOREVER: f32 = 3.4e38;

// The dither level at a distance. Between the first two margins something fades in, between the
// last two it fades out.
//
//     at         x         y         z         w
//     level -16  |  -16..0 |    0    |  0..16  |  16
fn level_between(margins: vec4<f32>, at: f32) -> i32 {
    let is_behind = at >= margins.z;
    let ends = select(margins.xy, margins.zw, is_behind);
    let share = (at - ends.x) / (ends.y - ends.x);
    // A margin without width is a step.
    let level = select(i32(round(share * 16.0)), 16, at >= ends.y);
    return select(-16, 0, is_behind) + clamp(level, 0, 16);
}

// The dither level of an instance of the set.
fn dither_level(instance: Instance) -> i32 {
    let world_from_set = mesh_functions::get_world_from_local(SET);
    let eye = view.lod_view_world_position;
    let center = instance_to_world(instance, slot.center).xyz;
    let origin = (world_from_set * vec4(instance.position, 1.0)).xyz;
    let place = select(origin, center, (slot.flags & DRAW_RANGE_OF_CENTERS) != 0u);
    let in_range = level_between(slot.distances, distance(place, eye));
    // Pixels of one unit at distance 1; at any distance if the view is orthographic.
    let pixels = pixels_of_unit();
    let is_flat = view.clip_from_view[3].w == 1.0;
    let radius = largest_scale(instance) * slot.radius;
    let apart = select(distance(center, eye), 1.0, is_flat) / radius;
    // Errors are seen at the sphere's nearest point, sizes at its center.
    let nearest = apart - select(1.0, 0.0, is_flat);
    let ends = vec2(nearest, select(nearest, apart, slot.errors.z < 0.0)) / pixels;
    var of_levels = 0;
    if slot.radius > 0.0 {
        of_levels = level_between(vec4(slot.errors.xy, FOREVER, FOREVER), ends.x);
        let of_end = level_between(vec4(-FOREVER, -FOREVER, abs(slot.errors.zw)), ends.y);
        of_levels = select(of_levels, of_end, abs(of_end) > abs(of_levels));
    }
    // What the entity's own VisibilityRange says of the whole set, if it has one.
    var of_set = 0;
    if (mesh[SET].flags & 0xffffu) != 0xffffu {
        of_set = mesh_functions::get_visibility_range_dither_level(SET, world_from_set[3]);
    }
    // One pattern: the one that draws least.
    var level = of_levels;
    level = select(level, in_range, abs(in_range) > abs(level));
    return select(level, of_set, abs(of_set) > abs(level));
}

#endif
