// The scan through workgroup memory (Hillis and Steele: log2(256) = 8 doubling steps).

var<workgroup> sums: array<u32, SCAN_TILE>;

fn scan_workgroup(value: u32, thread: u32) -> Prefix {
    var inclusive = value;
    sums[thread] = inclusive;
    workgroupBarrier();
    for (var reach = 1u; reach < SCAN_TILE; reach *= 2u) {
        var before = 0u;
        if (thread >= reach) {
            before = sums[thread - reach];
        }
        workgroupBarrier();
        inclusive += before;
        sums[thread] = inclusive;
        workgroupBarrier();
    }
    let prefix = Prefix(inclusive - value, sums[SCAN_TILE - 1u]);
    // The next call overwrites the sums.
    workgroupBarrier();
    return prefix;
}

@compute @workgroup_size(SCAN_TILE)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let survivors = count_survivors(workgroup.x * SCAN_TILE + thread);
    store_tile(workgroup.x, thread, scan_workgroup(survivors, thread));
}

@compute @workgroup_size(SCAN_TILE)
fn spine(@builtin(local_invocation_index) thread: u32) {
    let tiles = tile_count();
    var carry = 0u;
    for (var first = 0u; first < tiles; first += SCAN_TILE) {
        let tile = first + thread;
        var total = 0u;
        if (tile < tiles) {
            total = partials[tile];
        }
        let prefix = scan_workgroup(total, thread);
        if (tile < tiles) {
            partials[tile] = carry + prefix.exclusive;
        }
        carry += prefix.total;
    }
}
