// A thread an entry of a list of items: `item-list`.

fn partial_count() -> u32 {
    return tile_count();
}

fn plan(total: u32, thread: u32) {
    if (thread == 0u) {
        let entries = min(total, params.entry_capacity);
        write_plan(total, total, entries, chunks_of(entries), no_room(total));
    }
}
