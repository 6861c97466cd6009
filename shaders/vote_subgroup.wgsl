// Votes by ballot (vote_row_subgroup.wgsl) on every block.

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;
    let first = block * BLOCK + subgroup * size * BLOCK_ITEMS + lane;

    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        spheres[k] = load_sphere(chunk, first + k * size);
    }
    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let word = vote_row(chunk, rows[chunk.first_row + r], &spheres, first, lane, size);
        if (lane < (size >> 2u)) {
            words[first_word(chunk, r, block) + subgroup * (size >> 2u) + lane] = word;
            add_word(r, word);
        }
        close_row(chunk, block, r, subgroup * size + lane);
    }
}
