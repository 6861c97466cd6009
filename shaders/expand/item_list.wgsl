// `item-list`: one entry per item. In pass 2 a thread reads its entry.

import package::expand::body::expand_item;
import package::expand::items::expand;
import package::expand::layout::{EXPAND_CHUNK, arena, params, state};
import package::expand::sources::{chunks_of, no_room, tile_count, write_plan};
import package::expand::spine::spine;

fn partial_count() -> u32 {
    return tile_count();
}

fn plan(total: u32, thread: u32) {
    if (thread == 0u) {
        let entries = min(total, params.entry_capacity);
        write_plan(total, total, entries, chunks_of(entries), no_room(total));
    }
}

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    if (i < state.width) {
        let at = params.entries_at + 2u * i;
        expand_item(arena[at], arena[at + 1u]);
    }
}
