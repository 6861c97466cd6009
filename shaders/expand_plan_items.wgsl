// A thread an item, without a list: `prefix-search`.

fn partial_count() -> u32 {
    return tile_count();
}

fn plan(total: u32, thread: u32) {
    if (thread == 0u) {
        write_plan(total, 0u, total, chunks_of(total), 0u);
    }
}
