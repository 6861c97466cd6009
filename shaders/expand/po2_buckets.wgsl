// `po2-buckets`: a set bit b of N is one entry in bucket b. The entries of 32 neighboring sources
// share two words, the index of their word and its mask: 8 bytes for up to 32 entries. In pass 2
// the entry of a thread is its number divided by the threads per entry; no search. Bit b of N
// stands for the 2^b items after the items of the higher bits.

import package::expand::bits::{
    SEGMENT, SOURCES_EACH, TILE_WORDS, count, mask_at, tile_items, word_at, write,
};
import package::expand::body::expand_item;
import package::expand::counts::items_of;
import package::expand::items::{bucket_index, expand, find_bucket, this_bucket};
import package::expand::layout::{EXPAND_BUCKETS, EXPAND_CHUNK, EXPAND_THREADS, arena, params};
import package::expand::plan_buckets::{count_few, write_few};
import package::expand::sources::{Thread, index_of, note_items};
import package::expand::spine::spine;

fn bits_of(items: u32) -> u32 {
    return items;
}

fn entries_of(mask: u32) -> u32 {
    return select(0u, 1u, mask != 0u);
}

fn write_entries(tile: u32, sources: u32, first: u32, index: u32) {
    var place = first;
    for (var k = 0u; k < SEGMENT; k += 1u) {
        let mask = mask_at(index, k);
        if (mask != 0u) {
            if (place < params.entry_capacity) {
                arena[params.entries_at + 2u * place] = tile * TILE_WORDS + word_at(index, k);
                arena[params.entries_at + 2u * place + 1u] = mask;
            }
            place += 1u;
        }
    }
}

// Bits that some source of the word has: one entry per bit.
var<workgroup> words: array<atomic<u32>, TILE_WORDS>;

// Entries of bucket `index` in the tile, for the first threads. This needs no masks.
fn count_tile(tile: u32, sources: u32, thread: Thread) -> u32 {
    let index = index_of(thread);
    var items = tile_items(tile, sources, index);
    if (index < TILE_WORDS) {
        atomicStore(&words[index], 0u);
    }
    workgroupBarrier();
    for (var r = 0u; r < SOURCES_EACH; r += 1u) {
        note_items(items[r]);
        gather(items[r], (r * EXPAND_THREADS + index) / 32u, thread);
    }
    workgroupBarrier();
    var entries = 0u;
    if (index < EXPAND_BUCKETS) {
        for (var w = 0u; w < TILE_WORDS; w += 1u) {
            entries += (atomicLoad(&words[w]) >> index) & 1u;
        }
    }
    return entries;
}

// Adds the bits of a word's sources. One atomic in workgroup memory per subgroup, unless a subgroup
// is more than a word.
@if(subgroup)
fn gather(bits: u32, word: u32, thread: Thread) {
    let all = subgroupOr(bits);
    if (thread.size > 32u) {
        atomicOr(&words[word], bits);
    } else if (thread.lane == 0u) {
        atomicOr(&words[word], all);
    }
}

@if(!subgroup)
fn gather(bits: u32, word: u32, thread: Thread) {
    atomicOr(&words[word], bits);
}

// At least 32 threads for the 32 sources of an entry.
fn lanes_of(bucket: u32, share: u32) -> u32 {
    return max(bucket, 5u + share) - share;
}

// ---- Pass 2.

// Index of set bit n of the mask.
fn set_bit(mask: u32, n: u32) -> u32 {
    var bits = mask;
    var left = n;
    var bit = 0u;
    for (var width = 16u; width > 0u; width /= 2u) {
        let below = countOneBits(bits & ((1u << width) - 1u));
        if (left >= below) {
            left -= below;
            bit += width;
            bits >>= width;
        }
    }
    return bit;
}

// The bits above bit b: the first of its items.
fn higher_bits(items: u32, b: u32) -> u32 {
    return items & ~((2u << b) - 1u);
}

fn expand_chunk(chunk: u32, thread: u32) {
    find_bucket(chunk);
    let b = bucket_index;
    let bucket = this_bucket;
    let i = (chunk - bucket.first_chunk) * EXPAND_CHUNK + thread;
    let entry = i >> bucket.lanes;
    if (entry >= bucket.entry_count) {
        return;
    }
    let lanes = 1u << bucket.lanes;
    let lane = i & (lanes - 1u);
    let size = 1u << b;
    let at = params.entries_at + 2u * (bucket.first_entry + entry);
    let word = arena[at];
    let mask = arena[at + 1u];
    if (size >= lanes) {
        // Every thread has a part of every set bit.
        for (var left = mask; left != 0u; left &= left - 1u) {
            let source = word * 32u + countTrailingZeros(left);
            let first = higher_bits(items_of(source), b);
            for (var k = lane; k < size; k += lanes) {
                expand_item(source, first + k);
            }
        }
    } else {
        let end = countOneBits(mask) << b;
        for (var k = lane; k < end; k += lanes) {
            let source = word * 32u + set_bit(mask, k >> b);
            let first = higher_bits(items_of(source), b);
            expand_item(source, first + (k & (size - 1u)));
        }
    }
}
