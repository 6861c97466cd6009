// Stage 1 on crossed blocks where these may be many, each has one row, and all subgroups have 32 lanes: `vote_block`
// (vote_live_subgroup.wgsl) for one row. Fewer registers, so more subgroups, wait for memory side by side.

@group(0) @binding(6) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let end = min(atomicLoad(&lists.crossed_count), batch.block_count);
    for (var item = workgroup.x * OWN_BLOCKS + subgroup; item < end; item += workgroups.x * OWN_BLOCKS) {
        let block_in_batch = lists.entries[item].x;
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        let len = block_len(chunk, block);
        let state = word_state(chunk, chunk.first_row, chunk.first_instance / BLOCK + block, lane);
        let asked = subgroupBallot(state == PARTIAL).x;
        let first = block * BLOCK + lane;
        var word: u32;
        if (INSTANCE_IS_RIGID & (chunk.flags == 0u) & (len == BLOCK)) {
            word = vote_asked_words(chunk, rows[chunk.first_row], asked, chunk.first_instance + first, lane);
        } else {
            word = vote_asked_spheres(chunk, asked, first, lane);
        }
        word = select(0u, word, state == PARTIAL);
        if (state == INSIDE) {
            word = full_word(lane, len);
        }
        let count = chunk.first_count + block;
        words[count * BLOCK_WORDS + lane] = word;
        let survivors = subgroupAdd(countOneBits(word));
        if (lane == 0u) {
            counts[count] = survivors;
        }
    }
}

// From bounding spheres; `first` is the lane's instance in the block's first word, counted from the start of the chunk.
fn vote_asked_spheres(chunk: Chunk, asked: u32, first: u32, lane: u32) -> u32 {
    var word = 0u;
    for (var left = asked; left != 0u; left &= left - 1u) {
        let own = firstTrailingBit(left);
        let i = first + own * 32u;
        let ballot = subgroupBallot(is_visible(chunk, rows[chunk.first_row], load_sphere(chunk, i), i)).x;
        word = select(word, ballot, lane == own);
    }
    return word;
}
