// The history: what was seen in the last frame. Each block of each row that may be
// hidden has a record, which stays at its place as long as set and view do.
//
//     0       survivors of the frustum, or candidates of `occlude`
//     1       survivors of the frame before: if 0, the words `last` say nothing
//     2..34   words `last`: what the frame before has seen; from `recall` on, what is drawn early
//     34..66  words `kept`: what the frustum keeps

import package::shared::layout::{BLOCK, Chunk, OcclusionRow, RECORD_WORDS, batch};
import package::shared::visibility::{WORD_STEPS, bounds, is_loose, word_center, word_steps};

@group(0) @binding(20) var<storage, read> occlusion: array<OcclusionRow>;
@group(0) @binding(21) var<storage, read_write> history: array<u32>;

const RECORD_KEPT_COUNT: u32 = 0u;
const RECORD_LAST_COUNT: u32 = 1u;
const RECORD_LAST: u32 = 2u;
const RECORD_KEPT: u32 = 34u;

// A block of a row that may be hidden.
struct Cell {
    // Its row in the table.
    row: u32,
    // Its number in the row.
    block: u32,
    // Its number of instances.
    len: u32,
    // Its first word in the history.
    record: u32,
}

fn cell_at(index: u32) -> Cell {
    var low = 0u;
    var high = batch.occluded_rows;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (occlusion[middle].first_cell <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let block = index - occlusion[low].first_cell;
    let len = min(occlusion[low].instance_count - block * BLOCK, BLOCK);
    return Cell(low, block, len, (occlusion[low].first_record + block) * RECORD_WORDS);
}

// A word of what the frame before has seen.
fn last_word(cell: Cell, word: u32) -> u32 {
    if (history[cell.record + RECORD_LAST_COUNT] == 0u) {
        return 0u;
    }
    return history[cell.record + RECORD_LAST + word];
}

// What the tests of instances read of the row's chunk.
fn chunk_of_row(row: u32) -> Chunk {
    var chunk: Chunk;
    chunk.sphere = occlusion[row].sphere;
    chunk.first_instance = occlusion[row].first_instance;
    chunk.instance_count = occlusion[row].instance_count;
    chunk.flags = occlusion[row].chunk_flags;
    return chunk;
}

// A sphere that holds the spheres of some instances, in the set's space, and the largest radius of
// these.
struct Within {
    sphere: vec4<f32>,
    largest: f32,
}

fn bound_of_block(cell: Cell) -> Within {
    let at = occlusion[cell.row].first_instance / BLOCK + cell.block;
    return widened_bound(cell, vec4<f32>(bounds[at].center, bounds[at].radius));
}

// Whether the words of a cell have smaller bounds than the block.
fn has_word_bounds(cell: Cell) -> bool {
    return !is_loose(occlusion[cell.row].first_instance / BLOCK + cell.block);
}

fn bound_of_word(cell: Cell, word: u32) -> Within {
    let at = occlusion[cell.row].first_instance / BLOCK + cell.block;
    if (is_loose(at)) {
        return bound_of_block(cell);
    }
    let step = bounds[at].radius / WORD_STEPS;
    let steps = word_steps(bounds[at].words[word]);
    let center = word_center(bounds[at].center, step, steps.xyz);
    return widened_bound(cell, vec4<f32>(center, f32(steps.w) * step));
}

// A bound of positions, widened by the mesh. The factor covers rounding.
fn widened_bound(cell: Cell, positions: vec4<f32>) -> Within {
    let at = occlusion[cell.row].first_instance / BLOCK + cell.block;
    let mesh = occlusion[cell.row].sphere;
    let largest = mesh.w * bounds[at].max_scale;
    let reach = positions.w + length(mesh.xyz) * bounds[at].max_scale + largest;
    let slack = 1e-5 * (abs(positions.x) + abs(positions.y) + abs(positions.z) + reach);
    return Within(vec4<f32>(positions.xyz, reach + slack), largest);
}
