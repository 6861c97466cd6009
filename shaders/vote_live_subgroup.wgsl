// Stage 1 on crossed blocks, by ballot, at any subgroup size from 4 to 128. A subgroup of S lanes owns S * 8
// instances of the block, S / 4 words; lane w has word w. Subgroups do not wait for each other.

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let count = min(atomicLoad(&crossed.count), batch.block_count);
    for (var item = workgroup.x; item < count; item += workgroups.x) {
        let block_in_batch = crossed.blocks[item];
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        for (var group = 0u; group < chunk.row_count; group += ROW_GROUP) {
            vote_group(chunk, block, group, subgroup, lane, size);
        }
    }
}

fn vote_group(chunk: Chunk, block: u32, group: u32, subgroup: u32, lane: u32, size: u32) {
    let first_row = chunk.first_row + group;
    let at = chunk.first_instance / BLOCK + block;
    let words_each = size >> 2u;
    let first_word = subgroup * words_each;
    let crossing = crossing_rows(chunk, first_row, min(chunk.row_count - group, ROW_GROUP), at);
    var state = 0u;
    if (lane < words_each) {
        state = word_state(chunk, first_row, at, first_word + lane, crossing);
    }
    // Bit w: some row crosses word w of the subgroup.
    let asked = subgroupBallot((state >> ROW_GROUP) != 0u).x;

    let first = block * BLOCK + first_word * 32u + lane;
    if (is_fast(chunk, first, lane, size) & (size == 32u) & (crossing == 1u) & (rows[first_row].reach.w < 0.0)) {
        // One view, and a word a ballot: only what is asked for, four words at a time.
        let wide = widened(rows[first_row], chunk.sphere.w);
        let at_first = chunk.first_instance + first;
        var voted = 0u;
        var left = asked;
        while (left != 0u) {
            let a = firstTrailingBit(left);
            left &= left - 1u;
            let b = select(a, firstTrailingBit(left), left != 0u);
            left &= left - 1u;
            let c = select(a, firstTrailingBit(left), left != 0u);
            left &= left - 1u;
            let d = select(a, firstTrailingBit(left), left != 0u);
            left &= left - 1u;
            let centre_a = load_instance(at_first + a * 32u).position;
            let centre_b = load_instance(at_first + b * 32u).position;
            let centre_c = load_instance(at_first + c * 32u).position;
            let centre_d = load_instance(at_first + d * 32u).position;
            voted = select(voted, subgroupBallot(centre_in_view(wide, centre_a)).x, lane == a);
            voted = select(voted, subgroupBallot(centre_in_view(wide, centre_b)).x, lane == b);
            voted = select(voted, subgroupBallot(centre_in_view(wide, centre_c)).x, lane == c);
            voted = select(voted, subgroupBallot(centre_in_view(wide, centre_d)).x, lane == d);
        }
        store_word(chunk, block, group, 0u, voted, state, subgroup, lane, size);
    } else if (is_fast(chunk, first, lane, size)) {
        var centres: array<vec3<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            // Of a word that nobody asks for all lanes load the same: a branch would keep the array out of registers.
            let is_asked = ((asked >> ((k * size + lane) >> 5u)) & 1u) != 0u;
            centres[k] = load_instance(chunk.first_instance + select(first - lane, first + k * size, is_asked)).position;
        }
        var left = crossing;
        while (left != 0u) {
            let r = firstTrailingBit(left);
            left &= left - 1u;
            let word = vote_centres(chunk, rows[first_row + r], &centres, lane, size);
            store_word(chunk, block, group, r, word, state, subgroup, lane, size);
        }
    } else {
        var spheres: array<vec4<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            if (((asked >> ((k * size + lane) >> 5u)) & 1u) != 0u) {
                spheres[k] = load_sphere(chunk, first + k * size);
            }
        }
        var left = crossing;
        while (left != 0u) {
            let r = firstTrailingBit(left);
            left &= left - 1u;
            let word = vote_spheres(chunk, rows[first_row + r], &spheres, first, lane, size);
            store_word(chunk, block, group, r, word, state, subgroup, lane, size);
        }
    }
}

// `voted` counts where the row crosses the lane's word; else its state knows the answer.
fn store_word(
    chunk: Chunk,
    block: u32,
    group: u32,
    r: u32,
    voted: u32,
    state: u32,
    subgroup: u32,
    lane: u32,
    size: u32,
) {
    let words_each = size >> 2u;
    let own = subgroup * words_each + lane;
    var word = select(0u, voted, ((state >> (r + ROW_GROUP)) & 1u) != 0u);
    if (((state >> r) & 1u) != 0u) {
        word = full_word(own, block_len(chunk, block));
    }
    let count = chunk.first_count + (group + r) * chunk.block_count + block;
    if (lane < words_each) {
        words[count * BLOCK_WORDS + own] = word;
    }
    let survivors = subgroupAdd(countOneBits(word));
    if (lane == 0u && survivors > 0u) {
        atomicAdd(&counts[count], survivors);
    }
}
