// What every plan writes.

// Workgroups of an indirect dispatch, at most 65,535 in x: wgpu drops a greater one without a word.
fn write_dispatch(index: u32, chunks: u32) {
    let x = min(chunks, 65535u);
    state.dispatches[index] = vec4<u32>(x, (chunks + 65534u) / 65535u, 1u, 0u);
}

fn chunks_of(threads: u32) -> u32 {
    return threads / EXPAND_CHUNK + select(0u, 1u, threads % EXPAND_CHUNK != 0u);
}

// All but buckets.
fn write_plan(items: u32, needed: u32, width: u32, chunks: u32, status: u32) {
    var all = status;
    if (items > EXPAND_MOST_ITEMS) {
        all |= EXPAND_TOO_MANY_ITEMS;
    }
    // What is refused expands to nothing.
    let runs = (all & (EXPAND_TOO_MANY_ITEMS | EXPAND_TOO_MANY_THREADS)) == 0u;
    let some = select(0u, chunks, runs);
    state.sources = source_count();
    state.items = items;
    state.needed = needed;
    state.status = all;
    state.chunks = some;
    state.width = width;
    write_dispatch(0u, some);
}

fn no_room(needed: u32) -> u32 {
    return select(0u, EXPAND_NO_ROOM, needed > params.entry_capacity);
}
