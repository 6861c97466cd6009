// A workgroup's scan of RUN * EXPAND_THREADS values by subgroup prefix sums. A subgroup takes RUN * size values that
// lie side by side, `size` of them at a time. The kernel says where values come from and go to: load_value(i),
// store_prefix(i, prefix), and tile_base(total, thread): what is added to all prefixes.

var<workgroup> subgroup_totals: array<u32, 64>;
var<workgroup> subgroup_highs: array<u32, 64>;

// The sum of the values, or the greatest u32.
fn scan_tile(first: u32, thread: Thread) -> u32 {
    let own = first + thread.subgroup * thread.size * RUN + thread.lane;
    var prefixes: array<u32, RUN>;
    var sum = 0u;
    var high = 0u;
    for (var r = 0u; r < RUN; r += 1u) {
        let value = load_value(own + r * thread.size);
        prefixes[r] = sum + subgroupExclusiveAdd(value);
        sum += subgroupAdd(value);
        high += value >> 16u;
    }
    high = subgroupAdd(high);
    if (thread.lane == 0u) {
        subgroup_totals[thread.subgroup] = sum;
        subgroup_highs[thread.subgroup] = high;
    }
    workgroupBarrier();
    var before = 0u;
    var total = 0u;
    high = 0u;
    for (var s = 0u; s < EXPAND_THREADS / thread.size; s += 1u) {
        before += select(0u, subgroup_totals[s], s < thread.subgroup);
        total += subgroup_totals[s];
        high += subgroup_highs[s];
    }
    total = saturated(total, high);
    let base = tile_base(total, index_of(thread)) + before;
    for (var r = 0u; r < RUN; r += 1u) {
        store_prefix(own + r * thread.size, base + prefixes[r]);
    }
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}
