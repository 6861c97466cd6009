// Ballot and bit count: one global atomicAdd per subgroup. Its result is broadcast to all lanes.

import package::shared::ballot::{ballot_before, ballot_count};
import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, batch, block_of, chunk_of, chunks, chunk_views,
};
import package::shared::survivors::{reserve, store};
import package::shared::visibility::{is_visible, load_sphere};

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let first = (block_in_batch - chunk.first_block) * BLOCK + thread;

    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        spheres[k] = load_sphere(chunk, first + k * BLOCK_THREADS);
    }
    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let planes = chunk_views[chunk.first_row + r].planes;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let i = first + k * BLOCK_THREADS;
            let visible = is_visible(chunk, planes, spheres[k], i);
            let ballot = subgroupBallot(visible);
            var base = 0u;
            if (lane == 0u && any(ballot != vec4<u32>(0u))) {
                base = reserve(chunk, r, ballot_count(ballot));
            }
            base = subgroupBroadcastFirst(base);
            if (visible) {
                store(base + ballot_before(ballot, lane), chunk.first_instance + i);
            }
        }
    }
}
