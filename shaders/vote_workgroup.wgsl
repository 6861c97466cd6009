// Votes through workgroup memory: thread t answers for instances 8t .. 8t + 7, a byte; four bytes are a word.

var<workgroup> bytes: array<u32, BLOCK_THREADS>;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    begin_vote(block_in_batch, thread);
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;
    let first = block * BLOCK + thread * BLOCK_ITEMS;

    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        spheres[k] = load_sphere(chunk, first + k);
    }

    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let row = rows[chunk.first_row + r];
        var byte = 0u;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            byte |= select(0u, 1u << k, is_visible(chunk, row, spheres[k], first + k));
        }
        bytes[thread] = byte;
        workgroupBarrier();
        if (thread < BLOCK_WORDS) {
            let at = thread * 4u;
            let word = bytes[at] | (bytes[at + 1u] << 8u) | (bytes[at + 2u] << 16u) | (bytes[at + 3u] << 24u);
            words[first_word(chunk, r, block) + thread] = word;
            add_word(r, word);
        }
        close_row(chunk, block, r, thread);
        // The next row overwrites the bytes.
        workgroupBarrier();
    }
}
