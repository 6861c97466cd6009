// The scan through workgroup memory (Hillis and Steele: log2(256) = 8 doubling steps).

var<workgroup> sums: array<u32, SCAN_TILE>;

@compute @workgroup_size(SCAN_TILE)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let survivors = count_at(workgroup.x * SCAN_TILE + thread);
    var inclusive = survivors;
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
    store_tile(workgroup.x, thread, inclusive - survivors, sums[SCAN_TILE - 1u]);
}
