// `item-list`: a thread reads its entry.

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    if (i < state.width) {
        let at = params.entries_at + 2u * i;
        expand_item(arena[at], arena[at + 1u]);
    }
}
