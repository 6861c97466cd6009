// Stage 2, where there are many counts: survivors of each block and row to exclusive prefixes within tiles of
// SCAN_TILE, and the tiles' totals, in place. `compact` adds up the tiles before its own. A closing entry holds
// the sum of all. Few counts stay as they are: `compact` adds up all before its own.
//
//     survivors of 5 blocks, tiles of 2    3 0 | 4 1 | 2
//     counts after scan                    0 3 | 0 4 | 0 2     (2 = closing entry)
//     partials                             3     5     2
//     place of block 3                     3 + 4 = 7
//     live counts                          0 2 3 4             (tile after tile in any order)
//
// A thread has SCAN_ITEMS counts side by side. One sum counts survivors and, above them, live counts.

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(6) var<storage, read_write> counts: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> partials: array<u32>;

const SCAN_ITEMS: u32 = SCAN_TILE / SCAN_THREADS;
const_assert SCAN_ITEMS == 4u;

// A live count in a sum.
const LIVE: u32 = 1u << 21u;
const_assert SCAN_TILE * BLOCK < LIVE;
const_assert SCAN_TILE < 1u << 11u;

// The place of the tile's live counts in the list.
var<workgroup> tile_first: u32;

// What the thread's counts add to the sum. Behind the last one lies what an earlier frame has left.
fn weights_of(tile: u32, thread: u32) -> vec4<u32> {
    let first = tile * SCAN_TILE + thread * SCAN_ITEMS;
    var survivors = vec4<u32>(0u);
    if (first < batch.count_len) {
        let is_own = vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(batch.count_len);
        // What more than a block has is no count (a frame without a vote): it must not spill over into other bits.
        survivors = select(survivors, min(counts[first / SCAN_ITEMS], vec4<u32>(BLOCK)), is_own);
    }
    return survivors + select(vec4<u32>(0u), vec4<u32>(LIVE), survivors > vec4<u32>(0u));
}

// To be called by all threads: `before` is the sum before the thread's counts, `total` that of the tile.
fn store_tile(tile: u32, thread: u32, weights: vec4<u32>, before: u32, total: u32) {
    if (thread == 0u) {
        partials[tile] = total % LIVE;
        tile_first = atomicAdd(&lists.live_count, total / LIVE);
    }
    let first = tile * SCAN_TILE + thread * SCAN_ITEMS;
    let two = weights.x + weights.y;
    let sums = vec4<u32>(before) + vec4<u32>(0u, weights.x, two, two + weights.z);
    if (first <= batch.count_len) {
        counts[first / SCAN_ITEMS] = sums % LIVE;
    }
    workgroupBarrier();
    for (var k = 0u; k < SCAN_ITEMS; k += 1u) {
        let place = tile_first + sums[k] / LIVE;
        // A list that nobody has emptied (a frame without stage 0 or 1) loses counts rather than overflow.
        if (weights[k] > 0u && place < batch.count_len) {
            lists.entries[place] = vec2<u32>(((first + k) << LIVE_SHIFT) | (weights[k] % LIVE), sums[k] % LIVE);
        }
    }
}
