// `one-bucket`: a thread's entry is its number over the threads of an entry, which share the entry's 2^b to
// 2^(b + 1) - 1 items.

fn expand_chunk(chunk: u32, thread: u32) {
    find_bucket(chunk);
    let bucket = own;
    let i = (chunk - bucket.first_chunk) * EXPAND_CHUNK + thread;
    let entry = i >> bucket.lanes;
    if (entry >= bucket.entry_count) {
        return;
    }
    let lanes = 1u << bucket.lanes;
    let source = arena[params.entries_at + bucket.first_entry + entry];
    let items = items_of(source);
    // The last step could wrap: 15 * 2^28 + 2^28 is 2^32.
    for (var item = i & (lanes - 1u); item < items; item += min(lanes, items - item)) {
        expand_item(source, item);
    }
}
