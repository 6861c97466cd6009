// `count` and `write` for few tiles, a workgroup each: no scan in between, each workgroup of `write` adds up the whole
// table, which lies tile after tile. One workgroup more, the first, makes the plan meanwhile.

const FEW_STRIDE: u32 = EXPAND_THREADS / EXPAND_BUCKETS;

// Sums of bucket t % 32 over every eighth tile: of those before this one, of all.
var<workgroup> sums_before: array<u32, EXPAND_THREADS>;
var<workgroup> sums_all: array<u32, EXPAND_THREADS>;
// The same over all: entries of a bucket in the tiles before this one, in all tiles.
var<workgroup> before_tile: array<u32, EXPAND_BUCKETS>;
var<workgroup> in_bucket: array<u32, EXPAND_BUCKETS>;
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

// Adds up the table: entries of each bucket before the tile and in all tiles; then where each bucket begins.
fn add_table(tile: u32, index: u32) {
    var before = 0u;
    var all = 0u;
    for (var t = index / EXPAND_BUCKETS; t < params.workgroups; t += FEW_STRIDE) {
        let entries = arena[params.prefix_at + t * EXPAND_BUCKETS + index % EXPAND_BUCKETS];
        all += entries;
        before += select(0u, entries, t < tile);
    }
    sums_before[index] = before;
    sums_all[index] = all;
    workgroupBarrier();
    if (index < EXPAND_BUCKETS) {
        before = 0u;
        all = 0u;
        for (var s = 0u; s < FEW_STRIDE; s += 1u) {
            before += sums_before[s * EXPAND_BUCKETS + index];
            all += sums_all[s * EXPAND_BUCKETS + index];
        }
        before_tile[index] = before;
        in_bucket[index] = all;
    }
    workgroupBarrier();
    if (index <= EXPAND_BUCKETS) {
        var first = 0u;
        for (var b = 0u; b < index; b += 1u) {
            first += in_bucket[b];
        }
        firsts[index] = first;
    }
    workgroupBarrier();
}

@compute @workgroup_size(EXPAND_THREADS)
fn write(thread: Thread, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let index = index_of(thread);
    if (workgroup.x == 0u) {
        let items = sum_all(index);
        add_table(0u, index);
        if (index <= EXPAND_BUCKETS) {
            first_entries[index] = min(firsts[index], params.entry_capacity);
        }
        workgroupBarrier();
        plan_buckets(items, firsts[EXPAND_BUCKETS], index);
    } else {
        let tile = workgroup.x - 1u;
        load_masks(tile, source_count(), thread);
        add_table(tile, index);
        let bucket = index % EXPAND_BUCKETS;
        let place = firsts[bucket] + before_tile[bucket] + entries_before(index, index / EXPAND_BUCKETS);
        write_entries(tile, source_count(), place, index);
    }
}
