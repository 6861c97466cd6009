// `workgroup-items`: one entry per workgroup of items. In pass 2 a workgroup reads its entry, and
// each thread takes one of its items.

import package::expand::body::expand_item;
import package::expand::counts::items_of;
import package::expand::items::expand;
import package::expand::layout::{EXPAND_CHUNK, arena, params};
import package::expand::sources::{no_room, sum_all, tile_count, write_plan};
import package::expand::spine::spine;

fn partial_count() -> u32 {
    return tile_count();
}

fn plan(total: u32, thread: u32) {
    let items = sum_all(thread);
    if (thread == 0u) {
        let entries = min(total, params.entry_capacity);
        write_plan(items, total, entries, entries, no_room(total));
    }
}

fn expand_chunk(chunk: u32, thread: u32) {
    let at = params.entries_at + 2u * chunk;
    let source = arena[at];
    let item = arena[at + 1u] * EXPAND_CHUNK + thread;
    if (item < items_of(source)) {
        expand_item(source, item);
    }
}
