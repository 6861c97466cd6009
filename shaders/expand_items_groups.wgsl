// `workgroup-items`: a workgroup reads its entry, a thread takes an item of it.

fn expand_chunk(chunk: u32, thread: u32) {
    let at = params.entries_at + 2u * chunk;
    let source = arena[at];
    let item = arena[at + 1u] * EXPAND_CHUNK + thread;
    if (item < items_of(source)) {
        expand_item(source, item);
    }
}
