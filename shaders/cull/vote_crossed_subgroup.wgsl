// Vote on crossed blocks, by ballot, at any subgroup size from 4 to 128. Subgroups do not wait for
// each other.
//
// With 32 lanes and many crossed blocks, each subgroup takes one block, and lane w has word w: the
// more subgroups wait for memory concurrently, the better. With another size S, or with too few
// blocks for that, the subgroups of a workgroup share a block, and each has S / 4 of its words.

import package::cull::lists::lists;
import package::shared::ballot::keep_ballot;
import package::shared::instance::{INSTANCE_IS_RIGID, load_instance};
import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, BLOCK_WORDS, Chunk, ViewPlanes, batch, chunk_of, chunks,
    chunk_views,
};
import package::shared::visibility::{
    INSIDE, OUTSIDE, PARTIAL, block_len, center_in_plane_pairs, full_word, has_only_planes,
    is_visible, keeps_center, load_sphere, row_crosses_block, widened, widened_plane_pairs, word_state,
};

@group(0) @binding(6) var<storage, read_write> words: array<u32>;
@group(0) @binding(7) var<storage, read_write> counts: array<atomic<u32>>;

// Rows that are voted on together: one bit per row.
override ROW_GROUP: u32;

// Up to FEW_CROSSED blocks, workgroups share blocks.
override FEW_CROSSED: u32;

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let count = min(atomicLoad(&lists.crossed_count), batch.block_count);
    let is_block_per_subgroup = size == 32u && count > FEW_CROSSED;
    let shares = select(1u, BLOCK_THREADS / 32u, is_block_per_subgroup);
    let stride = workgroups.x * shares;
    for (var item = workgroup.x * shares + subgroup % shares; item < count; item += stride) {
        // Within bounds even if an earlier frame, which ended before `compact`, left other entries.
        let block_in_batch = min(lists.entries[item].x, batch.block_count - 1u);
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        for (var group = 0u; group < chunk.row_count; group += ROW_GROUP) {
            if (is_block_per_subgroup) {
                vote_block(chunk, block, group, lane);
            } else {
                vote_part(chunk, block, group, subgroup, lane, size);
            }
        }
    }
}

// The rows of the group that cross the block, as bits. Each lane tests one row.
fn crossing_rows(
    chunk: Chunk,
    first_row: u32,
    row_count: u32,
    at: u32,
    lane: u32,
    size: u32,
) -> u32 {
    if (chunk.row_count == 1u) {
        // Otherwise the block would not be on the list.
        return 1u;
    }
    var crossing = 0u;
    for (var first = 0u; first < row_count; first += size) {
        let r = first + lane;
        var crosses = false;
        if (r < row_count) {
            crosses = row_crosses_block(chunk, first_row + r, at);
        }
        crossing |= subgroupBallot(crosses).x << first;
    }
    return crossing;
}

// Votes on all words of a block, one word per lane, in the rows from `group` on.
fn vote_block(chunk: Chunk, block: u32, group: u32, lane: u32) {
    let at = chunk.first_instance / BLOCK + block;
    let row_count = min(chunk.row_count - group, ROW_GROUP);
    let crossing = crossing_rows(chunk, chunk.first_row + group, row_count, at, lane, 32u);
    let by_positions = INSTANCE_IS_RIGID & (chunk.flags == 0u) & (block_len(chunk, block) == BLOCK);
    let first = block * BLOCK + lane;
    for (var r = 0u; (crossing >> r) != 0u; r += 4u) {
        let four = (crossing >> r) & 15u;
        if (four == 0u) {
            continue;
        }
        let first_row = chunk.first_row + group + r;
        var states = vec4<u32>(OUTSIDE);
        for (var k = 0u; k < 4u; k += 1u) {
            if (((four >> k) & 1u) != 0u) {
                states[k] = word_state(chunk, first_row + k, at, lane);
            }
        }
        // Bit w: one of the four rows crosses word w.
        let crossed = subgroupBallot(any(states == vec4<u32>(PARTIAL))).x;
        var voted: vec4<u32>;
        if (by_positions) {
            let page_first = chunk.first_instance + first;
            voted = vote_crossed_words(chunk, first_row, four, page_first, crossed, lane);
        } else {
            voted = vote_crossed_spheres(chunk, first_row, four, first, crossed, lane);
        }
        for (var k = 0u; k < 4u; k += 1u) {
            if (((four >> k) & 1u) != 0u) {
                store_word(chunk, block, group + r + k, voted[k], states[k], 0u, lane, 32u);
            }
        }
    }
}

// Votes on the subgroup's words of a shared block, in the rows from `group` on.
fn vote_part(chunk: Chunk, block: u32, group: u32, subgroup: u32, lane: u32, size: u32) {
    let at = chunk.first_instance / BLOCK + block;
    let words_each = size >> 2u;
    let first_word = subgroup * words_each;
    let row_count = min(chunk.row_count - group, ROW_GROUP);
    let crossing = crossing_rows(chunk, chunk.first_row + group, row_count, at, lane, size);
    let first = block * BLOCK + first_word * 32u + lane;
    for (var r = 0u; (crossing >> r) != 0u; r += 4u) {
        let four = (crossing >> r) & 15u;
        if (four == 0u) {
            continue;
        }
        // A quarter of the lanes per row: each lane has the state of one word in one row.
        let first_row = chunk.first_row + group + r;
        let lane_word = lane % words_each;
        let lane_row = lane / words_each;
        var lane_state = OUTSIDE;
        if (((four >> lane_row) & 1u) != 0u) {
            lane_state = word_state(chunk, first_row + lane_row, at, first_word + lane_word);
        }
        // The state of the lane's word in each row.
        var states = vec4<u32>(lane_state, OUTSIDE, OUTSIDE, OUTSIDE);
        if (four != 1u) {
            states = vec4<u32>(
                subgroupShuffle(lane_state, lane_word),
                subgroupShuffle(lane_state, lane_word + words_each),
                subgroupShuffle(lane_state, lane_word + 2u * words_each),
                subgroupShuffle(lane_state, lane_word + 3u * words_each));
        }
        // Bit w: one of the four rows crosses word w of the subgroup.
        let crosses_word = (lane < words_each) & any(states == vec4<u32>(PARTIAL));
        let crossed = subgroupBallot(crosses_word).x;
        let voted = vote_crossed_ballots(chunk, first_row, four, first, crossed, lane, size);
        for (var k = 0u; k < 4u; k += 1u) {
            if (((four >> k) & 1u) != 0u) {
                let row = group + r + k;
                store_word(chunk, block, row, voted[k], states[k], first_word, lane, words_each);
            }
        }
    }
}

// Votes of four rows on crossed words, four words at a time, if a ballot is a word and only
// positions are loaded. `four` has one bit per row. The rows share the loads, and no word is stored
// before all ballots are cast.
fn vote_crossed_words(
    chunk: Chunk,
    first_row: u32,
    four: u32,
    at: u32,
    crossed: u32,
    lane: u32,
) -> vec4<u32> {
    var voted = vec4<u32>(0u);
    var left = crossed;
    while (left != 0u) {
        let a = firstTrailingBit(left);
        left &= left - 1u;
        let b = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let c = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let d = select(a, firstTrailingBit(left), left != 0u);
        left &= left - 1u;
        let centers = Centers(
            load_instance(at + a * 32u).position,
            load_instance(at + b * 32u).position,
            load_instance(at + c * 32u).position,
            load_instance(at + d * 32u).position);
        let four_words = vec4<u32>(a, b, c, d);
        if ((four & 1u) != 0u) {
            let planes = chunk_views[first_row].planes;
            voted.x = vote_centers_of(voted.x, chunk, planes, centers, four_words, lane);
        }
        if ((four & 2u) != 0u) {
            let planes = chunk_views[first_row + 1u].planes;
            voted.y = vote_centers_of(voted.y, chunk, planes, centers, four_words, lane);
        }
        if ((four & 4u) != 0u) {
            let planes = chunk_views[first_row + 2u].planes;
            voted.z = vote_centers_of(voted.z, chunk, planes, centers, four_words, lane);
        }
        if ((four & 8u) != 0u) {
            let planes = chunk_views[first_row + 3u].planes;
            voted.w = vote_centers_of(voted.w, chunk, planes, centers, four_words, lane);
        }
    }
    return voted;
}

struct Centers {
    a: vec3<f32>,
    b: vec3<f32>,
    c: vec3<f32>,
    d: vec3<f32>,
}

// Votes of one row on four words. The lanes of these words keep the ballots.
fn vote_centers_of(
    voted: u32,
    chunk: Chunk,
    planes: ViewPlanes,
    centers: Centers,
    four_words: vec4<u32>,
    lane: u32,
) -> u32 {
    var word = voted;
    if ((planes.pairs.is_paired != 0u) & has_only_planes(planes)) {
        let wide = widened_plane_pairs(planes.pairs, chunk.sphere.w);
        let keeps_a = center_in_plane_pairs(wide, centers.a);
        word = select(word, subgroupBallot(keeps_a).x, lane == four_words.x);
        let keeps_b = center_in_plane_pairs(wide, centers.b);
        word = select(word, subgroupBallot(keeps_b).x, lane == four_words.y);
        let keeps_c = center_in_plane_pairs(wide, centers.c);
        word = select(word, subgroupBallot(keeps_c).x, lane == four_words.z);
        let keeps_d = center_in_plane_pairs(wide, centers.d);
        word = select(word, subgroupBallot(keeps_d).x, lane == four_words.w);
        return word;
    }
    let wide = widened(planes, chunk.sphere.w);
    let keeps_a = keeps_center(chunk, planes, wide, centers.a);
    word = select(word, subgroupBallot(keeps_a).x, lane == four_words.x);
    let keeps_b = keeps_center(chunk, planes, wide, centers.b);
    word = select(word, subgroupBallot(keeps_b).x, lane == four_words.y);
    let keeps_c = keeps_center(chunk, planes, wide, centers.c);
    word = select(word, subgroupBallot(keeps_c).x, lane == four_words.z);
    let keeps_d = keeps_center(chunk, planes, wide, centers.d);
    word = select(word, subgroupBallot(keeps_d).x, lane == four_words.w);
    return word;
}

// The same from bounding spheres. `first` is the lane's instance in the block's first word, counted
// from the start of the chunk.
fn vote_crossed_spheres(
    chunk: Chunk,
    first_row: u32,
    four: u32,
    first: u32,
    crossed: u32,
    lane: u32,
) -> vec4<u32> {
    var voted = vec4<u32>(0u);
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
        for (var r = 0u; r < 4u; r += 1u) {
            if (((four >> r) & 1u) != 0u) {
                let planes = chunk_views[first_row + r].planes;
                var word = voted[r];
                let in_a = is_visible(chunk, planes, sa, first + a * 32u);
                word = select(word, subgroupBallot(in_a).x, lane == a);
                let in_b = is_visible(chunk, planes, sb, first + b * 32u);
                word = select(word, subgroupBallot(in_b).x, lane == b);
                let in_c = is_visible(chunk, planes, sc, first + c * 32u);
                word = select(word, subgroupBallot(in_c).x, lane == c);
                let in_d = is_visible(chunk, planes, sd, first + d * 32u);
                word = select(word, subgroupBallot(in_d).x, lane == d);
                voted[r] = word;
            }
        }
    }
    return voted;
}

// The same at any subgroup size, four ballots at a time. `first` is the lane's first instance,
// counted from the start of the chunk.
fn vote_crossed_ballots(
    chunk: Chunk,
    first_row: u32,
    four: u32,
    first: u32,
    crossed: u32,
    lane: u32,
    size: u32,
) -> vec4<u32> {
    var voted = vec4<u32>(0u);
    for (var k = 0u; k < BLOCK_ITEMS; k += 4u) {
        var spheres: array<vec4<f32>, 4>;
        for (var s = 0u; s < 4u; s += 1u) {
            if (((crossed >> (((k + s) * size + lane) >> 5u)) & 1u) != 0u) {
                spheres[s] = load_sphere(chunk, first + (k + s) * size);
            }
        }
        for (var r = 0u; r < 4u; r += 1u) {
            if (((four >> r) & 1u) != 0u) {
                let planes = chunk_views[first_row + r].planes;
                for (var s = 0u; s < 4u; s += 1u) {
                    let i = first + (k + s) * size;
                    let ballot = subgroupBallot(is_visible(chunk, planes, spheres[s], i));
                    voted[r] = keep_ballot(voted[r], k + s, ballot, lane, size);
                }
            }
        }
    }
    return voted;
}

// Stores the words of a row. If the row crosses the lane's word, `voted` is the answer. Otherwise
// the word's state decides.
fn store_word(
    chunk: Chunk,
    block: u32,
    row: u32,
    voted: u32,
    state: u32,
    first_word: u32,
    lane: u32,
    words_each: u32,
) {
    let cell = chunk.first_count + row * chunk.block_count + block;
    var word = 0u;
    if (lane < words_each) {
        let block_word = first_word + lane;
        word = select(0u, voted, state == PARTIAL);
        if (state == INSIDE) {
            word = full_word(block_word, block_len(chunk, block));
        }
        words[cell * BLOCK_WORDS + block_word] = word;
    }
    let survivors = subgroupAdd(countOneBits(word));
    if (lane == 0u && survivors > 0u) {
        atomicAdd(&counts[cell], survivors);
    }
}
