// The depth pyramid of a viewport (`DepthPyramid` in layout.wgsl). Each workgroup reduces a tile of
// 64 x 64 texels to one, which makes six levels. The first pass reads the depth texture and writes
// levels 0 to 6; the second pass makes levels 7 to 12 of level 6, and the third one the others. A
// viewport of up to 64 pixels a side takes one pass, of up to 4,096 two.
//
//     thread       2 x 2 texels of the source, four times        levels 0, 1
//     workgroup    32 x 32 values, 32 neighbors per 32 threads   levels 2, 3, 4, 5, 6
//
// A texel beyond the border is the one next to it on the border, which is in all texels of the
// levels above that the pyramid has. Example: 5 x 1 pixels of depth 9 8 7 6 5 (in tenths):
//
//     level 0    9 8 7 6 5 (5 5 5)
//     level 1    8   6   5   (5)      of two columns each
//     level 2    6       5
//     level 3    5
//
// The twin is `src/cull/reference/pyramid.rs`.

import package::shared::layout::{DepthPyramid, PYRAMID_THREADS};

@if(single_sampled)
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

// Values of the first made level in a row of the tile.
const SIDE: u32 = 32u;
const ITEMS: u32 = SIDE * SIDE / PYRAMID_THREADS;
const_assert ITEMS == 4u;

// The number of an item's value in the tile. Neighboring threads have neighboring values.
fn item_place(item: u32, thread: u32) -> vec2<u32> {
    let i = item * PYRAMID_THREADS + thread;
    return vec2<u32>(i % SIDE, i / SIDE);
}

var<workgroup> values: array<f32, SIDE * SIDE>;

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

fn least_of(four: vec4<f32>) -> f32 {
    return min(min(four.x, four.y), min(four.z, four.w));
}

// The texels of each item: left and right of the upper row, then of the lower one.
alias Quads = array<vec4<f32>, ITEMS>;

@if(from_depth)
struct Pixels {
    low: vec2<u32>,
    high: vec2<u32>,
}

// The first and the last of the item's pixels of the texture, within the viewport.
@if(from_depth)
fn pixels_of(half: vec2<u32>) -> Pixels {
    let first = vec2<u32>(pyramid_shape.first_x, pyramid_shape.first_y);
    let last = vec2<u32>(pyramid_shape.width, pyramid_shape.height) - 1u;
    return Pixels(first + min(half * 2u, last), first + min(half * 2u + 1u, last));
}

@if(single_sampled)
fn load(first: vec2<u32>, thread: u32) -> Quads {
    var quads: Quads;
    for (var item = 0u; item < ITEMS; item += 1u) {
        let at = pixels_of(first + item_place(item, thread));
        quads[item] = vec4<f32>(
            textureLoad(depths, at.low, 0),
            textureLoad(depths, vec2<u32>(at.high.x, at.low.y), 0),
            textureLoad(depths, vec2<u32>(at.low.x, at.high.y), 0),
            textureLoad(depths, at.high, 0));
    }
    return quads;
}

// The farthest sample of each pixel. Sample by sample, so that a thread waits for all its pixels
// together, and not for each sample.
@if(multisampled)
fn load(first: vec2<u32>, thread: u32) -> Quads {
    var quads = Quads(vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0));
    for (var sample = 0u; sample < pyramid_shape.samples; sample += 1u) {
        for (var item = 0u; item < ITEMS; item += 1u) {
            let at = pixels_of(first + item_place(item, thread));
            let four = vec4<f32>(
                textureLoad(depths, at.low, sample),
                textureLoad(depths, vec2<u32>(at.high.x, at.low.y), sample),
                textureLoad(depths, vec2<u32>(at.low.x, at.high.y), sample),
                textureLoad(depths, at.high, sample));
            quads[item] = min(quads[item], four);
        }
    }
    return quads;
}

@if(!from_depth)
fn load(first: vec2<u32>, thread: u32) -> Quads {
    let level = pyramid_shape.levels[SOURCE];
    let last = vec2<u32>(level.width, level.height) - 1u;
    var quads: Quads;
    for (var item = 0u; item < ITEMS; item += 1u) {
        let half = first + item_place(item, thread);
        let x = min(vec2<u32>(half.x * 2u, half.x * 2u + 1u), vec2<u32>(last.x));
        let y = min(vec2<u32>(half.y * 2u, half.y * 2u + 1u), vec2<u32>(last.y));
        let row = level.first + y * level.width;
        quads[item] = vec4<f32>(
            texels[row.x + x.x], texels[row.x + x.y], texels[row.y + x.x], texels[row.y + x.y]);
    }
    return quads;
}

@compute @workgroup_size(PYRAMID_THREADS)
fn reduce(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let first = workgroup.xy * SIDE;
    var quads = load(first, thread);
    for (var item = 0u; item < ITEMS; item += 1u) {
        let half = first + item_place(item, thread);
        if (SOURCE == 0u) {
            store(0u, half * 2u, quads[item].x);
            store(0u, half * 2u + vec2<u32>(1u, 0u), quads[item].y);
            store(0u, half * 2u + vec2<u32>(0u, 1u), quads[item].z);
            store(0u, half * 2u + 1u, quads[item].w);
        }
        let least = least_of(quads[item]);
        store(SOURCE + 1u, half, least);
        values[item * PYRAMID_THREADS + thread] = least;
    }
    workgroupBarrier();
    var level = SOURCE + 2u;
    for (var side = SIDE / 2u; side > 0u; side /= 2u) {
        // Values of the level before are `2 * side` per row.
        let at = vec2<u32>(thread % side, thread / side);
        let upper = 4u * at.y * side + 2u * at.x;
        let lower = upper + 2u * side;
        var least = 0.0;
        if (thread < side * side) {
            least = least_of(
                vec4<f32>(values[upper], values[upper + 1u], values[lower], values[lower + 1u]));
            store(level, workgroup.xy * side + at, least);
        }
        workgroupBarrier();
        values[thread] = least;
        workgroupBarrier();
        level += 1u;
    }
}
