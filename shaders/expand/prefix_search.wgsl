// `prefix-search`: one thread per item, without a list. In pass 2 a thread finds its source by
// binary search.

import package::expand::body::expand_item;
import package::expand::items::expand;
import package::expand::layout::{EXPAND_CHUNK, EXPAND_TILE, arena, params, state};
import package::expand::sources::{chunks_of, tile_count, write_plan};
import package::expand::spine::spine;

fn partial_count() -> u32 {
    return tile_count();
}

fn plan(total: u32, thread: u32) {
    if (thread == 0u) {
        write_plan(total, 0u, total, chunks_of(total), 0u);
    }
}

// Number of items before the first one of a source.
fn first_item_of(source: u32) -> u32 {
    return arena[params.prefix_at + source] + arena[params.partials_at + source / EXPAND_TILE];
}

// The source of item i: the last tile, then the last source of it, whose prefix is not beyond i. Of
// equal prefixes, the last one is the source with items.
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

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    if (i < state.width) {
        let source = source_of(i);
        expand_item(source, i - first_item_of(source));
    }
}
