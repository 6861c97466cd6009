// The vote on words of a strip, by one subgroup.

// A word of a row. Blocks that the row holds or drops as a whole answer for their words.
fn state_of_word(chunk: Chunk, row: u32, word: u32) -> u32 {
    let at = chunk.first_instance / BLOCK + word / BLOCK_WORDS;
    let state = bound_state(chunk, rows[row], bounds[at].centre, bounds[at].radius, bounds[at].max_scale);
    if (state != PARTIAL) {
        return state;
    }
    return word_state(chunk, row, at, word % BLOCK_WORDS);
}

// A lane's word, of `words_each` words of a row that begin with word `first_word`; zero in lanes behind them.
fn vote_words(chunk: Chunk, row: u32, first_word: u32, words_each: u32, lane: u32, size: u32) -> u32 {
    let own = first_word + lane;
    var state = OUTSIDE;
    if (lane < words_each && own / BLOCK_WORDS < chunk.block_count) {
        state = state_of_word(chunk, row, own);
    }
    // Only words that the row crosses read their instances.
    let asked = subgroupBallot(state == PARTIAL);
    let first = first_word * 32u + lane;
    var word = 0u;
    if (INSTANCE_IS_RIGID & (chunk.flags == 0u) & (size == 32u) & (first - lane + words_each * 32u <= chunk.instance_count)) {
        word = vote_asked_words(chunk, rows[row], asked.x, chunk.first_instance + first, lane);
    } else {
        word = vote_asked(chunk, rows[row], asked, first, words_each, lane, size);
    }
    if (state == INSIDE) {
        word = full_word(own, chunk.instance_count);
    }
    return select(word, 0u, state == OUTSIDE);
}

// From bounding spheres, at any subgroup size; `first` is the lane's first instance, counted from the start
// of the chunk.
fn vote_asked(chunk: Chunk, row: Row, asked: vec4<u32>, first: u32, words_each: u32, lane: u32, size: u32) -> u32 {
    var word = 0u;
    for (var k = 0u; k * size < words_each * 32u; k += 1u) {
        let i = first + k * size;
        let own = (k * size + lane) / 32u;
        var visible = false;
        if (((component(asked, own / 32u) >> (own % 32u)) & 1u) != 0u) {
            visible = is_visible(chunk, row, load_sphere(chunk, i), i);
        }
        word = keep_ballot(word, k, subgroupBallot(visible), lane, size);
    }
    return word;
}
