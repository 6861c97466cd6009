// Stage 1. A workgroup loads its block of 1,024 instances once and tests each against every view of the
// chunk. The answer is one bit an instance and row: bit i % 32 of word i / 32, written to
//     words[(first_count + row * block_count + block) * BLOCK_WORDS + i / 32].
// The entry points (vote_subgroup.wgsl, vote_workgroup.wgsl) differ only in how 32 answers become a word.

fn first_word(chunk: Chunk, row: u32, block: u32) -> u32 {
    return (chunk.first_count + row * chunk.block_count + block) * BLOCK_WORDS;
}
