// What a view keeps: the test of an instance's bounding sphere, and the test of the bound of a
// whole block or word of 32 instances. The twins are in `reference::vote` and
// `reference::classify`.
//
// `is_visible` is the definition. `center_in_view`, `keeps_center` and `center_in_plane_pairs` are
// the same test with fewer operations, for instances that share one radius, up to rounding.

import package::shared::instance::{instance_scale, instance_turn, load_instance};
import package::shared::layout::{
    BAND_BY_DISTANCE, BAND_BY_SIZE, BAND_IS_THINNED, BAND_OF_CENTERS, BAND_OF_ORIGINS,
    BAND_THINS_BY_SIZE, BLOCK, BOUND_IS_LOOSE, Bound, CHUNK_HAS_SCALE, CHUNK_NON_UNIFORM_SCALE,
    CHUNK_OFF_CENTER, Chunk, DistanceBand, PlanePairs, ViewPlanes, chunk_views,
};
import package::shared::thin::{LEAST_SHARE, THIN_GROWTH, THIN_SHARE, threshold_of, thinned_growth};

// Binding 3 is `instances` (instance.wgsl).
@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read> bounds: array<Bound>;

// The tests use `&` instead of `&&`, so that all eight instances of a thread run the same
// instructions. A comparison with NaN is false, so a sphere with NaN is not visible.
fn plane_keeps(plane: vec4<f32>, sphere: vec4<f32>) -> bool {
    return dot(plane.xyz, sphere.xyz) + plane.w + sphere.w > 0.0;
}

fn sphere_in_view(planes: ViewPlanes, sphere: vec4<f32>) -> bool {
    return plane_keeps(planes.left, sphere) & plane_keeps(planes.right, sphere)
        & plane_keeps(planes.top, sphere) & plane_keeps(planes.bottom, sphere)
        & plane_keeps(planes.near, sphere) & plane_keeps(planes.far, sphere);
}

// A point of the set's space in the world.
fn in_world(chunk: Chunk, point: vec3<f32>) -> vec3<f32> {
    let p = vec4<f32>(point, 1.0);
    return vec3<f32>(dot(chunk.world_x, p), dot(chunk.world_y, p), dot(chunk.world_z, p));
}

// Whether a sphere is within a light's range. In world space the light's sphere is round.
fn sphere_in_reach(planes: ViewPlanes, chunk: Chunk, sphere: vec4<f32>) -> bool {
    let away = in_world(chunk, sphere.xyz) - planes.reach.xyz;
    let reach = planes.reach.w + sphere.w * chunk.world_scale;
    return dot(away, away) <= reach * reach;
}

const BAND_OF_LEVEL: u32 = BAND_BY_DISTANCE | BAND_BY_SIZE;
const BAND_OF_RANGE: u32 = BAND_OF_ORIGINS | BAND_OF_CENTERS;

// Whether a sphere is at a distance of the band's level. The bands of a view's levels compare the
// same two numbers with adjoining limits, so exactly one of them keeps the sphere.
fn sphere_in_level(band: DistanceBand, chunk: Chunk, sphere: vec4<f32>) -> bool {
    let away = in_world(chunk, sphere.xyz) - band.eye;
    let apart = select(1.0, dot(away, away), (band.flags & BAND_BY_DISTANCE) != 0u);
    let size = sphere.w * sphere.w;
    return (apart >= band.low * size) & ((apart < band.high * size) | (band.high < 0.0));
}

// Whether instance `i` of the chunk is at a distance of the band's range.
fn is_in_range(band: DistanceBand, chunk: Chunk, sphere: vec4<f32>, i: u32) -> bool {
    var at = sphere.xyz;
    // Few views have ranges, so the origin is not kept from when the sphere was loaded.
    if (((band.flags & BAND_OF_ORIGINS) != 0u) & ((chunk.flags & CHUNK_OFF_CENTER) != 0u)) {
        at = load_instance(chunk.first_instance + min(i, chunk.instance_count - 1u)).position;
    }
    let away = in_world(chunk, at) - band.eye;
    let apart = dot(away, away);
    return (apart >= band.start) & (apart < band.end);
}

// Whether the planes are the whole test.
fn has_only_planes(planes: ViewPlanes) -> bool {
    return (planes.reach.w < 0.0) & (planes.band.flags == 0u);
}

// What a row tests besides its planes: the range of a light, the distances of a level of detail,
// and a visibility range. `i` is the instance in the chunk.
fn sphere_in_limits(planes: ViewPlanes, chunk: Chunk, sphere: vec4<f32>, i: u32) -> bool {
    var keeps = true;
    if (planes.reach.w >= 0.0) {
        keeps = sphere_in_reach(planes, chunk, sphere);
    }
    return keeps & sphere_in_distances(planes, chunk, sphere, i);
}

// The distances of a level of detail and of a visibility range.
fn sphere_in_distances(planes: ViewPlanes, chunk: Chunk, sphere: vec4<f32>, i: u32) -> bool {
    var keeps = true;
    if ((planes.band.flags & BAND_OF_LEVEL) != 0u) {
        keeps = keeps & sphere_in_level(planes.band, chunk, sphere);
    }
    if ((planes.band.flags & BAND_OF_RANGE) != 0u) {
        keeps = keeps & is_in_range(planes.band, chunk, sphere, i);
    }
    return keeps;
}

// The view widened by a radius: `center_in_view` then equals `sphere_in_view` up to rounding, in
// two thirds of the operations.
fn widened(planes: ViewPlanes, radius: f32) -> ViewPlanes {
    var wide = planes;
    wide.left.w += radius;
    wide.right.w += radius;
    wide.top.w += radius;
    wide.bottom.w += radius;
    wide.near.w += radius;
    wide.far.w += radius;
    return wide;
}

fn along(plane: vec4<f32>, p: vec3<f32>) -> f32 {
    return fma(plane.x, p.x, fma(plane.y, p.y, fma(plane.z, p.z, plane.w)));
}

fn on_side(plane: vec4<f32>, p: vec3<f32>) -> bool {
    return along(plane, p) > 0.0;
}

fn center_in_view(wide: ViewPlanes, p: vec3<f32>) -> bool {
    return on_side(wide.left, p) & on_side(wide.right, p) & on_side(wide.top, p)
        & on_side(wide.bottom, p) & on_side(wide.near, p) & on_side(wide.far, p);
}

// Whether a row of a chunk whose spheres are centered keeps the sphere around `center`. `wide` has
// the planes, widened by the radius.
fn keeps_center(chunk: Chunk, planes: ViewPlanes, wide: ViewPlanes, center: vec3<f32>) -> bool {
    var keeps = center_in_view(wide, center);
    if (!has_only_planes(planes)) {
        keeps = keeps & sphere_in_limits(planes, chunk, vec4<f32>(center, chunk.sphere.w), 0u);
    }
    return keeps;
}

// Plane pairs: three products instead of six (`src/cull/plan/plane_pairs.rs`). They are widened by
// a radius.
fn widened_plane_pairs(pairs: PlanePairs, radius: f32) -> PlanePairs {
    var wide = pairs;
    wide.slopes += vec4<f32>(0.0, radius, 0.0, radius);
    wide.low -= radius;
    wide.high += radius;
    return wide;
}

// `center_in_view` for a view whose planes are paired, in two thirds of the operations, up to
// rounding.
fn center_in_plane_pairs(wide: PlanePairs, p: vec3<f32>) -> bool {
    let depth = along(wide.depth, p);
    return (abs(along(wide.x, p)) < fma(wide.slopes.x, depth, wide.slopes.y))
        & (abs(along(wide.y, p)) < fma(wide.slopes.z, depth, wide.slopes.w))
        & (depth > wide.low) & (depth < wide.high);
}

// The radius of a hidden sphere. No view keeps a sphere with this radius, not even a view whose
// planes keep every other sphere, because it is the lowest number.
const HIDDEN_RADIUS: f32 = -3.40282347e38;

// The scale of the instance at `at`, along the axes of the mesh. `flags` are the chunk's.
fn load_scale(flags: u32, at: u32) -> vec3<f32> {
    var scale = vec3<f32>(1.0);
    if ((flags & CHUNK_HAS_SCALE) != 0u) {
        if ((flags & CHUNK_NON_UNIFORM_SCALE) != 0u) {
            scale = vec3<f32>(scales[at * 3u], scales[at * 3u + 1u], scales[at * 3u + 2u]);
        } else {
            scale = vec3<f32>(scales[at]);
        }
    }
    return scale;
}

// Bounding sphere, in the set's space, of instance `i` of the chunk, clamped to the last instance.
fn load_sphere(chunk: Chunk, i: u32) -> vec4<f32> {
    let at = chunk.first_instance + min(i, chunk.instance_count - 1u);
    let instance = load_instance(at);
    let scale = instance_scale(instance) * load_scale(chunk.flags, at);
    var center = instance.position;
    if ((chunk.flags & CHUNK_OFF_CENTER) != 0u) {
        center += instance_turn(instance, chunk.sphere.xyz * scale);
    }
    // A scale that is not a number, infinite or negative hides the instance. (A NaN in the center
    // already fails the planes.)
    let radius = chunk.sphere.w * max(max(scale.x, scale.y), scale.z);
    // The sign of the scale, not of the radius: a point has radius 0 at every scale.
    let is_allowed = all(scale >= vec3<f32>(0.0)) & (radius < 3e38);
    return vec4<f32>(center, select(HIDDEN_RADIUS, radius, is_allowed));
}

// The share of the instances like this one that a row keeps, if it thins them out.
fn kept_share(band: DistanceBand, chunk: Chunk, sphere: vec4<f32>) -> f32 {
    let away = in_world(chunk, sphere.xyz) - band.eye;
    let apart = select(dot(away, away), 1.0, (band.flags & BAND_THINS_BY_SIZE) != 0u);
    return max(band.thin * (sphere.w * sphere.w) / apart, LEAST_SHARE);
}

// The sphere around a kept instance, which grows about its origin (thin.wgsl). It may also shrink,
// so the sphere reaches as far as the origin does.
fn grown_sphere(chunk: Chunk, sphere: vec4<f32>, share: f32) -> vec4<f32> {
    let growth = thinned_growth(share);
    let aside = length(chunk.sphere.xyz) / chunk.sphere.w;
    let grown = sphere.w * (growth + max(growth - 1.0, 1.0) * aside);
    return vec4<f32>(sphere.xyz, select(sphere.w, grown, share < THIN_SHARE));
}

// `is_visible` in a row that thins instances out.
fn is_kept(chunk: Chunk, planes: ViewPlanes, sphere: vec4<f32>, i: u32) -> bool {
    let share = kept_share(planes.band, chunk, sphere);
    let grown = grown_sphere(chunk, sphere, share);
    var keeps = (threshold_of(i) < share) & sphere_in_view(planes, grown);
    if (planes.reach.w >= 0.0) {
        keeps = keeps & sphere_in_reach(planes, chunk, grown);
    }
    // Levels and ranges are measured as if nothing grew.
    return keeps & sphere_in_distances(planes, chunk, sphere, i);
}

// Whether instance `i` of the chunk, with bounding sphere `sphere`, is visible in the view.
fn is_visible(chunk: Chunk, planes: ViewPlanes, sphere: vec4<f32>, i: u32) -> bool {
    var visible = (i < chunk.instance_count) & sphere_in_view(planes, sphere);
    if (!has_only_planes(planes)) {
        if ((planes.band.flags & BAND_IS_THINNED) != 0u) {
            visible = (i < chunk.instance_count) & is_kept(chunk, planes, sphere, i);
        } else {
            visible = visible & sphere_in_limits(planes, chunk, sphere, i);
        }
    }
    return visible;
}

// States of a block, or of a word of it, in a view.
const OUTSIDE: u32 = 0u;
const PARTIAL: u32 = 1u;
const INSIDE: u32 = 2u;

// The smallest and the largest scale of a block's instances.
struct BoundScales {
    least: f32,
    most: f32,
}

fn is_loose(at: u32) -> bool {
    return (bounds[at].halves & BOUND_IS_LOOSE) != 0u;
}

fn scales_of_block(at: u32) -> BoundScales {
    return BoundScales(bounds[at].least_scale, bounds[at].max_scale);
}

// The squares of the least and the largest distance from the eye of a band that a point within
// `reach` of `center` may have. The factors cover rounding.
fn distances_of_bound(
    chunk: Chunk,
    band: DistanceBand,
    center: vec3<f32>,
    reach: f32,
) -> vec2<f32> {
    let world = in_world(chunk, center);
    let apart = distance(world, band.eye);
    let wide = reach * chunk.world_scale;
    let slack = 1e-5 * (abs(world.x) + abs(world.y) + abs(world.z) + apart + wide);
    let nearest = max(apart - wide - slack, 0.0);
    let farthest = apart + wide + slack;
    return vec2<f32>(nearest * nearest * 0.99999, farthest * farthest * 1.00001);
}

// The state of a bound in a band, if all origins and all spheres' centers are within `reach` of
// `center`.
//
//     eye    |--- band ---|
//      *     |   (  )     |      inside
//      *     | (    )  (  | )    inside, crossed
fn band_state(
    chunk: Chunk,
    band: DistanceBand,
    center: vec3<f32>,
    reach: f32,
    scales: BoundScales,
) -> u32 {
    let distances = distances_of_bound(chunk, band, center, reach);
    var state = INSIDE;
    if ((band.flags & BAND_OF_RANGE) != 0u) {
        if (distances.y < band.start || distances.x >= band.end) {
            return OUTSIDE;
        }
        if (distances.x < band.start || distances.y >= band.end) {
            state = PARTIAL;
        }
    }
    if ((band.flags & BAND_OF_LEVEL) != 0u) {
        let by_distance = (band.flags & BAND_BY_DISTANCE) != 0u;
        let low = select(0.99999, distances.x, by_distance);
        let high = select(1.00001, distances.y, by_distance);
        let small = chunk.sphere.w * scales.least;
        let large = chunk.sphere.w * scales.most;
        let is_limited = band.high >= 0.0;
        if (high < band.low * small * small || (is_limited && low >= band.high * large * large)) {
            return OUTSIDE;
        }
        let is_beyond = low >= band.low * large * large;
        let is_within = !is_limited || high < band.high * small * small;
        if (!(is_beyond && is_within)) {
            state = PARTIAL;
        }
    }
    return state;
}

// The radius of the largest sphere around a kept instance of a bound (`grown_sphere`); 0 if the row
// keeps all of them as large as they are. The share of an instance that is kept falls with the
// square of its distance, so that instances grow to the same size in the view.
fn widest_grown(
    chunk: Chunk,
    band: DistanceBand,
    center: vec3<f32>,
    reach: f32,
    scales: BoundScales,
) -> f32 {
    var apart = 1.0;
    if ((band.flags & BAND_THINS_BY_SIZE) == 0u) {
        apart = distances_of_bound(chunk, band, center, reach).y;
    }
    let small = chunk.sphere.w * scales.least;
    if (band.thin * small * small * 0.99999 >= THIN_SHARE * apart) {
        return 0.0;
    }
    let large = chunk.sphere.w * scales.most;
    let radius = THIN_GROWTH * 1.00001 * max(large, sqrt(apart / band.thin));
    return radius * (1.0 + length(chunk.sphere.xyz) / chunk.sphere.w);
}

// The state of the bound of a block, or of a word of it, in a view. The twin is
// `reference::classify::bound_state`.
fn bound_state(
    chunk: Chunk,
    planes: ViewPlanes,
    center: vec3<f32>,
    radius: f32,
    scales: BoundScales,
) -> u32 {
    if (radius < 0.0) {
        return OUTSIDE;
    }
    let max_scale = scales.most;
    let p = vec4<f32>(center, 1.0);
    let least = min(
        min(
            min(dot(planes.left, p), dot(planes.right, p)),
            min(dot(planes.top, p), dot(planes.bottom, p))),
        min(dot(planes.near, p), dot(planes.far, p)));
    // The instances' spheres are within the bound, widened by the mesh. The slack covers rounding.
    let aside = length(chunk.sphere.xyz) * max_scale;
    var reach = radius + aside + chunk.sphere.w * max_scale;
    var thins = false;
    if ((planes.band.flags & BAND_IS_THINNED) != 0u) {
        let widest = widest_grown(chunk, planes.band, center, radius + aside, scales);
        thins = widest > 0.0;
        reach = max(reach, radius + aside + widest);
    }
    let slack = 1e-5 * (abs(center.x) + abs(center.y) + abs(center.z) + abs(least) + reach);
    if (least + reach + slack <= 0.0) {
        return OUTSIDE;
    }
    if (planes.reach.w >= 0.0) {
        // A light's range is measured in the world. No block is ever inside as a whole.
        let range = planes.reach.w + (reach + slack) * chunk.world_scale;
        if (distance(in_world(chunk, center), planes.reach.xyz) * 0.99999 > range) {
            return OUTSIDE;
        }
    }
    var state = select(PARTIAL, INSIDE, planes.reach.w < 0.0 && least - radius - aside - slack > 0.0);
    if (planes.band.flags != 0u) {
        // The states are in this order: outside, crossed, inside.
        state = min(state, band_state(chunk, planes.band, center, radius + aside, scales));
    }
    if (thins) {
        // Each instance is tested.
        state = min(state, PARTIAL);
    }
    return state;
}

// Instances of a block: the last block of a chunk may not be full.
fn block_len(chunk: Chunk, block: u32) -> u32 {
    return min(chunk.instance_count - block * BLOCK, BLOCK);
}

// The state of the block at place `at` of `bounds` in a row. Not all of a block with gaps is
// inside.
fn block_state(chunk: Chunk, row: u32, at: u32) -> u32 {
    let radius = bounds[at].radius;
    let state = bound_state(
        chunk, chunk_views[row].planes, bounds[at].center, radius, scales_of_block(at));
    return min(state, select(INSIDE, PARTIAL, bounds[at].gaps != 0u));
}

// The bound of a word's 32 instances is packed in 4 bytes beside the block's bound: the center as
// three signed steps of radius / 127 from the block's center, and the radius in the same steps,
// rounded up. It is 0 if no instance can be drawn. The twin is `reference::classify::word_code`.
const WORD_STEPS: f32 = 127.0;

fn word_steps(code: u32) -> vec4<u32> {
    return vec4<u32>(code, code >> 8u, code >> 16u, code >> 24u) & vec4<u32>(255u);
}

fn word_center(center: vec3<f32>, step: f32, steps: vec3<u32>) -> vec3<f32> {
    return center + (vec3<f32>(steps) - 128.0) * step;
}

// Whether the row crosses the block at place `at` of `bounds`.
fn row_crosses_block(chunk: Chunk, row: u32, at: u32) -> bool {
    return block_state(chunk, row, at) == PARTIAL;
}

// The state of a word of a block that the row crosses. `at` is the block's place in `bounds`.
//
//     words of a block      0 1 2 3 4 5 6 7      (32 in truth)
//     one view              . . X X I I I X      . outside, X crossed, I inside
//
// Only crossed words read their instances.
fn word_state(chunk: Chunk, row: u32, at: u32, word: u32) -> u32 {
    if (is_loose(at)) {
        return PARTIAL;
    }
    let step = bounds[at].radius / WORD_STEPS;
    let steps = word_steps(bounds[at].words[word]);
    if (steps.w == 0u) {
        return OUTSIDE;
    }
    let center = word_center(bounds[at].center, step, steps.xyz);
    let radius = f32(steps.w) * step;
    let state = bound_state(
        chunk, chunk_views[row].planes, center, radius, scales_of_block(at));
    return min(state, select(INSIDE, PARTIAL, ((bounds[at].gaps >> word) & 1u) != 0u));
}

// The word whose bits are set for all instances of a block or row of `len` instances.
fn full_word(word: u32, len: u32) -> u32 {
    let bits = clamp(len, word * 32u, word * 32u + 32u) - word * 32u;
    return select(0xffffffffu >> (32u - bits), 0u, bits == 0u);
}

// The word of lane `a`, if the calling lane has word `number`.
@if(near_first)
fn word_of_lane(number: u32, lane: u32, a: u32) -> u32 {
    return subgroupShuffle(number, a);
}

// In set order, lanes have contiguous words.
@if(!near_first)
fn word_of_lane(number: u32, lane: u32, a: u32) -> u32 {
    return number - lane + a;
}

// The vote of one row on the words that it crosses, four at a time, for subgroups of 32 lanes: a
// ballot is a word, and only positions are loaded. Lane w ends up holding the vote on its word of
// the chunk, `number`. `crossed` has one bit per lane, `at` is the lane's instance in the chunk's
// first word.
fn vote_crossed_words(
    chunk: Chunk,
    planes: ViewPlanes,
    crossed: u32,
    at: u32,
    number: u32,
    lane: u32,
) -> u32 {
    let wide = widened(planes, chunk.sphere.w);
    var word = 0u;
    var left = crossed;
    while (left != 0u) {
        // If fewer than four words are left, word `a` is voted on again.
        let a = firstTrailingBit(left);
        left &= left - 1u;
        let b = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let c = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let d = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let pa = load_instance(at + word_of_lane(number, lane, a) * 32u).position;
        let pb = load_instance(at + word_of_lane(number, lane, b) * 32u).position;
        let pc = load_instance(at + word_of_lane(number, lane, c) * 32u).position;
        let pd = load_instance(at + word_of_lane(number, lane, d) * 32u).position;
        word = select(word, subgroupBallot(keeps_center(chunk, planes, wide, pa)).x, lane == a);
        word = select(word, subgroupBallot(keeps_center(chunk, planes, wide, pb)).x, lane == b);
        word = select(word, subgroupBallot(keeps_center(chunk, planes, wide, pc)).x, lane == c);
        word = select(word, subgroupBallot(keeps_center(chunk, planes, wide, pd)).x, lane == d);
    }
    return word;
}
