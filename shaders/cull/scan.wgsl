// Scan: runs only if there are many counts. Survivors per block and row become exclusive prefixes
// within tiles of SCAN_TILE, in place, and totals of the tiles. `compact` adds up the tiles before
// its own. A closing entry holds the sum of all. Few counts stay as they are: `compact` adds up all
// counts before its own.
//
//     survivors of 5 blocks, tiles of 2    3 0 | 4 1 | 2
//     counts after scan                    0 3 | 0 4 | 0 2     (2 = closing entry)
//     partials                             3     5     2
//     place of block 3                     3 + 4 = 7
//     occupied counts                      0 2 3 4             (tile after tile in any order)
//
// A thread has SCAN_ITEMS contiguous counts. One sum counts survivors in its low bits and occupied
// counts in its high bits.

import package::cull::lists::{OCCUPIED_SHIFT, lists};
import package::shared::layout::{BLOCK, SCAN_THREADS, SCAN_TILE, batch};

@group(0) @binding(7) var<storage, read_write> counts: array<vec4<u32>>;
@group(0) @binding(9) var<storage, read_write> partials: array<u32>;

const SCAN_ITEMS: u32 = SCAN_TILE / SCAN_THREADS;
const_assert SCAN_ITEMS == 4u;

// One occupied count in a sum of survivors.
const OCCUPIED: u32 = 1u << 21u;
const_assert SCAN_TILE * BLOCK < OCCUPIED;
const_assert SCAN_TILE < 1u << 11u;

// The place of the tile's occupied counts in the list.
var<workgroup> tile_first: u32;

// What the thread's counts add to the sum. After the last count lie values of an earlier frame.
fn weights_of(tile: u32, thread: u32) -> vec4<u32> {
    let first = tile * SCAN_TILE + thread * SCAN_ITEMS;
    var survivors = vec4<u32>(0u);
    if (first < batch.count_len) {
        let four = vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u);
        let is_count = four < vec4<u32>(batch.count_len);
        // More than a block has is no count (a frame without a vote): it must not carry into other
        // bits.
        survivors = select(survivors, min(counts[first / SCAN_ITEMS], vec4<u32>(BLOCK)), is_count);
    }
    return survivors + select(vec4<u32>(0u), vec4<u32>(OCCUPIED), survivors > vec4<u32>(0u));
}

// Called by all threads: `before` is the sum before the thread's counts, `total` the sum of the
// tile.
fn store_tile(tile: u32, thread: u32, weights: vec4<u32>, before: u32, total: u32) {
    if (thread == 0u) {
        partials[tile] = total % OCCUPIED;
        tile_first = atomicAdd(&lists.occupied_count, total / OCCUPIED);
    }
    let first = tile * SCAN_TILE + thread * SCAN_ITEMS;
    let two = weights.x + weights.y;
    let sums = vec4<u32>(before) + vec4<u32>(0u, weights.x, two, two + weights.z);
    if (first <= batch.count_len) {
        counts[first / SCAN_ITEMS] = sums % OCCUPIED;
    }
    workgroupBarrier();
    for (var k = 0u; k < SCAN_ITEMS; k += 1u) {
        let place = tile_first + sums[k] / OCCUPIED;
        // The first pass of a frame empties the list. Without that pass, the list loses counts
        // instead of overflowing.
        if (weights[k] > 0u && place < batch.count_len) {
            let packed = ((first + k) << OCCUPIED_SHIFT) | (weights[k] % OCCUPIED);
            lists.entries[place] = vec2<u32>(packed, sums[k] % OCCUPIED);
        }
    }
}

// One total per subgroup: 64 if subgroups have four lanes.
@if(subgroup)
var<workgroup> totals: array<u32, 64>;

// By subgroup prefix sums. Threads are numbered subgroup by subgroup.
@if(subgroup)
@compute @workgroup_size(SCAN_THREADS)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let thread = subgroup * size + lane;
    let weights = weights_of(workgroup.x, thread);
    let sum = weights.x + weights.y + weights.z + weights.w;
    let before = subgroupExclusiveAdd(sum);
    if (lane == size - 1u) {
        totals[subgroup] = before + sum;
    }
    workgroupBarrier();
    var exclusive = before;
    var total = 0u;
    for (var s = 0u; s < SCAN_THREADS / size; s += 1u) {
        exclusive += select(0u, totals[s], s < subgroup);
        total += totals[s];
    }
    store_tile(workgroup.x, thread, weights, exclusive, total);
}

@if(!subgroup)
var<workgroup> thread_sums: array<u32, SCAN_THREADS>;

// Through workgroup memory: log2(256) = 8 doubling steps (Hillis and Steele).
@if(!subgroup)
@compute @workgroup_size(SCAN_THREADS)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let weights = weights_of(workgroup.x, thread);
    let sum = weights.x + weights.y + weights.z + weights.w;
    var inclusive = sum;
    thread_sums[thread] = inclusive;
    workgroupBarrier();
    for (var reach = 1u; reach < SCAN_THREADS; reach *= 2u) {
        var before = 0u;
        if (thread >= reach) {
            before = thread_sums[thread - reach];
        }
        workgroupBarrier();
        inclusive += before;
        thread_sums[thread] = inclusive;
        workgroupBarrier();
    }
    let total = thread_sums[SCAN_THREADS - 1u];
    store_tile(workgroup.x, thread, weights, inclusive - sum, total);
}
