// The last rung of the ladder: votes are the bits of ballots (vote.wgsl writes them), subgroup
// operations scan the words of a block, and one global atomicAdd places the block in the row's
// region.

import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, BLOCK_WORDS, batch, block_of, chunk_of, chunks,
};
import package::shared::survivors::{reserve, store};

@group(0) @binding(6) var<storage, read> words: array<u32>;

var<workgroup> block_words: array<u32, BLOCK_WORDS>;
// Survivors of the block before each word.
var<workgroup> before_word: array<u32, BLOCK_WORDS>;

// Writes the ids of a block's words from `place` on, in instance order.
//
//     words of a block (4 bits each here)    0110 1001
//     survivors before each word             0    2
//     bit 4 of the block: 2 + bits below it in its word (0) = place 2 in the block
fn write_survivors(place: u32, first_id: u32, thread: u32) {
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let i = k * BLOCK_THREADS + thread;
        let word = block_words[i / 32u];
        let bit = 1u << (i % 32u);
        let at = place + before_word[i / 32u] + countOneBits(word & (bit - 1u));
        if ((word & bit) != 0u) {
            store(at, first_id + i);
        }
    }
}

// Survivors of each subgroup's words: 8 if subgroups have four lanes.
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
            let cell = chunk.first_count + r * chunk.block_count + block;
            word = words[cell * BLOCK_WORDS + thread];
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
