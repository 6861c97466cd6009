// Votes of 32 bits: 0 or 1 per instance and row. They lie in the order of the bits of vote.wgsl:
// instance i of a block is at
//     flags[(first_count + row * block_count + block) * BLOCK + i].

import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, batch, block_of, chunk_of, chunks, chunk_views,
};
import package::shared::visibility::{is_visible, load_sphere};

@group(0) @binding(15) var<storage, read_write> flags: array<u32>;

@compute @workgroup_size(BLOCK_THREADS)
fn vote_flags(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;

    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        spheres[k] = load_sphere(chunk, block * BLOCK + k * BLOCK_THREADS + thread);
    }
    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let planes = chunk_views[chunk.first_row + r].planes;
        let first = (chunk.first_count + r * chunk.block_count + block) * BLOCK;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let i = k * BLOCK_THREADS + thread;
            flags[first + i] = u32(is_visible(chunk, planes, spheres[k], block * BLOCK + i));
        }
    }
}
