// `prefix-search`: a thread an item, found by binary search for its number: the last tile, then the last source of
// it, whose prefix is not beyond. Of equal prefixes the last is the one with items.

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    if (i >= state.width) {
        return;
    }
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
    expand_item(source, in_tile - arena[params.prefix_at + source]);
}
