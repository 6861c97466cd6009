// Survivors before each of the block's 32 words by a subgroup prefix sum.

// Survivors of each subgroup's words: 8 when subgroups have four lanes.
var<workgroup> subgroup_totals: array<u32, 8>;

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
        let count = chunk.first_count + r * chunk.block_count + block;
        let place = place_of(count);
        // The next place is this one: no survivor. The same for all threads.
        if (place_of(count + 1u) == place) {
            continue;
        }
        var word = 0u;
        if (thread < BLOCK_WORDS) {
            word = words[count * BLOCK_WORDS + thread];
        }
        let bits = countOneBits(word);
        let before = subgroupExclusiveAdd(bits);
        // A subgroup may be larger than the 32 words (then the first has them all) or smaller.
        if (thread < BLOCK_WORDS) {
            block_words[thread] = word;
            before_word[thread] = before;
            if (lane == size - 1u) {
                subgroup_totals[subgroup] = before + bits;
            }
        }
        workgroupBarrier();
        if (size < BLOCK_WORDS) {
            if (thread < BLOCK_WORDS) {
                var sum = before;
                for (var s = 0u; s < subgroup; s += 1u) {
                    sum += subgroup_totals[s];
                }
                before_word[thread] = sum;
            }
            workgroupBarrier();
        }
        write_survivors(place, chunk.first_instance + block * BLOCK, thread);
        // The next row overwrites the words.
        workgroupBarrier();
    }
}
