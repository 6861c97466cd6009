// The last rung of article 4: votes are the bits of ballots (`vote` writes them), the words of a block are
// scanned by subgroup operations, one atomicAdd places the block in the row's region.

// Survivors of each subgroup's words: 8 when subgroups have four lanes.
var<workgroup> subgroup_totals: array<u32, 8>;
var<workgroup> block_place: u32;

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
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
    let thread = subgroup * size + lane;

    for (var r = 0u; r < chunk.row_count; r += 1u) {
        var word = 0u;
        if (thread < BLOCK_WORDS) {
            word = words[(chunk.first_count + r * chunk.block_count + block) * BLOCK_WORDS + thread];
        }
        let bits = countOneBits(word);
        var before = subgroupExclusiveAdd(bits);
        if (thread < BLOCK_WORDS && lane == size - 1u) {
            subgroup_totals[subgroup] = before + bits;
        }
        workgroupBarrier();
        if (thread < BLOCK_WORDS) {
            for (var s = 0u; s < subgroup; s += 1u) {
                before += subgroup_totals[s];
            }
            block_words[thread] = word;
            before_word[thread] = before;
            if (thread == BLOCK_WORDS - 1u && before + bits > 0u) {
                block_place = reserve(chunk, r, before + bits);
            }
        }
        workgroupBarrier();
        write_survivors(block_place, chunk.first_instance + block * BLOCK, thread);
        // The next row overwrites the words.
        workgroupBarrier();
    }
}
