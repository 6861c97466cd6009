// Where each bucket lies, how many threads an entry gets, and the chunks of each. `lanes_of(bucket, share)` gives
// the binary logarithm of the threads of an entry when a thread is to take 2^share items.

var<workgroup> first_entries: array<u32, 33>;
var<workgroup> threads_of: array<atomic<u32>, MOST_SHARE>;
var<workgroup> chunks_in: array<u32, EXPAND_BUCKETS>;

// A thread takes more items, up to 2^MOST_SHARE, when there are more threads than this without.
const ENOUGH_THREADS: u32 = 1048576u;
const MOST_SHARE: u32 = 3u;

fn entries_in(bucket: u32, runs: bool) -> u32 {
    return select(0u, first_entries[bucket + 1u] - first_entries[bucket], runs);
}

// With `first_entries` filled, by all threads of a workgroup: one a bucket, or one a bucket and share.
fn plan_buckets(items: u32, total: u32, index: u32) {
    let runs = items <= EXPAND_MOST_ITEMS;
    let bucket = index % EXPAND_BUCKETS;
    let threads_share = index / EXPAND_BUCKETS;
    if (threads_share < MOST_SHARE) {
        // No sum of 32 can wrap.
        let threads = min(entries_in(bucket, runs) << lanes_of(bucket, threads_share), ENOUGH_THREADS + 1u);
        atomicAdd(&threads_of[threads_share], threads);
    }
    workgroupBarrier();
    var share = 0u;
    while (share < MOST_SHARE && atomicLoad(&threads_of[share]) > ENOUGH_THREADS) {
        share += 1u;
    }
    let entries = entries_in(bucket, runs);
    let lanes = lanes_of(bucket, share);
    let chunks = chunks_of(entries << lanes);
    if (index < EXPAND_BUCKETS) {
        chunks_in[index] = chunks;
        write_dispatch(index + 1u, chunks);
    }
    workgroupBarrier();
    if (index <= EXPAND_BUCKETS) {
        var first_chunk = 0u;
        for (var b = 0u; b < index; b += 1u) {
            first_chunk += chunks_in[b];
        }
        if (index < EXPAND_BUCKETS) {
            state.buckets[index] = ExpandBucket(first_entries[index], entries, first_chunk, lanes);
        } else {
            write_plan(items, total, total, first_chunk, no_room(total));
        }
    }
}
