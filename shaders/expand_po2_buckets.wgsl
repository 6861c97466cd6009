// `po2-buckets`: a set bit b of N is an entry in bucket b. Those of 32 neighbouring sources share two words, the
// index of their word and its mask: 8 bytes for up to 32 entries.

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

// Bits that some source of the word has: an entry for each.
var<workgroup> words: array<atomic<u32>, TILE_WORDS>;

// Entries of bucket `index` in the tile, to the first threads. No masks are needed for that.
fn count_tile(tile: u32, sources: u32, thread: Thread) -> u32 {
    let index = index_of(thread);
    var items = tile_items(tile, sources, index);
    if (index < TILE_WORDS) {
        atomicStore(&words[index], 0u);
    }
    workgroupBarrier();
    for (var r = 0u; r < RUN; r += 1u) {
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
