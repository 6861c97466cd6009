// Vote on all blocks. A workgroup loads its block of 1,024 instances once and tests each in every
// row of the chunk. The answer is one bit per instance and row: bit i % 32 of word i / 32, written
// to
//     words[(first_count + row * block_count + block) * BLOCK_WORDS + i / 32].
// With subgroups, a ballot makes words of answers. Without, workgroup memory does.

import package::shared::instance::load_instance;
import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, BLOCK_WORDS, Chunk, batch, block_of, chunk_of, chunks,
    chunk_views,
};
import package::shared::visibility::{is_visible, load_sphere};
@if(counted) import package::cull::lists::lists;
@if(subgroup) import package::shared::ballot::keep_ballot;
@if(subgroup) import package::shared::instance::INSTANCE_IS_RIGID;
@if(subgroup) import package::shared::layout::{BLOCKS_PER_WORKGROUP, PlanePairs, ViewPlanes};
@if(subgroup) import package::shared::visibility::{
    center_in_plane_pairs, center_in_view, has_only_planes, keeps_center, widened,
    widened_plane_pairs,
};

@group(0) @binding(6) var<storage, read_write> words: array<u32>;

fn first_word(chunk: Chunk, row: u32, block: u32) -> u32 {
    return (chunk.first_count + row * chunk.block_count + block) * BLOCK_WORDS;
}

@if(counted)
@group(0) @binding(7) var<storage, read_write> counts: array<u32>;

// Survivors of the block in 16 rows.
@if(counted)
var<workgroup> row_survivors: array<atomic<u32>, 16>;

// Called by all threads of the batch. Empties the list of occupied counts for `scan`.
@if(counted)
fn begin_vote(block_in_batch: u32, thread: u32) {
    if (block_in_batch == 0u && thread == 0u) {
        atomicStore(&lists.occupied_count, 0u);
    }
}

// Called for each word of the block.
@if(counted)
fn add_word(row: u32, word: u32) {
    if (word != 0u) {
        atomicAdd(&row_survivors[row & 15u], countOneBits(word));
    }
}

// Called by all threads after the words of a row were added. Writes the counts of 16 rows at a
// time.
@if(counted)
fn close_row(chunk: Chunk, block: u32, row: u32, thread: u32) {
    let slot = row & 15u;
    if (slot < 15u && row + 1u < chunk.row_count) {
        return;
    }
    workgroupBarrier();
    if (thread <= slot) {
        let survivors = atomicExchange(&row_survivors[thread], 0u);
        counts[chunk.first_count + (row - slot + thread) * chunk.block_count + block] = survivors;
    }
    workgroupBarrier();
}

// A compaction that counts survivors later needs none of this.
@if(!counted)
fn begin_vote(block_in_batch: u32, thread: u32) {}

@if(!counted)
fn add_word(row: u32, word: u32) {}

@if(!counted)
fn close_row(chunk: Chunk, block: u32, row: u32, thread: u32) {}

// Whether the subgroup needs only positions: no scales, no center off the origin, no last instance.
// `vote` has two paths with separate arrays, so that compilers keep the array of the fast path in
// registers (in memory it took twice as long).
@if(subgroup)
fn is_fast(chunk: Chunk, first: u32, lane: u32, size: u32) -> bool {
    return INSTANCE_IS_RIGID & (chunk.flags == 0u)
        & (first - lane + size * BLOCK_ITEMS <= chunk.instance_count);
}

// The word of this lane in one row, from positions. Lanes from size / 4 on return nothing of
// meaning.
@if(subgroup)
fn vote_centers(
    chunk: Chunk,
    planes: ViewPlanes,
    centers: ptr<function, array<vec3<f32>, BLOCK_ITEMS>>,
    lane: u32,
    size: u32,
) -> u32 {
    let wide = widened(planes, chunk.sphere.w);
    var word = 0u;
    let is_plain = has_only_planes(planes);
    if (is_plain & (size == 32u)) {
        // The case of most GPUs: a ballot is a word.
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(center_in_view(wide, (*centers)[k]));
            word = select(word, ballot.x, lane == k);
        }
    } else if (is_plain) {
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(center_in_view(wide, (*centers)[k]));
            word = keep_ballot(word, k, ballot, lane, size);
        }
    } else {
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let center = (*centers)[k];
            let ballot = subgroupBallot(keeps_center(chunk, planes, wide, center));
            word = keep_ballot(word, k, ballot, lane, size);
        }
    }
    return word;
}

// The same in a row that tests only planes, and whose planes are paired.
@if(subgroup)
fn vote_plane_pairs(
    wide: PlanePairs,
    centers: ptr<function, array<vec3<f32>, BLOCK_ITEMS>>,
    lane: u32,
    size: u32,
) -> u32 {
    var word = 0u;
    if (size == 32u) {
        // The case of most GPUs: a ballot is a word.
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(center_in_plane_pairs(wide, (*centers)[k]));
            word = select(word, ballot.x, lane == k);
        }
    } else {
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let ballot = subgroupBallot(center_in_plane_pairs(wide, (*centers)[k]));
            word = keep_ballot(word, k, ballot, lane, size);
        }
    }
    return word;
}

// The same from bounding spheres. `first` is the lane's first instance, counted from the start of
// the chunk.
@if(subgroup)
fn vote_spheres(
    chunk: Chunk,
    planes: ViewPlanes,
    spheres: ptr<function, array<vec4<f32>, BLOCK_ITEMS>>,
    first: u32,
    lane: u32,
    size: u32,
) -> u32 {
    var word = 0u;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        let ballot = subgroupBallot(is_visible(chunk, planes, (*spheres)[k], first + k * size));
        word = keep_ballot(word, k, ballot, lane, size);
    }
    return word;
}

// Rows that the workgroup reads together, instead of each thread by itself. No override, because it
// is the size of arrays.
@if(subgroup)
const ROW_SHARE: u32 = 16u;

@if(subgroup)
var<workgroup> shared_plane_pairs: array<PlanePairs, ROW_SHARE>;
// 1 if the plane pairs are the whole test.
@if(subgroup)
var<workgroup> is_simple: array<u32, ROW_SHARE>;

@if(subgroup)
@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let thread = subgroup * size + lane;
    begin_vote(block_in_batch, thread);
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;
    let first = block * BLOCK + subgroup * size * BLOCK_ITEMS + lane;

    // Uniform over the block, because all its threads meet at the barriers of `close_row`.
    if (is_fast(chunk, block * BLOCK + lane, lane, BLOCK_THREADS)) {
        var centers: array<vec3<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            centers[k] = load_instance(chunk.first_instance + first + k * size).position;
        }
        for (var group = 0u; group < chunk.row_count; group += ROW_SHARE) {
            let row_count = min(chunk.row_count - group, ROW_SHARE);
            if (thread < row_count) {
                let row = chunk.first_row + group + thread;
                shared_plane_pairs[thread] = widened_plane_pairs(chunk_views[row].planes.pairs, chunk.sphere.w);
                is_simple[thread] =
                    u32(has_only_planes(chunk_views[row].planes)) & shared_plane_pairs[thread].is_paired;
            }
            workgroupBarrier();
            for (var r = 0u; r < row_count; r += 1u) {
                var word = 0u;
                if (is_simple[r] != 0u) {
                    word = vote_plane_pairs(shared_plane_pairs[r], &centers, lane, size);
                } else {
                    let planes = chunk_views[chunk.first_row + group + r].planes;
                    word = vote_centers(chunk, planes, &centers, lane, size);
                }
                store_word(chunk, block, group + r, word, thread, lane, size);
            }
            // The next rows overwrite these.
            workgroupBarrier();
        }
    } else {
        var spheres: array<vec4<f32>, BLOCK_ITEMS>;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            spheres[k] = load_sphere(chunk, first + k * size);
        }
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let word = vote_spheres(chunk, chunk_views[chunk.first_row + r].planes, &spheres, first, lane, size);
            store_word(chunk, block, r, word, thread, lane, size);
        }
    }
}

// Stores the words of a row that the subgroup has voted on, and counts their survivors.
@if(subgroup)
fn store_word(chunk: Chunk, block: u32, row: u32, word: u32, thread: u32, lane: u32, size: u32) {
    let words_each = size >> 2u;
    if (lane < words_each) {
        words[first_word(chunk, row, block) + thread / size * words_each + lane] = word;
        add_word(row, word);
    }
    close_row(chunk, block, row, thread);
}

// The vote on very many blocks of one row each, if all subgroups have 32 lanes: one block per
// subgroup. A subgroup mostly waits for memory, and never for another subgroup. A ballot is a word,
// and lane w ends up holding word w.
@if(subgroup)
@compute @workgroup_size(BLOCK_THREADS)
fn vote_block_per_subgroup(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let block_in_batch = block_of(workgroup, workgroups.x) * BLOCKS_PER_WORKGROUP + subgroup;
    if (block_in_batch >= batch.block_count) {
        return;
    }
    begin_vote(block_in_batch, lane);
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;
    let planes = chunk_views[chunk.first_row].planes;
    let first = block * BLOCK + lane;
    var word = 0u;
    if (is_fast(chunk, first, lane, BLOCK_THREADS)) {
        // Four loads at a time: more, or an array of them, take registers from other subgroups.
        let at = chunk.first_instance + first;
        let wide = widened(planes, chunk.sphere.w);
        for (var w = 0u; w < BLOCK_WORDS; w += 4u) {
            let a = load_instance(at + w * 32u).position;
            let b = load_instance(at + w * 32u + 32u).position;
            let c = load_instance(at + w * 32u + 64u).position;
            let d = load_instance(at + w * 32u + 96u).position;
            let keeps_a = keeps_center(chunk, planes, wide, a);
            word = select(word, subgroupBallot(keeps_a).x, lane == w);
            let keeps_b = keeps_center(chunk, planes, wide, b);
            word = select(word, subgroupBallot(keeps_b).x, lane == w + 1u);
            let keeps_c = keeps_center(chunk, planes, wide, c);
            word = select(word, subgroupBallot(keeps_c).x, lane == w + 2u);
            let keeps_d = keeps_center(chunk, planes, wide, d);
            word = select(word, subgroupBallot(keeps_d).x, lane == w + 3u);
        }
    } else {
        for (var w = 0u; w < BLOCK_WORDS; w += 1u) {
            let i = first + w * 32u;
            let ballot = subgroupBallot(is_visible(chunk, planes, load_sphere(chunk, i), i)).x;
            word = select(word, ballot, lane == w);
        }
    }
    words[first_word(chunk, 0u, block) + lane] = word;
    let survivors = subgroupAdd(countOneBits(word));
    if (lane == 0u) {
        counts[chunk.first_count + block] = survivors;
    }
}

// Thread t answers for instances 8t to 8t + 7, a byte. Four bytes are a word.
@if(!subgroup)
var<workgroup> bytes: array<u32, BLOCK_THREADS>;

@if(!subgroup)
@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    begin_vote(block_in_batch, thread);
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;
    let first = block * BLOCK + thread * BLOCK_ITEMS;

    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        spheres[k] = load_sphere(chunk, first + k);
    }

    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let planes = chunk_views[chunk.first_row + r].planes;
        var byte = 0u;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            byte |= select(0u, 1u << k, is_visible(chunk, planes, spheres[k], first + k));
        }
        bytes[thread] = byte;
        workgroupBarrier();
        if (thread < BLOCK_WORDS) {
            let at = thread * 4u;
            let word = bytes[at] | (bytes[at + 1u] << 8u) | (bytes[at + 2u] << 16u)
                | (bytes[at + 3u] << 24u);
            words[first_word(chunk, r, block) + thread] = word;
            add_word(r, word);
        }
        close_row(chunk, block, r, thread);
        // The next row overwrites the bytes.
        workgroupBarrier();
    }
}
