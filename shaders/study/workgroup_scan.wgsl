// The second rung of the ladder: a workgroup scans the flags of its block in workgroup memory, one
// global atomicAdd places the block in the row's region, and the same workgroup writes the ids.
// Scan and compact are one pass. A thread has eight contiguous flags, so the scan is over 128 sums.

import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, batch, block_of, chunk_of, chunks,
};
import package::shared::survivors::{reserve, store};

@group(0) @binding(15) var<storage, read> votes: array<u32>;

var<workgroup> sums: array<u32, BLOCK_THREADS>;
var<workgroup> block_place: u32;

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
    let block = block_in_batch - chunk.first_block;

    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let cell = chunk.first_count + r * chunk.block_count + block;
        let first = cell * BLOCK + thread * BLOCK_ITEMS;
        var mask = 0u;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            mask |= votes[first + k] << k;
        }
        let survivors = countOneBits(mask);
        var inclusive = survivors;
        sums[thread] = inclusive;
        workgroupBarrier();
        for (var reach = 1u; reach < BLOCK_THREADS; reach *= 2u) {
            var before = 0u;
            if (thread >= reach) {
                before = sums[thread - reach];
            }
            workgroupBarrier();
            inclusive += before;
            sums[thread] = inclusive;
            workgroupBarrier();
        }
        if (thread == BLOCK_THREADS - 1u && inclusive > 0u) {
            block_place = reserve(chunk, r, inclusive);
        }
        workgroupBarrier();
        var place = block_place + inclusive - survivors;
        let first_id = chunk.first_instance + block * BLOCK + thread * BLOCK_ITEMS;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            if ((mask & (1u << k)) != 0u) {
                store(place, first_id + k);
                place += 1u;
            }
        }
    }
}
