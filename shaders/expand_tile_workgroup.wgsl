// A workgroup's scan of RUN * EXPAND_THREADS values through workgroup memory (Hillis and Steele). A thread takes RUN
// values that lie side by side. The kernel says where values come from and go to: load_value(i),
// store_prefix(i, prefix), and tile_base(total, thread): what is added to all prefixes.

var<workgroup> thread_sums: array<vec2<u32>, EXPAND_THREADS>;

// The sum of the values, or the greatest u32.
fn scan_tile(first: u32, thread: Thread) -> u32 {
    let own = first + thread.index * RUN;
    var prefixes: array<u32, RUN>;
    // Sums of the values and of their upper halves.
    var sums = vec2<u32>(0u);
    for (var r = 0u; r < RUN; r += 1u) {
        let value = load_value(own + r);
        prefixes[r] = sums.x;
        sums += vec2<u32>(value, value >> 16u);
    }
    let own_sum = sums.x;
    thread_sums[thread.index] = sums;
    workgroupBarrier();
    for (var reach = 1u; reach < EXPAND_THREADS; reach *= 2u) {
        var before = vec2<u32>(0u);
        if (thread.index >= reach) {
            before = thread_sums[thread.index - reach];
        }
        workgroupBarrier();
        sums += before;
        thread_sums[thread.index] = sums;
        workgroupBarrier();
    }
    let last = thread_sums[EXPAND_THREADS - 1u];
    let total = saturated(last.x, last.y);
    let base = tile_base(total, thread.index) + sums.x - own_sum;
    for (var r = 0u; r < RUN; r += 1u) {
        store_prefix(own + r, base + prefixes[r]);
    }
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}
