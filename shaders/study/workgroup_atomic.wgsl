// Three levels: a subgroup counts its ballot, an atomicAdd in workgroup memory places the subgroup
// in the workgroup, and one global atomicAdd places the workgroup in the row's region. Without
// subgroups, the first two levels are one.

import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, batch, block_of, chunk_of, chunks, chunk_views,
};
import package::shared::survivors::{reserve, store};
import package::shared::visibility::{is_visible, load_sphere};
@if(subgroup) import package::shared::ballot::{ballot_before, ballot_count};

// Survivors of the workgroup in the current row, and their place.
var<workgroup> group_count: atomic<u32>;
var<workgroup> group_place: u32;

// The lane of a thread.
@if(subgroup)
fn lane_index() -> u32 {
    return subgroupExclusiveAdd(1u);
}

// Places a visible instance in the workgroup: one atomicAdd in workgroup memory per subgroup.
@if(subgroup)
fn place_in_group(visible: bool, lane: u32) -> u32 {
    let ballot = subgroupBallot(visible);
    var base = 0u;
    if (lane == 0u) {
        base = atomicAdd(&group_count, ballot_count(ballot));
    }
    return subgroupBroadcastFirst(base) + ballot_before(ballot, lane);
}

@if(!subgroup)
fn lane_index() -> u32 {
    return 0u;
}

// Places a visible instance in the workgroup: one atomicAdd in workgroup memory per instance.
@if(!subgroup)
fn place_in_group(visible: bool, lane: u32) -> u32 {
    var place = 0u;
    if (visible) {
        place = atomicAdd(&group_count, 1u);
    }
    return place;
}

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
        let planes = chunk_views[chunk.first_row + r].planes;
        if (thread == 0u) {
            atomicStore(&group_count, 0u);
        }
        workgroupBarrier();
        var places: array<u32, BLOCK_ITEMS>;
        var mask = 0u;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let visible = is_visible(chunk, planes, spheres[k], first + k * BLOCK_THREADS);
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
