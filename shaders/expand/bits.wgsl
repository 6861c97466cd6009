// Pass 1 of the buckets. The sources of a tile are transposed to bits: bit s of masks[w * 32 + b]
// says that source 32 w + s of the tile has an entry in bucket b. A first kernel counts the entries
// per tile and bucket. A scan of these, bucket after bucket, makes all buckets contiguous in the
// arena, each as large as it must be. A last kernel transposes again and writes.
//
//     N of 4 sources       5 = 0101   2 = 0010   7 = 0111   0 = 0000
//     bit 0 of each        1 0 1 0    bucket 0: items of size 1 of sources 0 and 2
//     bit 1 of each        0 1 1 0    bucket 1: items of size 2 of sources 1 and 2
//     bit 2 of each        1 0 1 0    bucket 2: items of size 4 of sources 0 and 2
//
// The kernels here handle any number of tiles, over which they stride. For few tiles there are
// others (plan_buckets.wgsl).
//
// Hooks: bits_of, entries_of, count_tile, write_entries.

import package::expand::counts::items_of;
import package::expand::layout::{EXPAND_BUCKETS, EXPAND_THREADS, EXPAND_TILE, arena, params};
import package::expand::sources::{
    Thread, index_of, note_items, place_of, source_count, store_sums, tile_count,
};

const TILE_WORDS: u32 = EXPAND_TILE / 32u;

var<workgroup> masks: array<atomic<u32>, EXPAND_TILE>;
// Entries of bucket t % 32 in the four words from t / 32 * 4 on.
var<workgroup> segments: array<u32, EXPAND_THREADS>;

// Words of a segment.
const SEGMENT: u32 = TILE_WORDS * EXPAND_BUCKETS / EXPAND_THREADS;

// Sources of a tile per thread.
const SOURCES_EACH: u32 = EXPAND_TILE / EXPAND_THREADS;

// The items of sources `index`, `index` + 256 and so on of the tile. All are loaded before the
// first is used.
fn tile_items(tile: u32, sources: u32, index: u32) -> array<u32, SOURCES_EACH> {
    var items: array<u32, SOURCES_EACH>;
    for (var r = 0u; r < SOURCES_EACH; r += 1u) {
        let source = tile * EXPAND_TILE + r * EXPAND_THREADS + index;
        if (source < sources) {
            items[r] = items_of(source);
        }
    }
    return items;
}

// Transposes the sources of a tile to masks, and counts the entries of each segment.
fn load_masks(tile: u32, sources: u32, thread: Thread) {
    let index = index_of(thread);
    var items = tile_items(tile, sources, index);
    for (var i = index; i < EXPAND_TILE; i += EXPAND_THREADS) {
        atomicStore(&masks[i], 0u);
    }
    workgroupBarrier();
    for (var r = 0u; r < SOURCES_EACH; r += 1u) {
        note_items(items[r]);
        transpose(bits_of(items[r]), r * EXPAND_THREADS + index, thread);
    }
    workgroupBarrier();
    var entries = 0u;
    for (var k = 0u; k < SEGMENT; k += 1u) {
        entries += entries_of(mask_at(index, k));
    }
    segments[index] = entries;
    workgroupBarrier();
}

// Word k of the thread's segment.
fn word_at(index: u32, k: u32) -> u32 {
    return index / EXPAND_BUCKETS * SEGMENT + k;
}

fn mask_at(index: u32, k: u32) -> u32 {
    return atomicLoad(&masks[word_at(index, k) * EXPAND_BUCKETS + index % EXPAND_BUCKETS]);
}

// Entries of bucket index % 32 in the segments before `segment`.
fn entries_before(index: u32, segment: u32) -> u32 {
    var entries = 0u;
    for (var s = 0u; s < segment; s += 1u) {
        entries += segments[s * EXPAND_BUCKETS + index % EXPAND_BUCKETS];
    }
    return entries;
}

// Adds the bits of one source per thread to the masks. By ballots, one per bit that some lane has.
// A subgroup may hold a part of a word or several words.
@if(subgroup)
fn transpose(bits: u32, place: u32, thread: Thread) {
    let first = place - thread.lane;
    var left = subgroupOr(bits);
    while (left != 0u) {
        let bucket = countTrailingZeros(left);
        left &= left - 1u;
        let ballot = subgroupBallot(((bits >> bucket) & 1u) != 0u);
        if (thread.lane < (thread.size + 31u) / 32u) {
            let word = first / 32u + thread.lane;
            atomicOr(&masks[word * EXPAND_BUCKETS + bucket], ballot[thread.lane] << (first % 32u));
        }
    }
}

// The same with one atomic in workgroup memory per bit.
@if(!subgroup)
fn transpose(bits: u32, place: u32, thread: Thread) {
    var left = bits;
    while (left != 0u) {
        let bucket = countTrailingZeros(left);
        left &= left - 1u;
        atomicOr(&masks[place / 32u * EXPAND_BUCKETS + bucket], 1u << (place % 32u));
    }
}

// ---- The kernels. The table lies bucket after bucket and is scanned between them.

@compute @workgroup_size(EXPAND_THREADS)
fn count(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let sources = source_count();
    let tiles = tile_count();
    let index = index_of(thread);
    for (var tile = workgroup.x; tile < tiles; tile += workgroups.x) {
        let entries = count_tile(tile, sources, thread);
        if (index < EXPAND_BUCKETS) {
            arena[params.prefix_at + index * tiles + tile] = entries;
        }
        // The next tile overwrites the masks.
        workgroupBarrier();
    }
    store_sums(workgroup.x, index);
}

@compute @workgroup_size(EXPAND_THREADS)
fn write(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let sources = source_count();
    let tiles = tile_count();
    let index = index_of(thread);
    for (var tile = workgroup.x; tile < tiles; tile += workgroups.x) {
        load_masks(tile, sources, thread);
        let place = place_of(index % EXPAND_BUCKETS * tiles + tile)
            + entries_before(index, index / EXPAND_BUCKETS);
        write_entries(tile, sources, place, index);
        workgroupBarrier();
    }
}
