// Vote on crossed blocks that may be many, if all subgroups have 32 lanes: one block per subgroup,
// row after row. It takes fewer registers than four rows at a time (`vote_block` in
// vote_crossed_subgroup.wgsl), so more subgroups wait for memory concurrently. Few rows cross a
// block: of the levels of one view, one or two.
//
//     rows of a block         level 0 | level 1 | level 2       of one view
//     state                   outside | crossed | crossed       the distance between 1 and 2
//     crossing                0         1         1             two votes

import package::cull::lists::lists;
import package::shared::instance::INSTANCE_IS_RIGID;
import package::shared::layout::{
    BLOCK, BLOCK_THREADS, BLOCK_WORDS, Chunk, BLOCKS_PER_WORKGROUP, batch, chunk_of, chunks,
    chunk_views,
};
import package::shared::visibility::{
    INSIDE, PARTIAL, block_len, full_word, is_visible, load_sphere, row_crosses_block,
    vote_crossed_words, word_state,
};

@group(0) @binding(6) var<storage, read_write> words: array<u32>;
@group(0) @binding(7) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let end = min(atomicLoad(&lists.crossed_count), batch.block_count);
    let stride = workgroups.x * BLOCKS_PER_WORKGROUP;
    for (var item = workgroup.x * BLOCKS_PER_WORKGROUP + subgroup; item < end; item += stride) {
        // Within bounds even if an earlier frame, which ended before `compact`, left other entries.
        let block_in_batch = min(lists.entries[item].x, batch.block_count - 1u);
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        if (chunk.row_count == 1u) {
            // Otherwise the block would not be on the list.
            vote_row(chunk, block, 0u, lane);
            continue;
        }
        let at = chunk.first_instance / BLOCK + block;
        for (var group = 0u; group < chunk.row_count; group += 32u) {
            // Each lane tests one row.
            let row = group + lane;
            var crosses = false;
            if (row < chunk.row_count) {
                crosses = row_crosses_block(chunk, chunk.first_row + row, at);
            }
            var crossing = subgroupBallot(crosses).x;
            while (crossing != 0u) {
                vote_row(chunk, block, group + firstTrailingBit(crossing), lane);
                crossing &= crossing - 1u;
            }
        }
    }
}

// Votes on all words of a block in one row that crosses it, one word per lane.
fn vote_row(chunk: Chunk, block: u32, row: u32, lane: u32) {
    let len = block_len(chunk, block);
    let at = chunk.first_instance / BLOCK + block;
    let state = word_state(chunk, chunk.first_row + row, at, lane);
    let crossed = subgroupBallot(state == PARTIAL).x;
    var word: u32;
    if (INSTANCE_IS_RIGID & (chunk.flags == 0u) & (len == BLOCK)) {
        let planes = chunk_views[chunk.first_row + row].planes;
        let first_lane = chunk.first_instance + lane;
        word = vote_crossed_words(
            chunk, planes, crossed, first_lane, block * BLOCK_WORDS + lane, lane);
    } else {
        word = vote_crossed_spheres(chunk, row, crossed, block * BLOCK + lane, lane);
    }
    word = select(0u, word, state == PARTIAL);
    if (state == INSIDE) {
        word = full_word(lane, len);
    }
    let cell = chunk.first_count + row * chunk.block_count + block;
    words[cell * BLOCK_WORDS + lane] = word;
    let survivors = subgroupAdd(countOneBits(word));
    if (lane == 0u) {
        counts[cell] = survivors;
    }
}

// The same from bounding spheres. `first` is the lane's instance in the block's first word, counted
// from the start of the chunk.
fn vote_crossed_spheres(chunk: Chunk, row: u32, crossed: u32, first: u32, lane: u32) -> u32 {
    let planes = chunk_views[chunk.first_row + row].planes;
    var word = 0u;
    var left = crossed;
    while (left != 0u) {
        // If fewer than four words are left, word `a` is voted on again.
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
        let in_a = is_visible(chunk, planes, sa, first + a * 32u);
        word = select(word, subgroupBallot(in_a).x, lane == a);
        let in_b = is_visible(chunk, planes, sb, first + b * 32u);
        word = select(word, subgroupBallot(in_b).x, lane == b);
        let in_c = is_visible(chunk, planes, sc, first + c * 32u);
        word = select(word, subgroupBallot(in_c).x, lane == c);
        let in_d = is_visible(chunk, planes, sd, first + d * 32u);
        word = select(word, subgroupBallot(in_d).x, lane == d);
    }
    return word;
}
