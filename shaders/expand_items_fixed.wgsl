// `fixed-max`: as many threads for each source as the greatest has items; the others' leave at once.

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    let source = i / state.width;
    let item = i % state.width;
    if (source < state.sources) {
        if (item < items_of(source)) {
            expand_item(source, item);
        }
    }
}
