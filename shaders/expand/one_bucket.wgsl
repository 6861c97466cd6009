// `one-bucket`: a source is one entry, in bucket floor(log2 N). In pass 2 the entry of a thread is
// its number divided by the threads per entry, which share the entry's 2^b to 2^(b + 1) - 1 items.

import package::expand::bits::{
    SEGMENT, count, entries_before, load_masks, mask_at, masks, word_at, write,
};
import package::expand::body::expand_item;
import package::expand::counts::items_of;
import package::expand::items::{expand, find_bucket, this_bucket};
import package::expand::layout::{
    EXPAND_BUCKETS, EXPAND_CHUNK, EXPAND_THREADS, EXPAND_TILE, arena, params,
};
import package::expand::plan_buckets::{count_few, write_few};
import package::expand::sources::{Thread, index_of};
import package::expand::spine::spine;

// Place of the first entry per word and bucket.
var<workgroup> places: array<u32, EXPAND_TILE>;

fn bits_of(items: u32) -> u32 {
    var bits = 0u;
    if (items != 0u) {
        bits = 1u << firstLeadingBit(items);
    }
    return bits;
}

fn entries_of(mask: u32) -> u32 {
    return countOneBits(mask);
}

fn write_entries(tile: u32, sources: u32, first: u32, index: u32) {
    var place = first;
    for (var k = 0u; k < SEGMENT; k += 1u) {
        places[word_at(index, k) * EXPAND_BUCKETS + index % EXPAND_BUCKETS] = place;
        place += entries_of(mask_at(index, k));
    }
    workgroupBarrier();
    for (var at = index; at < EXPAND_TILE; at += EXPAND_THREADS) {
        let source = tile * EXPAND_TILE + at;
        if (source < sources) {
            let items = items_of(source);
            if (items != 0u) {
                let slot = at / 32u * EXPAND_BUCKETS + firstLeadingBit(items);
                let before = atomicLoad(&masks[slot]) & ((1u << (at % 32u)) - 1u);
                let entry = places[slot] + countOneBits(before);
                if (entry < params.entry_capacity) {
                    arena[params.entries_at + entry] = source;
                }
            }
        }
    }
}

// Entries of bucket `index` in the tile, for the first threads.
fn count_tile(tile: u32, sources: u32, thread: Thread) -> u32 {
    let index = index_of(thread);
    load_masks(tile, sources, thread);
    return entries_before(index, EXPAND_THREADS / EXPAND_BUCKETS);
}

fn lanes_of(bucket: u32, share: u32) -> u32 {
    return max(bucket, share) - share;
}

// ---- Pass 2.

fn expand_chunk(chunk: u32, thread: u32) {
    find_bucket(chunk);
    let bucket = this_bucket;
    let i = (chunk - bucket.first_chunk) * EXPAND_CHUNK + thread;
    let entry = i >> bucket.lanes;
    if (entry >= bucket.entry_count) {
        return;
    }
    let lanes = 1u << bucket.lanes;
    let source = arena[params.entries_at + bucket.first_entry + entry];
    let items = items_of(source);
    // The last step could wrap: 15 * 2^28 + 2^28 is 2^32.
    for (var item = i & (lanes - 1u); item < items; item += min(lanes, items - item)) {
        expand_item(source, item);
    }
}
