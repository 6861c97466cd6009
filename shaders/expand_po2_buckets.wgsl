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
