// `packed-atomic`: a thread an item, found by binary search for its number among the prefixes, in the order of
// arrival.

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    if (i >= state.width) {
        return;
    }
    var record = 0u;
    var end = state.sources;
    while (end - record > 1u) {
        let middle = record + (end - record) / 2u;
        if (arena[params.prefix_at + middle] <= i) {
            record = middle;
        } else {
            end = middle;
        }
    }
    expand_item(arena[params.entries_at + record], i - arena[params.prefix_at + record]);
}
