// Votes as article 4 starts: a whole u32 an instance and row, 0 or 1. They lie as the bits of `vote` do:
// instance i of a block at flags[(first_count + row * block_count + block) * BLOCK + i].

@group(0) @binding(5) var<storage, read_write> flags: array<u32>;

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
        let row = rows[chunk.first_row + r];
        let first = (chunk.first_count + r * chunk.block_count + block) * BLOCK;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let i = k * BLOCK_THREADS + thread;
            flags[first + i] = u32(is_visible(chunk, row, spheres[k], block * BLOCK + i));
        }
    }
}
