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
    let thread = subgroup * size + lane;

    // The same for the whole block, so that all its threads meet at the barriers of `close_row`.
    if (is_fast(chunk, block * BLOCK + lane, lane, BLOCK_THREADS)) {
        var centres: array<vec3<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            centres[k] = load_instance(chunk.first_instance + first + k * size).position;
        }
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let word = vote_centres(chunk, rows[chunk.first_row + r], &centres, lane, size);
            store_word(chunk, block, r, word, thread, lane, size);
        }
    } else {
        var spheres: array<vec4<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            spheres[k] = load_sphere(chunk, first + k * size);
        }
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let word = vote_spheres(chunk, rows[chunk.first_row + r], &spheres, first, lane, size);
            store_word(chunk, block, r, word, thread, lane, size);
        }
    }
}

fn store_word(chunk: Chunk, block: u32, row: u32, word: u32, thread: u32, lane: u32, size: u32) {
    let words_each = size >> 2u;
    if (lane < words_each) {
        words[first_word(chunk, row, block) + thread / size * words_each + lane] = word;
        add_word(row, word);
    }
    close_row(chunk, block, row, thread);
}
