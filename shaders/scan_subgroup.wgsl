// The scan by subgroup prefix sums. Threads are numbered subgroup by subgroup.

// One total a subgroup: 64 when subgroups have four lanes.
var<workgroup> totals: array<u32, 64>;

@compute @workgroup_size(SCAN_THREADS)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let thread = subgroup * size + lane;
    let weights = weights_of(workgroup.x, thread);
    let own = weights.x + weights.y + weights.z + weights.w;
    let before = subgroupExclusiveAdd(own);
    if (lane == size - 1u) {
        totals[subgroup] = before + own;
    }
    workgroupBarrier();
    var exclusive = before;
    var total = 0u;
    for (var s = 0u; s < SCAN_THREADS / size; s += 1u) {
        exclusive += select(0u, totals[s], s < subgroup);
        total += totals[s];
    }
    store_tile(workgroup.x, thread, weights, exclusive, total);
}
