// Occlude: of what the frustum keeps, what is not hidden behind the depth that the early draws
// left. Blocks and words come first (`occlude_words`): what is hidden in bulk costs nothing more.
// Then instances (`occlude`). Two rows come out: all that is visible, for the main pass, and what
// of it is late, because it was not drawn early.
//
//     kept by the frustum     1111 1111
//     early                   0110 0001
//     hidden                  1001 1100
//     visible                 0110 0011    the next frame draws it early
//     late                    0000 0010

import package::cull::lists::lists;
import package::occlusion::footprint::occlusion_of;
import package::occlusion::history::{
    RECORD_KEPT, RECORD_KEPT_COUNT, RECORD_LAST, RECORD_LAST_COUNT, bound_of_block, bound_of_word,
    cell_at, chunk_of_row, history, last_word, occlusion,
};
import package::shared::layout::{
    BLOCK, BLOCK_THREADS, BLOCK_WORDS, COUNTS_PER_WORKGROUP, COVERS_NO_SAMPLE, VISIBLE, batch,
    block_of,
};
import package::shared::visibility::{full_word, load_sphere};

@group(0) @binding(6) var<storage, read_write> words: array<u32>;
@group(0) @binding(7) var<storage, read_write> counts: array<u32>;

// Instances of the workgroup's cells that the frustum keeps.
var<workgroup> kept_count: atomic<u32>;
// Instances that reach no sample, as far as the workgroup has found out.
var<workgroup> small_count: atomic<u32>;
// Whether a word of each cell of the workgroup has candidates.
var<workgroup> has_candidates: array<atomic<u32>, COUNTS_PER_WORKGROUP>;

// 32 threads answer for one block of one row, a word each. Words that are hidden as a whole have
// no candidates left. Blocks with candidates go to a list.
@compute @workgroup_size(BLOCK_THREADS)
fn occlude_words(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let index = block_of(workgroup, workgroups.x) * COUNTS_PER_WORKGROUP + thread / BLOCK_WORDS;
    let word = thread % BLOCK_WORDS;
    if (index == 0u && word == 0u) {
        atomicStore(&lists.occupied_count, 0u);
    }
    let is_cell = index < batch.occluded_cells;
    let cell = cell_at(min(index, batch.occluded_cells - 1u));
    var in_frustum = 0u;
    if (is_cell) {
        in_frustum = history[cell.record + RECORD_KEPT_COUNT];
    }
    if (in_frustum > 0u) {
        if (word == 0u) {
            atomicAdd(&kept_count, in_frustum);
        }
        let projection = occlusion[cell.row].projection;
        let at = cell.record + RECORD_KEPT + word;
        let candidates = history[at];
        let of_block = occlusion_of(projection, bound_of_block(cell).sphere);
        var of_word = of_block;
        if (of_block == VISIBLE && candidates != 0u) {
            of_word = occlusion_of(projection, bound_of_word(cell, word).sphere);
        }
        if (of_word == COVERS_NO_SAMPLE) {
            atomicAdd(&small_count, countOneBits(candidates));
        }
        if (of_block == VISIBLE && candidates != 0u) {
            if (of_word == VISIBLE) {
                atomicStore(&has_candidates[thread / BLOCK_WORDS], 1u);
            } else {
                history[at] = 0u;
            }
        }
    }
    workgroupBarrier();
    if (is_cell && word == 0u) {
        if (atomicLoad(&has_candidates[thread / BLOCK_WORDS]) != 0u) {
            let place = atomicAdd(&lists.crossed_count, 1u);
            // A list that was not emptied loses blocks instead of overflowing.
            if (place < batch.occluded_cells) {
                lists.entries[place].x = index;
            }
        } else {
            counts[occlusion[cell.row].first_count + cell.block] = 0u;
            counts[occlusion[cell.row].first_visible + cell.block] = 0u;
            history[cell.record + RECORD_LAST_COUNT] = 0u;
        }
    }
    if (thread == 0u && atomicLoad(&kept_count) > 0u) {
        atomicAdd(&lists.in_frustum, atomicLoad(&kept_count));
        add_small();
    }
}

// One thread of the workgroup adds what all have found.
fn add_small() {
    let small = atomicLoad(&small_count);
    if (small > 0u) {
        atomicAdd(&lists.too_small, small);
    }
}

var<workgroup> candidate_words: array<u32, BLOCK_WORDS>;
var<workgroup> visible_words: array<atomic<u32>, BLOCK_WORDS>;
var<workgroup> visible_count: atomic<u32>;
var<workgroup> late_count: atomic<u32>;
var<workgroup> list_len: u32;

// A workgroup strides over the blocks with candidates, a thread per instance.
@compute @workgroup_size(BLOCK_THREADS)
fn occlude(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (thread == 0u) {
        list_len = min(atomicLoad(&lists.crossed_count), batch.occluded_cells);
    }
    let end = workgroupUniformLoad(&list_len);
    var small = 0u;
    for (var item = workgroup.x; item < end; item += workgroups.x) {
        let cell = cell_at(min(lists.entries[item].x, batch.occluded_cells - 1u));
        if (thread < BLOCK_WORDS) {
            // A frame that did not write the record leaves it for a longer block.
            let kept = history[cell.record + RECORD_KEPT + thread];
            candidate_words[thread] = kept & full_word(thread, cell.len);
            atomicStore(&visible_words[thread], 0u);
        }
        if (thread == 0u) {
            atomicStore(&visible_count, 0u);
            atomicStore(&late_count, 0u);
        }
        workgroupBarrier();
        let chunk = chunk_of_row(cell.row);
        let projection = occlusion[cell.row].projection;
        let bit = thread % 32u;
        for (var word = thread / 32u; word < BLOCK_WORDS; word += BLOCK_THREADS / 32u) {
            if (((candidate_words[word] >> bit) & 1u) != 0u) {
                let sphere = load_sphere(chunk, cell.block * BLOCK + word * 32u + bit);
                let found = occlusion_of(projection, sphere);
                if (found == VISIBLE) {
                    atomicOr(&visible_words[word], 1u << bit);
                }
                small += u32(found == COVERS_NO_SAMPLE);
            }
        }
        workgroupBarrier();
        let late_at = occlusion[cell.row].first_count + cell.block;
        let visible_at = occlusion[cell.row].first_visible + cell.block;
        if (thread < BLOCK_WORDS) {
            let visible = atomicLoad(&visible_words[thread]);
            let late = visible & ~last_word(cell, thread);
            history[cell.record + RECORD_LAST + thread] = visible;
            words[late_at * BLOCK_WORDS + thread] = late;
            words[visible_at * BLOCK_WORDS + thread] = visible;
            atomicAdd(&visible_count, countOneBits(visible));
            atomicAdd(&late_count, countOneBits(late));
        }
        workgroupBarrier();
        if (thread == 0u) {
            counts[late_at] = atomicLoad(&late_count);
            counts[visible_at] = atomicLoad(&visible_count);
            history[cell.record + RECORD_LAST_COUNT] = atomicLoad(&visible_count);
        }
        // The next block overwrites the words and the counts.
        workgroupBarrier();
    }
    if (small > 0u) {
        atomicAdd(&small_count, small);
    }
    workgroupBarrier();
    if (thread == 0u) {
        add_small();
    }
}
