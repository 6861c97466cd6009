// Votes by ballot (vote_row_subgroup.wgsl) on every block.

// Rows that the workgroup reads at once, behind a barrier, rather than each thread for itself.
const ROW_SHARE: u32 = 16u;

var<workgroup> shared_pairs: array<Pairs, ROW_SHARE>;
// Whether the pairs are all of the test.
var<workgroup> is_simple: array<u32, ROW_SHARE>;

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
    let thread = subgroup * size + lane;
    begin_vote(block_in_batch, thread);
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;
    let first = block * BLOCK + subgroup * size * BLOCK_ITEMS + lane;

    // The same for the whole block, so that all its threads meet at the barriers of `close_row`.
    if (is_fast(chunk, block * BLOCK + lane, lane, BLOCK_THREADS)) {
        var centres: array<vec3<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            centres[k] = load_instance(chunk.first_instance + first + k * size).position;
        }
        for (var group = 0u; group < chunk.row_count; group += ROW_SHARE) {
            let row_count = min(chunk.row_count - group, ROW_SHARE);
            if (thread < row_count) {
                shared_pairs[thread] = widened_pairs(rows[chunk.first_row + group + thread].pairs, chunk.sphere.w);
                is_simple[thread] = u32(rows[chunk.first_row + group + thread].reach.w < 0.0) & shared_pairs[thread].is_paired;
            }
            workgroupBarrier();
            for (var r = 0u; r < row_count; r += 1u) {
                var word = 0u;
                if (is_simple[r] != 0u) {
                    word = vote_pairs(shared_pairs[r], &centres, lane, size);
                } else {
                    word = vote_centres(chunk, rows[chunk.first_row + group + r], &centres, lane, size);
                }
                store_word(chunk, block, group + r, word, thread, lane, size);
            }
            // The next rows take the place of these.
            workgroupBarrier();
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
