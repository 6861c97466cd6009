// Vote on crossed blocks, through workgroup memory: 32 contiguous threads answer for one crossed
// word.

import package::cull::lists::lists;
import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, BLOCK_WORDS, Chunk, batch, chunk_of, chunks, chunk_views,
};
import package::shared::visibility::{
    INSIDE, PARTIAL, block_len, full_word, is_visible, load_sphere, row_crosses_block, word_state,
};

@group(0) @binding(6) var<storage, read_write> words: array<u32>;
@group(0) @binding(7) var<storage, read_write> counts: array<atomic<u32>>;

// Rows that are voted on together: two bits per row.
override ROW_GROUP: u32;

// Per word: bit r says that the word is inside row r of the group, bit ROW_GROUP + r that row r
// crosses it.
var<workgroup> states: array<u32, BLOCK_WORDS>;
// The words that some row of the group crosses, in any order.
var<workgroup> crossed_words: array<u32, BLOCK_WORDS>;
var<workgroup> crossed_len: atomic<u32>;
// Answers of the words in the current row.
var<workgroup> answers: array<atomic<u32>, BLOCK_WORDS>;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let count = min(atomicLoad(&lists.crossed_count), batch.block_count);
    for (var item = workgroup.x; item < count; item += workgroups.x) {
        // Within bounds even if an earlier frame, which ended before `compact`, left other entries.
        let block_in_batch = min(lists.entries[item].x, batch.block_count - 1u);
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        for (var group = 0u; group < chunk.row_count; group += ROW_GROUP) {
            vote_group(chunk, block_in_batch - chunk.first_block, group, thread);
        }
    }
}

// The rows of the group that cross the block, as bits.
fn crossing_rows(chunk: Chunk, first_row: u32, row_count: u32, at: u32) -> u32 {
    var crossing = 0u;
    for (var r = 0u; r < row_count; r += 1u) {
        crossing |= select(0u, 1u << r, row_crosses_block(chunk, first_row + r, at));
    }
    return crossing;
}

// The states of a word in the rows of the group that cross its block.
fn word_states(chunk: Chunk, first_row: u32, at: u32, word: u32, crossing: u32) -> u32 {
    var states = 0u;
    var left = crossing;
    while (left != 0u) {
        let r = firstTrailingBit(left);
        left &= left - 1u;
        let state = word_state(chunk, first_row + r, at, word);
        states |= select(0u, 1u << r, state == INSIDE)
            | select(0u, 1u << (r + ROW_GROUP), state == PARTIAL);
    }
    return states;
}

fn vote_group(chunk: Chunk, block: u32, group: u32, thread: u32) {
    let first_row = chunk.first_row + group;
    let at = chunk.first_instance / BLOCK + block;
    let len = block_len(chunk, block);
    // Uniform over the workgroup.
    let crossing = crossing_rows(chunk, first_row, min(chunk.row_count - group, ROW_GROUP), at);
    if (thread < BLOCK_WORDS) {
        let state = word_states(chunk, first_row, at, thread, crossing);
        if ((state >> ROW_GROUP) != 0u) {
            crossed_words[atomicAdd(&crossed_len, 1u)] = thread;
        }
        states[thread] = state;
    }
    workgroupBarrier();

    let crossed = atomicLoad(&crossed_len);
    let first = block * BLOCK + thread % 32u;
    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let j = k * (BLOCK_THREADS / 32u) + thread / 32u;
        if (j < crossed) {
            spheres[k] = load_sphere(chunk, first + crossed_words[j] * 32u);
        }
    }
    var left = crossing;
    while (left != 0u) {
        let r = firstTrailingBit(left);
        left &= left - 1u;
        let planes = chunk_views[first_row + r].planes;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let j = k * (BLOCK_THREADS / 32u) + thread / 32u;
            if (j < crossed) {
                let word = crossed_words[j];
                let crosses = ((states[word] >> (r + ROW_GROUP)) & 1u) != 0u;
                if (crosses && is_visible(chunk, planes, spheres[k], first + word * 32u)) {
                    atomicOr(&answers[word], 1u << (thread % 32u));
                }
            }
        }
        workgroupBarrier();
        if (thread < BLOCK_WORDS) {
            var word = atomicExchange(&answers[thread], 0u);
            if (((states[thread] >> r) & 1u) != 0u) {
                word = full_word(thread, len);
            }
            let cell = chunk.first_count + (group + r) * chunk.block_count + block;
            words[cell * BLOCK_WORDS + thread] = word;
            atomicAdd(&counts[cell], countOneBits(word));
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        atomicStore(&crossed_len, 0u);
    }
    workgroupBarrier();
}
