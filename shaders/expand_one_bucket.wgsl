// `one-bucket`: a source is one entry, in bucket floor(log2 N).

// Place of the first entry of each word and bucket.
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

// Entries of bucket `index` in the tile, to the first threads.
fn count_tile(tile: u32, sources: u32, thread: Thread) -> u32 {
    let index = index_of(thread);
    load_masks(tile, sources, thread);
    return entries_before(index, EXPAND_THREADS / EXPAND_BUCKETS);
}
