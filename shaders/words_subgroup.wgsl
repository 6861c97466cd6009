// Survivors before each of the block's 32 words by a subgroup prefix sum.

// Survivors of each subgroup's words: 8 when subgroups have four lanes.
var<workgroup> subgroup_totals: array<u32, 8>;

fn load_words(count: u32, thread: u32, subgroup: u32, lane: u32, size: u32) {
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
}
