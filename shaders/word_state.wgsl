// What a crossed block's words are in up to 16 rows, from their bounds.
//
//     words of a block      0 1 2 3 4 5 6 7      (32 in truth)
//     one view              . . X X I I I X      . outside, X crossed, I inside
//
// Only crossed words read their instances.

@group(0) @binding(6) var<storage, read_write> counts: array<atomic<u32>>;

// Rows that are answered from one load of the instances.
const ROW_GROUP: u32 = 16u;

// The rows of a group (bit r: row first_row + r) that cross the block.
fn crossing_rows(chunk: Chunk, first_row: u32, row_count: u32, at: u32) -> u32 {
    let centre = bounds[at].centre;
    let radius = bounds[at].radius;
    let max_scale = bounds[at].max_scale;
    var crossing = 0u;
    for (var r = 0u; r < row_count; r += 1u) {
        let state = bound_state(chunk, rows[first_row + r], centre, radius, max_scale);
        crossing |= select(0u, 1u << r, state == PARTIAL);
    }
    return crossing;
}

// Bit r: the word is inside row r; bit 16 + r: the row crosses it. Of the rows of `crossing`.
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

// All bits that a word of a block of `len` instances has.
fn full_word(word: u32, len: u32) -> u32 {
    let own = clamp(len, word * 32u, word * 32u + 32u) - word * 32u;
    return select(0xffffffffu >> (32u - own), 0u, own == 0u);
}
