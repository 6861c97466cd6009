// Votes through workgroup memory, on the blocks that a view crosses and in the rows of those views.

@group(0) @binding(7) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(8) var<storage, read> live: Live;

// Thread t answers for instances 8t .. 8t + 7, a byte; four bytes are a word.
var<workgroup> bytes: array<u32, BLOCK_THREADS>;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var at = workgroup.x; at < live.count; at += workgroups.x) {
        let entry = live.blocks[at];
        if ((entry & CROSSED) == 0u) {
            continue;
        }
        let block_in_batch = entry & ~CROSSED;
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        let bound = bounds[chunk.first_instance / BLOCK + block];
        let first = block * BLOCK + thread * BLOCK_ITEMS;

        var spheres: array<vec4<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            spheres[k] = load_sphere(chunk, first + k);
        }
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let row = rows[chunk.first_row + r];
            if (block_state(chunk, row, bound) != PARTIAL) {
                continue;
            }
            var byte = 0u;
            for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
                byte |= select(0u, 1u << k, is_visible(chunk, row, spheres[k], first + k));
            }
            bytes[thread] = byte;
            workgroupBarrier();
            if (thread < BLOCK_WORDS) {
                let b = thread * 4u;
                let word = bytes[b] | (bytes[b + 1u] << 8u) | (bytes[b + 2u] << 16u) | (bytes[b + 3u] << 24u);
                words[first_word(chunk, r, block) + thread] = word;
                atomicAdd(&counts[chunk.first_count + r * chunk.block_count + block], countOneBits(word));
            }
            // The next row overwrites the bytes.
            workgroupBarrier();
        }
    }
}
