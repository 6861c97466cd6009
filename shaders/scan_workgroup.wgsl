// The scan through workgroup memory (Hillis and Steele: log2(256) = 8 doubling steps).

var<workgroup> sums: array<u32, SCAN_THREADS>;

@compute @workgroup_size(SCAN_THREADS)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let weights = weights_of(workgroup.x, thread);
    let own = weights.x + weights.y + weights.z + weights.w;
    var inclusive = own;
    sums[thread] = inclusive;
    workgroupBarrier();
    for (var reach = 1u; reach < SCAN_THREADS; reach *= 2u) {
        var before = 0u;
        if (thread >= reach) {
            before = sums[thread - reach];
        }
        workgroupBarrier();
        inclusive += before;
        sums[thread] = inclusive;
        workgroupBarrier();
    }
    store_tile(workgroup.x, thread, weights, inclusive - own, sums[SCAN_THREADS - 1u]);
}
