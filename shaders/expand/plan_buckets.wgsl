// The plan of the buckets: their places, the threads per entry, and the chunks of each bucket.
// `lanes_of(bucket, share)` of the solution is the binary logarithm of the threads per entry if a
// thread takes 2^share items.
//
// For few tiles, there are `count` and `write` with one workgroup per tile and no scan between
// them: each workgroup of `write_few` adds up the whole table, which lies tile after tile. One more
// workgroup, the first, makes the plan meanwhile.
//
// Hooks: count_tile, lanes_of, write_entries.

import package::expand::bits::{entries_before, load_masks};
import package::expand::layout::{
    EXPAND_BUCKETS, EXPAND_MOST_ITEMS, EXPAND_THREADS, EXPAND_TILE, ExpandBucket, arena, params,
    state,
};
import package::expand::sources::{
    Thread, chunks_of, index_of, no_room, place_of, source_count, store_sums, sum_all, tile_count,
    write_dispatch, write_plan,
};

// First entry of each bucket, and the end.
var<workgroup> first_entries: array<u32, 33>;
var<workgroup> threads_of: array<atomic<u32>, MOST_SHARE>;
var<workgroup> chunks_in: array<u32, EXPAND_BUCKETS>;

// If there are more threads than this, a thread takes more items, up to 2^MOST_SHARE.
override ENOUGH_THREADS: u32;
// No override, because it is the size of `threads_of`.
const MOST_SHARE: u32 = 3u;

fn entries_in(bucket: u32, runs: bool) -> u32 {
    return select(0u, first_entries[bucket + 1u] - first_entries[bucket], runs);
}

// Writes the plan once `first_entries` is filled. Called by all threads of a workgroup: one per
// bucket, or one per bucket and share.
fn plan_buckets(items: u32, total: u32, index: u32) {
    let runs = items <= EXPAND_MOST_ITEMS;
    let bucket = index % EXPAND_BUCKETS;
    let threads_share = index / EXPAND_BUCKETS;
    if (threads_share < MOST_SHARE) {
        // No sum of 32 can wrap.
        let threads = entries_in(bucket, runs) << lanes_of(bucket, threads_share);
        atomicAdd(&threads_of[threads_share], min(threads, ENOUGH_THREADS + 1u));
    }
    workgroupBarrier();
    var share = 0u;
    while (share < MOST_SHARE && atomicLoad(&threads_of[share]) > ENOUGH_THREADS) {
        share += 1u;
    }
    let entries = entries_in(bucket, runs);
    let lanes = lanes_of(bucket, share);
    let chunks = chunks_of(entries << lanes);
    if (index < EXPAND_BUCKETS) {
        chunks_in[index] = chunks;
        write_dispatch(index + 1u, chunks);
    }
    workgroupBarrier();
    if (index <= EXPAND_BUCKETS) {
        var first_chunk = 0u;
        for (var b = 0u; b < index; b += 1u) {
            first_chunk += chunks_in[b];
        }
        if (index < EXPAND_BUCKETS) {
            state.buckets[index] = ExpandBucket(first_entries[index], entries, first_chunk, lanes);
        } else {
            write_plan(items, total, total, first_chunk, no_room(total));
        }
    }
}

// ---- The hooks of spine.wgsl: the plan from the scanned table.

fn partial_count() -> u32 {
    let values = tile_count() * EXPAND_BUCKETS;
    return (values + EXPAND_TILE - 1u) / EXPAND_TILE;
}

fn plan(total: u32, thread: u32) {
    // The prefixes that the spine has written are read back.
    storageBarrier();
    let tiles = tile_count();
    let items = sum_all(thread);
    if (thread <= EXPAND_BUCKETS) {
        var first = total;
        if (thread < EXPAND_BUCKETS && tiles > 0u) {
            first = place_of(thread * tiles);
        }
        first_entries[thread] = min(first, params.entry_capacity);
    }
    workgroupBarrier();
    plan_buckets(items, total, thread);
}

// ---- The kernels of few tiles.

const FEW_STRIDE: u32 = EXPAND_THREADS / EXPAND_BUCKETS;

// Sums of bucket t % 32 over every eighth tile: over the tiles before this one, and over all tiles.
var<workgroup> sums_before: array<u32, EXPAND_THREADS>;
var<workgroup> sums_all: array<u32, EXPAND_THREADS>;
// Sums over all tiles: entries of a bucket in the tiles before this one, and in all tiles.
var<workgroup> before_tile: array<u32, EXPAND_BUCKETS>;
var<workgroup> in_bucket: array<u32, EXPAND_BUCKETS>;
// First entry of each bucket, and the end.
var<workgroup> firsts: array<u32, 33>;

@compute @workgroup_size(EXPAND_THREADS)
fn count_few(thread: Thread, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let index = index_of(thread);
    let entries = count_tile(workgroup.x, source_count(), thread);
    if (index < EXPAND_BUCKETS) {
        arena[params.prefix_at + workgroup.x * EXPAND_BUCKETS + index] = entries;
    }
    store_sums(workgroup.x, index);
}

// Adds up the table: entries of each bucket before the tile and in all tiles, then the beginning of
// each bucket.
fn add_table(tile: u32, index: u32) {
    var before = 0u;
    var all = 0u;
    for (var t = index / EXPAND_BUCKETS; t < params.workgroups; t += FEW_STRIDE) {
        let entries = arena[params.prefix_at + t * EXPAND_BUCKETS + index % EXPAND_BUCKETS];
        all += entries;
        before += select(0u, entries, t < tile);
    }
    sums_before[index] = before;
    sums_all[index] = all;
    workgroupBarrier();
    if (index < EXPAND_BUCKETS) {
        before = 0u;
        all = 0u;
        for (var s = 0u; s < FEW_STRIDE; s += 1u) {
            before += sums_before[s * EXPAND_BUCKETS + index];
            all += sums_all[s * EXPAND_BUCKETS + index];
        }
        before_tile[index] = before;
        in_bucket[index] = all;
    }
    workgroupBarrier();
    if (index <= EXPAND_BUCKETS) {
        var first = 0u;
        for (var b = 0u; b < index; b += 1u) {
            first += in_bucket[b];
        }
        firsts[index] = first;
    }
    workgroupBarrier();
}

@compute @workgroup_size(EXPAND_THREADS)
fn write_few(thread: Thread, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let index = index_of(thread);
    if (workgroup.x == 0u) {
        let items = sum_all(index);
        add_table(0u, index);
        if (index <= EXPAND_BUCKETS) {
            first_entries[index] = min(firsts[index], params.entry_capacity);
        }
        workgroupBarrier();
        plan_buckets(items, firsts[EXPAND_BUCKETS], index);
    } else {
        let tile = workgroup.x - 1u;
        load_masks(tile, source_count(), thread);
        add_table(tile, index);
        let bucket = index % EXPAND_BUCKETS;
        let place = firsts[bucket] + before_tile[bucket]
            + entries_before(index, index / EXPAND_BUCKETS);
        write_entries(tile, source_count(), place, index);
    }
}
