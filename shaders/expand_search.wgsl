// The source of item i by binary search: the last tile, then the last source of it, whose prefix is not beyond. Of
// equal prefixes the last is the one with items.

// Items before those of a source.
fn first_item_of(source: u32) -> u32 {
    return arena[params.prefix_at + source] + arena[params.partials_at + source / EXPAND_TILE];
}

fn source_of(i: u32) -> u32 {
    var tile = 0u;
    var end = (state.sources - 1u) / EXPAND_TILE + 1u;
    while (end - tile > 1u) {
        let middle = (tile + end) / 2u;
        if (arena[params.partials_at + middle] <= i) {
            tile = middle;
        } else {
            end = middle;
        }
    }
    let in_tile = i - arena[params.partials_at + tile];
    var source = tile * EXPAND_TILE;
    end = min(source + EXPAND_TILE, state.sources);
    while (end - source > 1u) {
        let middle = (source + end) / 2u;
        if (arena[params.prefix_at + middle] <= in_tile) {
            source = middle;
        } else {
            end = middle;
        }
    }
    return source;
}
