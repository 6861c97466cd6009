// The plan of the buckets from the scanned table.

fn partial_count() -> u32 {
    let values = tile_count() * EXPAND_BUCKETS;
    return (values + EXPAND_TILE - 1u) / EXPAND_TILE;
}

fn plan(total: u32, thread: u32) {
    // The spine's own prefixes are read back.
    storageBarrier();
    let tiles = tile_count();
    let items = sum_all(thread);
    if (thread <= EXPAND_BUCKETS) {
        var first = total;
        if (thread < EXPAND_BUCKETS && tiles > 0u) {
            first = place_of(thread * tiles);
        }
        first_entries[thread] = min(first, params.entry_capacity);
    }
    workgroupBarrier();
    plan_buckets(items, total, thread);
}
