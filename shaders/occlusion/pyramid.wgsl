// The depth pyramid of a viewport (`DepthPyramid` in layout.wgsl). Each workgroup reduces a tile of
// 64 x 64 texels to one, which makes six levels. The first pass reads the depth texture and writes
// levels 0 to 6; the second pass makes levels 7 to 12 of level 6, and the third one the others. A
// viewport of up to 64 pixels a side takes one pass, of up to 4,096 two.
//
//     thread       4 x 4 texels of the source          levels 0, 1, 2
//     workgroup    16 x 16 values, one per thread      levels 3, 4, 5, 6
//
// Example: 5 x 1 pixels of depth 9 8 7 6 5 (in tenths); a dot is beyond the border:
//
//     level 0    9 8 7 6 5 . . .      thread 0 has four of them, thread 1 the fifth
//     level 1    8   6   5   .        of two columns each
//     level 2    6       5            one value per thread
//     level 3    5
//
// The twin is `src/cull/reference/pyramid.rs`.

import package::shared::layout::{DepthPyramid, PYRAMID_THREADS};

@if(!multisampled)
@group(0) @binding(17) var depths: texture_depth_2d;
@if(multisampled)
@group(0) @binding(17) var depths: texture_depth_multisampled_2d;
@group(0) @binding(18) var<storage, read_write> texels: array<f32>;
@group(0) @binding(19) var<uniform> pyramid_shape: DepthPyramid;

// The level that the pass reads.
@if(from_depth)
const SOURCE: u32 = 0u;
@if(second)
const SOURCE: u32 = 6u;
@if(third)
const SOURCE: u32 = 12u;

// What is beyond the borders: nearer than every depth.
const BEYOND: f32 = 3e38;

// Threads in a row of the workgroup.
const THREADS_PER_ROW: u32 = 16u;

var<workgroup> values: array<f32, PYRAMID_THREADS>;

fn store(number: u32, at: vec2<u32>, value: f32) {
    // The last pass may end before its last level.
    if (number >= pyramid_shape.level_count) {
        return;
    }
    let level = pyramid_shape.levels[number];
    if (all(at < vec2<u32>(level.width, level.height))) {
        texels[level.first + at.y * level.width + at.x] = value;
    }
}

@if(!multisampled)
fn farthest_sample(pixel: vec2<u32>) -> f32 {
    return textureLoad(depths, pixel, 0);
}

@if(multisampled)
fn farthest_sample(pixel: vec2<u32>) -> f32 {
    var least = BEYOND;
    for (var sample = 0u; sample < pyramid_shape.samples; sample += 1u) {
        least = min(least, textureLoad(depths, pixel, sample));
    }
    return least;
}

// A texel of level 0, which is stored, too.
@if(from_depth)
fn load(at: vec2<u32>) -> f32 {
    if (any(at >= vec2<u32>(pyramid_shape.width, pyramid_shape.height))) {
        return BEYOND;
    }
    let depth = farthest_sample(vec2<u32>(pyramid_shape.first_x, pyramid_shape.first_y) + at);
    store(0u, at, depth);
    return depth;
}

@if(!from_depth)
fn load(at: vec2<u32>) -> f32 {
    let level = pyramid_shape.levels[SOURCE];
    if (any(at >= vec2<u32>(level.width, level.height))) {
        return BEYOND;
    }
    return texels[level.first + at.y * level.width + at.x];
}

@compute @workgroup_size(PYRAMID_THREADS)
fn reduce(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let place = vec2<u32>(thread % THREADS_PER_ROW, thread / THREADS_PER_ROW);
    let cell = workgroup.xy * THREADS_PER_ROW + place;
    var whole = BEYOND;
    for (var quarter = 0u; quarter < 4u; quarter += 1u) {
        let half = cell * 2u + vec2<u32>(quarter & 1u, quarter >> 1u);
        var least = BEYOND;
        for (var part = 0u; part < 4u; part += 1u) {
            least = min(least, load(half * 2u + vec2<u32>(part & 1u, part >> 1u)));
        }
        store(SOURCE + 1u, half, least);
        whole = min(whole, least);
    }
    store(SOURCE + 2u, cell, whole);

    values[thread] = whole;
    workgroupBarrier();
    var level = SOURCE + 3u;
    for (var side = THREADS_PER_ROW / 2u; side > 0u; side /= 2u) {
        // Values of the level before are `2 * side` per row.
        let at = vec2<u32>(thread % side, thread / side);
        let upper = 4u * at.y * side + 2u * at.x;
        let lower = upper + 2u * side;
        var least = BEYOND;
        if (thread < side * side) {
            least = min(
                min(values[upper], values[upper + 1u]),
                min(values[lower], values[lower + 1u]));
            store(level, workgroup.xy * side + at, least);
        }
        workgroupBarrier();
        values[thread] = least;
        workgroupBarrier();
        level += 1u;
    }
}
