// Stage 1 on the blocks that a view crosses. Workgroups stride over the list that `classify` made, so the dispatch
// needs no count from the GPU. Of a block only the words that a view's border crosses read their instances: what
// the others are is known from the words' bounds.
//
//     words of a block      0 1 2 3 4 5 6 7      (32 in truth)
//     one view              . . X X I I I X      . outside, X crossed, I inside
//     crossed_words         2 3 7                each 32 threads load one of them
//
// The tier's file (vote_live_subgroup.wgsl, vote_live_workgroup.wgsl) says how 32 answers become a word.

// Rows that are answered from one load of the instances: two bits each in a u32.
const ROW_GROUP: u32 = 16u;

// State of each word in the group's rows: bit r inside, bit 16 + r crossed, else outside.
var<workgroup> states: array<u32, BLOCK_WORDS>;
// The words that some row of the group crosses, in any order.
var<workgroup> crossed_words: array<u32, BLOCK_WORDS>;
var<workgroup> crossed_len: atomic<u32>;
// Answers of the crossed words in the row at hand.
var<workgroup> answers: array<atomic<u32>, BLOCK_WORDS>;
// Survivors of the block in each row of the group.
var<workgroup> survivors: array<atomic<u32>, ROW_GROUP>;

// What the word is in the rows of `crossing` (bit r: row first_row + r), as `states` has it.
fn word_state(chunk: Chunk, first_row: u32, at: u32, word: u32, crossing: u32) -> u32 {
    if (bounds[at].loose != 0u) {
        return crossing << ROW_GROUP;
    }
    let step = bounds[at].radius / WORD_STEPS;
    let steps = word_steps(bounds[at].words[word]);
    let centre = word_centre(bounds[at].centre, step, steps.xyz);
    let radius = f32(steps.w) * step;
    let max_scale = bounds[at].max_scale;
    var state = 0u;
    var left = crossing;
    while (left != 0u) {
        let r = firstTrailingBit(left);
        left &= left - 1u;
        let own = bound_state(chunk, rows[first_row + r], centre, radius, max_scale);
        state |= select(0u, 1u << r, own == INSIDE) | select(0u, 1u << (r + ROW_GROUP), own == PARTIAL);
    }
    return state;
}

fn vote_group(chunk: Chunk, block: u32, group: u32, own: Own) {
    let first_row = chunk.first_row + group;
    let row_count = min(chunk.row_count - group, ROW_GROUP);
    let at = chunk.first_instance / BLOCK + block;
    // The same for all threads.
    var crossing = 0u;
    for (var r = 0u; r < row_count; r += 1u) {
        let state = bound_state(chunk, rows[first_row + r], bounds[at].centre, bounds[at].radius, bounds[at].max_scale);
        crossing |= select(0u, 1u << r, state == PARTIAL);
    }
    if (crossing == 0u) {
        return;
    }
    let len = block_len(chunk, block);
    let thread = own.thread;
    if (thread < BLOCK_WORDS) {
        var state = 0u;
        if (thread * 32u < len) {
            state = word_state(chunk, first_row, at, thread, crossing);
        }
        if ((state >> ROW_GROUP) != 0u) {
            crossed_words[atomicAdd(&crossed_len, 1u)] = thread;
        }
        states[thread] = state;
    }
    workgroupBarrier();

    let crossed = atomicLoad(&crossed_len);
    let slot = thread / 32u;
    let bit = thread % 32u;
    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let j = k * (BLOCK_THREADS / 32u) + slot;
        if (j < crossed) {
            spheres[k] = load_sphere(chunk, block * BLOCK + crossed_words[j] * 32u + bit);
        }
    }
    var left = crossing;
    while (left != 0u) {
        let r = firstTrailingBit(left);
        left &= left - 1u;
        let row = rows[first_row + r];
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            if (k * (BLOCK_THREADS / 32u) < crossed) {
                let j = k * (BLOCK_THREADS / 32u) + slot;
                let word = crossed_words[min(j, crossed - 1u)];
                let asked = (j < crossed) & (((states[word] >> (r + ROW_GROUP)) & 1u) != 0u);
                let i = block * BLOCK + word * 32u + bit;
                answer(own, word, asked & is_visible(chunk, row, spheres[k], i));
            }
        }
        workgroupBarrier();
        if (thread < BLOCK_WORDS) {
            var word = atomicExchange(&answers[thread], 0u);
            if (((states[thread] >> r) & 1u) != 0u) {
                // Inside: all that the block has.
                word = 0xffffffffu >> (32u - min(len - thread * 32u, 32u));
            }
            words[(chunk.first_count + (group + r) * chunk.block_count + block) * BLOCK_WORDS + thread] = word;
            atomicAdd(&survivors[r], countOneBits(word));
        }
        workgroupBarrier();
    }
    if (thread < row_count && ((crossing >> thread) & 1u) != 0u) {
        let own_survivors = atomicExchange(&survivors[thread], 0u);
        set_count(chunk.first_count + (group + thread) * chunk.block_count + block, own_survivors);
    }
    if (thread == 0u) {
        atomicStore(&crossed_len, 0u);
    }
    workgroupBarrier();
}

fn vote_live(workgroup: u32, workgroups: u32, own: Own) {
    let crossed = atomicLoad(&progress.crossed);
    for (var item = workgroup; item < crossed; item += workgroups) {
        let block_in_batch = counts[batch.count_len + item];
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        for (var group = 0u; group < chunk.row_count; group += ROW_GROUP) {
            vote_group(chunk, block_in_batch - chunk.first_block, group, own);
        }
    }
}
