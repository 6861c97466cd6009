// Bounds of blocks, one workgroup per block: a sphere around the positions of its instances, their
// largest scale, and a sphere around each 32 of them. It runs when instances have changed, not
// every frame. Thread t has instances 8t to 8t + 7, and four threads have one word.
//
// An instance that is not finite or has a negative scale is never visible (`load_sphere`). It is no
// part of a bound, but leaves a gap: its word and its block are never inside.

import package::shared::instance::{instance_scale, load_instance};
import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, BLOCK_WORDS, BOUND_IS_LOOSE, Bound, BoundJob,
};
import package::shared::visibility::{WORD_STEPS, word_center};

@group(0) @binding(0) var<uniform> job: BoundJob;
// Binding 3 is `instances` (instance.wgsl).
@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read_write> bounds: array<Bound>;

// Average radius of a block's words, in steps, from which on the bounds of words do not help:
// neighbors are far from each other.
override LOOSE: u32;

var<workgroup> lows: array<vec4<f32>, BLOCK_THREADS>;
var<workgroup> highs: array<vec4<f32>, BLOCK_THREADS>;
var<workgroup> reaches: array<f32, BLOCK_THREADS>;
var<workgroup> word_codes: array<u32, BLOCK_WORDS>;
// One bit per word with an instance that is never visible.
var<workgroup> gaps: atomic<u32>;

// Compared as bits, because a compiler may assume that there is no NaN.
fn is_finite(v: vec3<f32>) -> bool {
    let exponents = bitcast<vec3<u32>>(v) & vec3<u32>(0x7f800000u);
    return all(exponents != vec3<u32>(0x7f800000u));
}

// The largest distance of the thread's positions from `center`. `counts` has one bit per position
// that counts.
fn reach_from(
    center: vec3<f32>,
    positions: ptr<function, array<vec3<f32>, BLOCK_ITEMS>>,
    counts: u32,
) -> f32 {
    var reach = 0.0;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let away = distance((*positions)[k], center);
        reach = max(reach, select(0.0, away, ((counts >> k) & 1u) != 0u));
    }
    return reach;
}

// The middle of each word, in steps from the block's center. A step is a power of two, so the
// numbers are exact.
var<workgroup> word_middles: array<vec3<i32>, BLOCK_WORDS>;

// Steps per unit: 64 to 128 in the longest side of a block's box.
fn steps_per_unit(size: vec3<f32>) -> f32 {
    let exponent = bitcast<u32>(max(max(size.x, size.y), size.z)) >> 23u;
    return 64.0 * bitcast<f32>((254u - clamp(exponent, 32u, 222u)) << 23u);
}

// How the words lie to each other, for `order`: the halves of the block, then of each half, and so
// on down to neighbors. Of each halving it says along which axis the middles of the two halves are
// farthest apart, and which way.
fn halves_of_words() -> u32 {
    var halves = 0u;
    for (var level = 0u; level < 5u; level += 1u) {
        var apart = vec3<i32>(0);
        for (var w = 0u; w < BLOCK_WORDS; w += 1u) {
            let steps = word_middles[w];
            apart += select(-steps, steps, (w & ((BLOCK_WORDS / 2u) >> level)) != 0u);
        }
        let far = abs(apart);
        var axis = select(0u, 1u, far.y > far.x);
        axis = select(axis, 2u, far.z > max(far.x, far.y));
        let code = 1u + 2u * axis + select(0u, 1u, apart[axis] < 0);
        halves |= select(0u, code << (3u * level), far[axis] > 0);
    }
    return halves;
}

// The scale of the instance at `at`, along the axes of the mesh.
fn load_scale(at: u32) -> vec3<f32> {
    switch job.scale_floats {
        case 0u: { return vec3<f32>(1.0); }
        case 1u: { return vec3<f32>(scales[at]); }
        default: { return vec3<f32>(scales[at * 3u], scales[at * 3u + 1u], scales[at * 3u + 2u]); }
    }
}

@compute @workgroup_size(BLOCK_THREADS)
fn bound(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let job_block = workgroup.y * workgroups.x + workgroup.x;
    if (job_block >= job.block_count) {
        return;
    }
    let block = job.first_block + job_block;
    let first = block * BLOCK + thread * BLOCK_ITEMS;
    let last = job.end - 1u;

    // The fourth components: the smallest and the largest of the instances' largest scales.
    var low = vec4<f32>(3e38);
    var high = vec4<f32>(vec3<f32>(-3e38), 0.0);
    var positions: array<vec3<f32>, BLOCK_ITEMS>;
    var counts = 0u;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let at = min(first + k, last);
        let instance = load_instance(at);
        positions[k] = instance.position;
        let scale = instance_scale(instance) * load_scale(at);
        if (is_finite(positions[k]) && is_finite(scale) && all(scale >= vec3<f32>(0.0))) {
            let largest = max(max(scale.x, scale.y), scale.z);
            low = min(low, vec4<f32>(positions[k], largest));
            high = vec4<f32>(max(high.xyz, positions[k]), max(high.w, largest));
            counts |= 1u << k;
        }
    }
    lows[thread] = low;
    highs[thread] = high;
    let word = thread / 4u;
    if (counts != (1u << BLOCK_ITEMS) - 1u) {
        atomicOr(&gaps, 1u << word);
    }
    workgroupBarrier();
    for (var part = 0u; part < 4u; part += 1u) {
        low = min(low, lows[word * 4u + part]);
        high = max(high, highs[word * 4u + part]);
    }
    let word_is_empty = low.x > high.x;
    var middle = (low.xyz + high.xyz) * 0.5;
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (thread < span) {
            lows[thread] = min(lows[thread], lows[thread + span]);
            highs[thread] = max(highs[thread], highs[thread + span]);
        }
        workgroupBarrier();
    }
    let center = (lows[0].xyz + highs[0].xyz) * 0.5;
    let is_empty = lows[0].x > highs[0].x;
    let least_scale = select(lows[0].w, 0.0, is_empty);
    let max_scale = highs[0].w;
    let per_unit = steps_per_unit(highs[0].xyz - lows[0].xyz);

    reaches[thread] = reach_from(center, &positions, counts);
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (thread < span) {
            reaches[thread] = max(reaches[thread], reaches[thread + span]);
        }
        workgroupBarrier();
    }
    let radius = reaches[0];
    workgroupBarrier();

    // The word's center as it will be read, and the radius from there. An empty word is a point.
    middle = select(middle, center, word_is_empty);
    let step = radius / WORD_STEPS;
    let away = clamp((middle - center) / max(step, 1e-30), vec3<f32>(-127.0), vec3<f32>(127.0));
    let steps = vec3<u32>(vec3<i32>(round(away)) + 128);
    reaches[thread] = reach_from(word_center(center, step, steps), &positions, counts);
    workgroupBarrier();
    if ((thread % 4u) == 0u) {
        let reach = max(
            max(reaches[thread], reaches[thread + 1u]),
            max(reaches[thread + 2u], reaches[thread + 3u]));
        // At most twice the radius. The hundredth of a step covers rounding.
        let some_steps = min(u32(ceil(reach / max(step, 1e-30) + 0.01)), 255u);
        let reach_steps = select(some_steps, 0u, word_is_empty);
        word_middles[word] = vec3<i32>((middle - center) * per_unit);
        word_codes[word] = steps.x | (steps.y << 8u) | (steps.z << 16u) | (reach_steps << 24u);
    }
    workgroupBarrier();
    if (thread < BLOCK_WORDS) {
        bounds[block].words[thread] = word_codes[thread];
    }
    if (thread == 0u) {
        var sum = 0u;
        for (var w = 0u; w < BLOCK_WORDS; w += 1u) {
            sum += word_codes[w] >> 24u;
        }
        bounds[block].center = center;
        bounds[block].radius = select(radius, -1.0, is_empty);
        bounds[block].max_scale = max_scale;
        bounds[block].gaps = atomicLoad(&gaps);
        bounds[block].least_scale = least_scale;
        let is_tight = !is_empty && sum < LOOSE * BLOCK_WORDS;
        bounds[block].halves = select(BOUND_IS_LOOSE, halves_of_words(), is_tight);
    }
}
