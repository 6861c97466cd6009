// Three levels: a subgroup counts its ballot, an atomicAdd in workgroup memory places the subgroup in the
// workgroup, one global atomicAdd places the workgroup in the row's region. The first level comes with the
// tier (place_in_group_subgroup.wgsl, place_in_group_workgroup.wgsl).

var<workgroup> group_count: atomic<u32>;
var<workgroup> group_place: u32;

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let first = (block_in_batch - chunk.first_block) * BLOCK + thread;
    let lane = lane_index();

    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        spheres[k] = load_sphere(chunk, first + k * BLOCK_THREADS);
    }
    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let row = rows[chunk.first_row + r];
        if (thread == 0u) {
            atomicStore(&group_count, 0u);
        }
        workgroupBarrier();
        var places: array<u32, BLOCK_ITEMS>;
        var mask = 0u;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let visible = is_visible(chunk, row, spheres[k], first + k * BLOCK_THREADS);
            places[k] = place_in_group(visible, lane);
            mask |= select(0u, 1u << k, visible);
        }
        workgroupBarrier();
        if (thread == 0u) {
            let count = atomicLoad(&group_count);
            if (count > 0u) {
                group_place = reserve(chunk, r, count);
            }
        }
        workgroupBarrier();
        let base = group_place;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            if ((mask & (1u << k)) != 0u) {
                store(base + places[k], chunk.first_instance + first + k * BLOCK_THREADS);
            }
        }
    }
}
