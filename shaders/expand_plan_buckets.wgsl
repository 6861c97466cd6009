// Where each bucket lies, how many threads an entry gets, and the chunks of each. `lanes_of(bucket, share)` gives
// the binary logarithm of the threads of an entry when a thread is to take 2^share items.

var<workgroup> first_entries: array<u32, 33>;

// A thread takes more items, up to 2^3, when there are more threads than this without.
const ENOUGH_THREADS: u32 = 1048576u;

// With `first_entries` filled, by one thread.
fn plan_buckets(items: u32, total: u32) {
    let runs = items <= EXPAND_MOST_ITEMS;
    var share = 0u;
    for (; share < 3u; share += 1u) {
        var threads = 0u;
        for (var b = 0u; b < EXPAND_BUCKETS; b += 1u) {
            threads = add_saturated(threads, select(0u, (first_entries[b + 1u] - first_entries[b]) << lanes_of(b, share), runs));
        }
        if (threads <= ENOUGH_THREADS) {
            break;
        }
    }
    var chunk = 0u;
    for (var b = 0u; b < EXPAND_BUCKETS; b += 1u) {
        let entries = select(0u, first_entries[b + 1u] - first_entries[b], runs);
        let lanes = lanes_of(b, share);
        let chunks = chunks_of(entries << lanes);
        state.buckets[b] = ExpandBucket(first_entries[b], entries, chunk, lanes);
        write_dispatch(b + 1u, chunks);
        chunk += chunks;
    }
    write_plan(items, total, total, chunk, no_room(total));
}
