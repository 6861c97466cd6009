// A workgroup an entry: `workgroup-items`.

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
