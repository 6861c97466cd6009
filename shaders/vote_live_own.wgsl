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
        // In bounds also where an earlier frame, which ended before `compact`, has left something else.
        let block_in_batch = min(lists.entries[item].x, batch.block_count - 1u);
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
    let row = rows[chunk.first_row];
    var word = 0u;
    var left = asked;
    while (left != 0u) {
        // Behind the last one, the first of the four once more.
        let a = firstTrailingBit(left);
        left &= left - 1u;
        let b = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let c = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let d = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let sa = load_sphere(chunk, first + a * 32u);
        let sb = load_sphere(chunk, first + b * 32u);
        let sc = load_sphere(chunk, first + c * 32u);
        let sd = load_sphere(chunk, first + d * 32u);
        word = select(word, subgroupBallot(is_visible(chunk, row, sa, first + a * 32u)).x, lane == a);
        word = select(word, subgroupBallot(is_visible(chunk, row, sb, first + b * 32u)).x, lane == b);
        word = select(word, subgroupBallot(is_visible(chunk, row, sc, first + c * 32u)).x, lane == c);
        word = select(word, subgroupBallot(is_visible(chunk, row, sd, first + d * 32u)).x, lane == d);
    }
    return word;
}
