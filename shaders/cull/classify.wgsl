// Classify: blocks. One thread per block tests the bound of the block in every row of its chunk. A
// count starts with what is known: all instances of the block if it is inside, otherwise none.
// Blocks that some view crosses go to a list. The other blocks need no further work.

import package::cull::lists::lists;
import package::shared::layout::{BLOCK, BLOCK_WORDS, CLASSIFY_THREADS, batch, chunk_of, chunks, chunk_views};
import package::shared::visibility::{
    INSIDE, PARTIAL, block_len, bound_state, bounds, full_word, scales_of_block,
};

@group(0) @binding(6) var<storage, read_write> words: array<u32>;
@group(0) @binding(7) var<storage, read_write> counts: array<u32>;

// Crossed blocks of the workgroup, and the place of the first of them in the list.
var<workgroup> group_crossed: atomic<u32>;
var<workgroup> group_first: u32;

@compute @workgroup_size(CLASSIFY_THREADS)
fn classify(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = workgroup.x * CLASSIFY_THREADS + thread;
    if (block_in_batch == 0u) {
        atomicStore(&lists.occupied_count, 0u);
    }
    var is_crossed = false;
    if (block_in_batch < batch.block_count) {
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        let at = chunk.first_instance / BLOCK + block;
        let center = bounds[at].center;
        let radius = bounds[at].radius;
        let scales = scales_of_block(at);
        // Same as `block_state`, which would load the bound in each row.
        let most = select(INSIDE, PARTIAL, bounds[at].gaps != 0u);
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let planes = chunk_views[chunk.first_row + r].planes;
            let state = min(bound_state(chunk, planes, center, radius, scales), most);
            is_crossed = is_crossed | (state == PARTIAL);
            let cell = chunk.first_count + r * chunk.block_count + block;
            let len = block_len(chunk, block);
            counts[cell] = select(0u, len, state == INSIDE);
            // Units need words, except of full blocks.
            if (state == INSIDE && len < BLOCK && batch.unit_words < BLOCK_WORDS) {
                for (var w = 0u; w < BLOCK_WORDS; w += 1u) {
                    words[cell * BLOCK_WORDS + w] = full_word(w, len);
                }
            }
        }
    }
    // One global atomicAdd per workgroup.
    var place = 0u;
    if (is_crossed) {
        place = atomicAdd(&group_crossed, 1u);
    }
    workgroupBarrier();
    if (thread == 0u) {
        let crossed = atomicLoad(&group_crossed);
        if (crossed > 0u) {
            group_first = atomicAdd(&lists.crossed_count, crossed);
        }
    }
    workgroupBarrier();
    // A list that was not emptied (a frame without `compact`) loses blocks instead of overflowing.
    if (is_crossed && group_first + place < batch.block_count) {
        lists.entries[group_first + place].x = block_in_batch;
    }
}
