// Votes by ballot (vote_row_subgroup.wgsl), on the blocks that a view crosses and in the rows of those views.

@group(0) @binding(7) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(8) var<storage, read> live: Live;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
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
        let first = block * BLOCK + subgroup * size * BLOCK_ITEMS + lane;

        var spheres: array<vec4<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            spheres[k] = load_sphere(chunk, first + k * size);
        }
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let row = rows[chunk.first_row + r];
            if (block_state(chunk, row, bound) != PARTIAL) {
                continue;
            }
            let word = vote_row(chunk, row, &spheres, first, lane, size);
            if (lane < (size >> 2u)) {
                words[first_word(chunk, r, block) + subgroup * (size >> 2u) + lane] = word;
            }
            let survivors = subgroupAdd(countOneBits(word));
            if (lane == 0u) {
                atomicAdd(&counts[chunk.first_count + r * chunk.block_count + block], survivors);
            }
        }
    }
}
