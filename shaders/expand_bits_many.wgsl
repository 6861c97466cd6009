// `count` and `write` for any number of tiles, which they stride over. The table lies bucket after bucket, and is
// scanned in between.

@compute @workgroup_size(EXPAND_THREADS)
fn count(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let sources = source_count();
    let tiles = tile_count();
    let index = index_of(thread);
    for (var tile = workgroup.x; tile < tiles; tile += workgroups.x) {
        let entries = count_tile(tile, sources, thread);
        if (index < EXPAND_BUCKETS) {
            arena[params.prefix_at + index * tiles + tile] = entries;
        }
        // The next tile overwrites what was counted in.
        workgroupBarrier();
    }
    store_sums(workgroup.x, index);
}

@compute @workgroup_size(EXPAND_THREADS)
fn write(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let sources = source_count();
    let tiles = tile_count();
    let index = index_of(thread);
    for (var tile = workgroup.x; tile < tiles; tile += workgroups.x) {
        load_masks(tile, sources, thread);
        let place = place_of(index % EXPAND_BUCKETS * tiles + tile)
            + entries_before(index, index / EXPAND_BUCKETS);
        write_entries(tile, sources, place, index);
        workgroupBarrier();
    }
}
