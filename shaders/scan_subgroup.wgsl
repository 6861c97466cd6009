// The scan by subgroup prefix sums. Threads are numbered subgroup by subgroup.

// One total a subgroup: 64 when subgroups have four lanes.
var<workgroup> totals: array<u32, 64>;

fn scan_workgroup(value: u32, subgroup: u32, lane: u32, size: u32) -> Prefix {
    let before = subgroupExclusiveAdd(value);
    if (lane == size - 1u) {
        totals[subgroup] = before + value;
    }
    workgroupBarrier();
    var prefix = Prefix(before, 0u);
    for (var s = 0u; s < SCAN_TILE / size; s += 1u) {
        let total = totals[s];
        prefix.exclusive += select(0u, total, s < subgroup);
        prefix.total += total;
    }
    // The next call overwrites the totals.
    workgroupBarrier();
    return prefix;
}

@compute @workgroup_size(SCAN_TILE)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let thread = subgroup * size + lane;
    let survivors = count_survivors(workgroup.x * SCAN_TILE + thread);
    store_tile(workgroup.x, thread, scan_workgroup(survivors, subgroup, lane, size));
}

@compute @workgroup_size(SCAN_TILE)
fn spine(
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let tiles = tile_count();
    var carry = 0u;
    for (var first = 0u; first < tiles; first += SCAN_TILE) {
        let tile = first + subgroup * size + lane;
        var total = 0u;
        if (tile < tiles) {
            total = partials[tile];
        }
        let prefix = scan_workgroup(total, subgroup, lane, size);
        if (tile < tiles) {
            partials[tile] = carry + prefix.exclusive;
        }
        carry += prefix.total;
    }
}
