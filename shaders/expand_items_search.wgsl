// `prefix-search`: a thread an item, found by binary search for its number.

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    if (i < state.width) {
        let source = source_of(i);
        expand_item(source, i - first_item_of(source));
    }
}
