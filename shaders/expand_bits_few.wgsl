// `count` and `write` for few tiles, a workgroup each: no scan in between, each workgroup of `write` adds up the whole
// table, which lies tile after tile, and the first also makes the plan.

// Sums of bucket t % 32 over every eighth tile: of those before this one, of all.
var<workgroup> sums_before: array<u32, EXPAND_THREADS>;
var<workgroup> sums_all: array<u32, EXPAND_THREADS>;
var<workgroup> firsts: array<u32, 33>;

@compute @workgroup_size(EXPAND_THREADS)
fn count(thread: Thread, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let index = index_of(thread);
    let entries = count_tile(workgroup.x, source_count(), thread);
    if (index < EXPAND_BUCKETS) {
        arena[params.prefix_at + workgroup.x * EXPAND_BUCKETS + index] = entries;
    }
    store_sums(workgroup.x, index);
}

// Sums of a bucket over all segments.
fn add_segments(of_all: bool, bucket: u32) -> u32 {
    var sum = 0u;
    for (var s = bucket; s < EXPAND_THREADS; s += EXPAND_BUCKETS) {
        sum += select(sums_before[s], sums_all[s], of_all);
    }
    return sum;
}

@compute @workgroup_size(EXPAND_THREADS)
fn write(thread: Thread, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let tile = workgroup.x;
    let index = index_of(thread);
    let bucket = index % EXPAND_BUCKETS;
    var before = 0u;
    var all = 0u;
    for (var t = index / EXPAND_BUCKETS; t < params.workgroups; t += EXPAND_THREADS / EXPAND_BUCKETS) {
        let entries = arena[params.prefix_at + t * EXPAND_BUCKETS + bucket];
        all += entries;
        before += select(0u, entries, t < tile);
    }
    sums_before[index] = before;
    sums_all[index] = all;
    load_masks(tile, source_count(), thread);
    if (index <= EXPAND_BUCKETS) {
        var first = 0u;
        for (var b = 0u; b < index; b += 1u) {
            first += add_segments(true, b);
        }
        firsts[index] = first;
    }
    workgroupBarrier();
    let place = firsts[bucket] + add_segments(false, bucket) + entries_before(index, index / EXPAND_BUCKETS);
    write_entries(tile, source_count(), place, index);
    if (tile == 0u) {
        let items = sum_all(index);
        if (index <= EXPAND_BUCKETS) {
            first_entries[index] = min(firsts[index], params.entry_capacity);
        }
        workgroupBarrier();
        if (index == 0u) {
            plan_buckets(items, firsts[EXPAND_BUCKETS]);
        }
    }
}
