// Stage 1 where blocks are very many, each has one row, and all subgroups have 32 lanes: a subgroup has a block of its
// own, waits for memory most of the time, and never for other subgroups. A ballot is a word, and lane w keeps word w.

@compute @workgroup_size(BLOCK_THREADS)
fn vote_own(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let block_in_batch = block_of(workgroup, workgroups.x) * OWN_BLOCKS + subgroup;
    if (block_in_batch >= batch.block_count) {
        return;
    }
    begin_vote(block_in_batch, lane);
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;
    let row = rows[chunk.first_row];
    let first = block * BLOCK + lane;
    var word = 0u;
    if (is_fast(chunk, first, lane, BLOCK_THREADS)) {
        // Four loads are on their way at once; more, or an array of them, take registers from other subgroups.
        let at = chunk.first_instance + first;
        let wide = widened(row, chunk.sphere.w);
        for (var w = 0u; w < BLOCK_WORDS; w += 4u) {
            let a = load_instance(at + w * 32u).position;
            let b = load_instance(at + w * 32u + 32u).position;
            let c = load_instance(at + w * 32u + 64u).position;
            let d = load_instance(at + w * 32u + 96u).position;
            word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, a)).x, lane == w);
            word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, b)).x, lane == w + 1u);
            word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, c)).x, lane == w + 2u);
            word = select(word, subgroupBallot(keeps_centre(chunk, row, wide, d)).x, lane == w + 3u);
        }
    } else {
        for (var w = 0u; w < BLOCK_WORDS; w += 1u) {
            let i = first + w * 32u;
            let ballot = subgroupBallot(is_visible(chunk, row, load_sphere(chunk, i), i)).x;
            word = select(word, ballot, lane == w);
        }
    }
    words[first_word(chunk, 0u, block) + lane] = word;
    let survivors = subgroupAdd(countOneBits(word));
    if (lane == 0u) {
        counts[chunk.first_count + block] = survivors;
    }
}
