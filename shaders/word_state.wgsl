// What a crossed block's words are in a row, from their bounds.
//
//     words of a block      0 1 2 3 4 5 6 7      (32 in truth)
//     one view              . . X X I I I X      . outside, X crossed, I inside
//
// Only crossed words read their instances.

// Rows that are told apart by the bits of a u32.
const ROW_GROUP: u32 = 16u;

fn row_crosses_block(chunk: Chunk, row: u32, at: u32) -> bool {
    return bound_state(chunk, rows[row], bounds[at].centre, bounds[at].radius, bounds[at].max_scale) == PARTIAL;
}

// Of a block that the row crosses; `at` is the block's place in `bounds`.
fn word_state(chunk: Chunk, row: u32, at: u32, word: u32) -> u32 {
    if (bounds[at].loose != 0u) {
        return PARTIAL;
    }
    let step = bounds[at].radius / WORD_STEPS;
    let steps = word_steps(bounds[at].words[word]);
    let centre = word_centre(bounds[at].centre, step, steps.xyz);
    return bound_state(chunk, rows[row], centre, f32(steps.w) * step, bounds[at].max_scale);
}

// All bits that a word of a block of `len` instances has.
fn full_word(word: u32, len: u32) -> u32 {
    let own = clamp(len, word * 32u, word * 32u + 32u) - word * 32u;
    return select(0xffffffffu >> (32u - own), 0u, own == 0u);
}
