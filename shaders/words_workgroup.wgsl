// Survivors before each of the block's 32 words, added up from workgroup memory.

fn load_words(count: u32, thread: u32) {
    if (thread < BLOCK_WORDS) {
        block_words[thread] = words[count * BLOCK_WORDS + thread];
    }
    workgroupBarrier();
    if (thread < BLOCK_WORDS) {
        var sum = 0u;
        for (var w = 0u; w < thread; w += 1u) {
            sum += countOneBits(block_words[w]);
        }
        before_word[thread] = sum;
    }
    workgroupBarrier();
}
