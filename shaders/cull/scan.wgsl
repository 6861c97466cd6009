// Scan: runs only if there are many ranks, or units of less than a block. Survivors per rank become
// places: exclusive prefixes within tiles of SCAN_TILE ranks, and totals of the tiles. `compact`
// adds up the tiles before its own. A closing rank holds the sum of all. Without this pass, ranks
// are few cells, and `compact` adds up all before its own.
//
//     survivors of 5 cells                 3 5 4 1 2
//     cells by rank, tiles of 2            0 2 | 1 4 | 3
//     places                               0 3 | 0 5 | 0 1     (1 = closing rank)
//     tiles                                7     7     1
//     place of cell 4                      7 + 5 = 12
//     occupied ranks                       0 1 4 2 3           (tile after tile in any order)
//
// A thread has SCAN_ITEMS contiguous ranks. One sum counts survivors in its low bits and occupied
// ranks in its high bits.

import package::cull::lists::{OCCUPIED_SHIFT, lists, ranks};
import package::shared::layout::{BLOCK, BLOCK_WORDS, SCAN_THREADS, SCAN_TILE, batch};

@group(0) @binding(6) var<storage, read> words: array<u32>;
@group(0) @binding(7) var<storage, read> counts: array<vec4<u32>>;

const SCAN_ITEMS: u32 = SCAN_TILE / SCAN_THREADS;
const_assert SCAN_ITEMS == 4u;

// One occupied rank in a sum of survivors.
const OCCUPIED: u32 = 1u << 21u;
const_assert SCAN_TILE * BLOCK < OCCUPIED;
const_assert SCAN_TILE < 1u << 11u;

// The place of the tile's occupied ranks in the list.
var<workgroup> tile_first: u32;

// Ranks of the batch.
fn rank_count() -> u32 {
    return batch.count_len * (BLOCK_WORDS / batch.unit_words);
}

// Survivors of the unit at a rank.
fn survivors_at(rank: u32) -> u32 {
    let first_word = ranks.entries[rank].first_word;
    let cell = first_word / BLOCK_WORDS;
    let in_block = counts[cell / 4u][cell % 4u];
    let each = batch.unit_words;
    if (each == BLOCK_WORDS || in_block == 0u) {
        return in_block;
    }
    if (in_block == BLOCK) {
        // There may be no words.
        return each * 32u;
    }
    var survivors = 0u;
    for (var k = 0u; k < each; k += 1u) {
        survivors += countOneBits(words[first_word ^ k]);
    }
    return survivors;
}

// What the units of the thread's ranks add to the sum.
fn weights_of(tile: u32, thread: u32) -> vec4<u32> {
    let first = tile * SCAN_TILE + thread * SCAN_ITEMS;
    let four = vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u);
    let len = rank_count();
    var survivors = vec4<u32>(0u);
    if (first < len) {
        if (batch.is_near_first == 0u) {
            survivors = counts[first / SCAN_ITEMS];
        } else {
            for (var k = 0u; k < SCAN_ITEMS; k += 1u) {
                survivors[k] = survivors_at(min(first + k, len - 1u));
            }
        }
        // After the last rank lie values of an earlier frame. More than a block has is no number of
        // survivors (a frame without a vote): it must not carry into other bits.
        let is_rank = four < vec4<u32>(len);
        survivors = select(vec4<u32>(0u), min(survivors, vec4<u32>(BLOCK)), is_rank);
    }
    let occupied = select(vec4<u32>(0u), vec4<u32>(OCCUPIED), survivors > vec4<u32>(0u));
    return survivors + occupied;
}

// Called by all threads: `before` is the sum before the thread's ranks, `total` the sum of the
// tile.
fn store_tile(tile: u32, thread: u32, weights: vec4<u32>, before: u32, total: u32) {
    if (thread == 0u) {
        ranks.tiles[tile] = total % OCCUPIED;
        tile_first = atomicAdd(&lists.occupied_count, total / OCCUPIED);
    }
    let first = tile * SCAN_TILE + thread * SCAN_ITEMS;
    let two = weights.x + weights.y;
    let sums = vec4<u32>(before) + vec4<u32>(0u, weights.x, two, two + weights.z);
    workgroupBarrier();
    for (var k = 0u; k < SCAN_ITEMS; k += 1u) {
        if (first + k <= rank_count()) {
            ranks.entries[first + k].place = sums[k] % OCCUPIED;
        }
        let place = tile_first + sums[k] / OCCUPIED;
        // The first pass of a frame empties the list. Without that pass, the list loses ranks
        // instead of overflowing.
        if (weights[k] > 0u && place < rank_count()) {
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
