// Recall: of what the frustum keeps, only what the frame before has seen, or what is large, is
// drawn early. The rest waits for the depth that the early draws leave (occlude.wgsl). 32 threads
// answer for one block of one row, a word each.
//
// After a cut, when the frame before says little, smaller ones are large: they hide the rest.
//
//     kept by the frustum     1111 1111 0000
//     seen last               0110 0000 0011
//     large                   0000 1111 0000    whole words
//     early                   0110 1111 0000
//
// If the words of a block have no bounds, whole words would be all that is kept around a camera in
// the block. Then only what was seen is early; after a cut, each large instance besides.

import package::occlusion::history::{
    Cell, RECORD_KEPT, RECORD_KEPT_COUNT, RECORD_LAST, RECORD_LAST_COUNT, Within, bound_of_word,
    cell_at, chunk_of_row, has_word_bounds, history, last_word, occlusion,
};
import package::shared::layout::{
    BLOCK, BLOCK_THREADS, BLOCK_WORDS, COUNTS_PER_WORKGROUP, NEAR_DIVISOR, OCCLUSION_IS_CUT,
    OCCLUSION_IS_FROZEN, OCCLUSION_IS_NEW, Projection, batch, block_of,
};
import package::shared::visibility::{full_word, load_sphere};

@group(0) @binding(6) var<storage, read_write> words: array<u32>;
@group(0) @binding(7) var<storage, read_write> counts: array<u32>;

var<workgroup> early_counts: array<atomic<u32>, COUNTS_PER_WORKGROUP>;

// Whether an instance within a bound may be at least `pixels` wide. What reaches the eye is.
fn is_large(projection: Projection, within: Within, pixels: f32) -> bool {
    let sphere = within.sphere * projection.unit;
    let nearest = dot(projection.w, vec4<f32>(sphere.xyz, 1.0)) - sphere.w * projection.slope;
    // Pixels per unit at distance 1, or anywhere in an orthographic view.
    let gram = projection.gram_x;
    let scale = sqrt(select(gram.x, gram.z / gram.w, gram.w > 0.0));
    return 2.0 * within.largest * projection.unit * scale >= pixels * nearest;
}

// The large ones of the instances `kept` of a word.
fn large_of(cell: Cell, word: u32, kept: u32, pixels: f32) -> u32 {
    let chunk = chunk_of_row(cell.row);
    var large = 0u;
    var left = kept;
    while (left != 0u) {
        let bit = firstTrailingBit(left);
        left &= left - 1u;
        let sphere = load_sphere(chunk, cell.block * BLOCK + word * 32u + bit);
        let is_wide = is_large(occlusion[cell.row].projection, Within(sphere, sphere.w), pixels);
        large |= select(0u, 1u << bit, is_wide);
    }
    return large;
}

@compute @workgroup_size(BLOCK_THREADS)
fn recall(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let index = block_of(workgroup, workgroups.x) * COUNTS_PER_WORKGROUP + thread / BLOCK_WORDS;
    let word = thread % BLOCK_WORDS;
    let is_cell = index < batch.occluded_cells;
    let cell = cell_at(min(index, batch.occluded_cells - 1u));
    let count_at = occlusion[cell.row].first_count + cell.block;
    let kept_count = counts[count_at];
    if (is_cell && kept_count > 0u) {
        var kept = full_word(word, cell.len);
        if (kept_count < cell.len) {
            kept = words[count_at * BLOCK_WORDS + word];
        }
        let flags = occlusion[cell.row].flags;
        let is_new = (flags & OCCLUSION_IS_NEW) != 0u;
        var early = 0u;
        if (!is_new) {
            early = last_word(cell, word);
        }
        var takes_all = is_new;
        if ((flags & OCCLUSION_IS_FROZEN) == 0u) {
            let is_known = (flags & (OCCLUSION_IS_NEW | OCCLUSION_IS_CUT)) == 0u;
            let divisor = select(f32(NEAR_DIVISOR), 1.0, is_known);
            let near_pixels = occlusion[cell.row].near_pixels / divisor;
            takes_all = false;
            if (has_word_bounds(cell)) {
                takes_all = is_large(
                    occlusion[cell.row].projection, bound_of_word(cell, word), near_pixels,
                );
            } else if (!is_known) {
                early |= large_of(cell, word, kept, near_pixels);
            }
        }
        if (takes_all) {
            early = 0xffffffffu;
        }
        early &= kept;
        history[cell.record + RECORD_LAST + word] = early;
        history[cell.record + RECORD_KEPT + word] = kept;
        words[count_at * BLOCK_WORDS + word] = early;
        atomicAdd(&early_counts[thread / BLOCK_WORDS], countOneBits(early));
    }
    storageBarrier();
    workgroupBarrier();
    if (is_cell && word == 0u) {
        let early_count = atomicLoad(&early_counts[thread / BLOCK_WORDS]);
        counts[count_at] = early_count;
        history[cell.record + RECORD_KEPT_COUNT] = kept_count;
        history[cell.record + RECORD_LAST_COUNT] = early_count;
    }
}
