// The naive scan of Hillis and Steele ("Data Parallel Algorithms", 1986,
// https://doi.org/10.1145/7902.7903): log2(n) passes over global memory. Each pass adds to every
// sum the sum `reach` before it, and the reach doubles from pass to pass.
//
//     flags      1 0 1 1 0
//     reach 1    1 1 1 2 1
//     reach 2    1 1 2 3 2
//     reach 4    1 1 2 3 3     inclusive sums: a sum that differs from the one before marks a
//                              survivor, and the one before is its place

import package::shared::layout::{
    BLOCK, BLOCK_ITEMS, BLOCK_THREADS, batch, block_of, chunk_of, chunks, chunk_views,
};
import package::shared::survivors::{store, write_command, write_totals};
import package::shared::visibility::{is_visible, load_sphere};

// Votes of 32 bits: 0 or 1 per instance and row. They lie in the order of the bits of vote.wgsl:
// instance i of a block is at
//     flags[(first_count + row * block_count + block) * BLOCK + i].
@group(0) @binding(15) var<storage, read_write> flags: array<u32>;

@compute @workgroup_size(BLOCK_THREADS)
fn vote_flags(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;

    var spheres: array<vec4<f32>, BLOCK_ITEMS>;
    for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
        spheres[k] = load_sphere(chunk, block * BLOCK + k * BLOCK_THREADS + thread);
    }
    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let planes = chunk_views[chunk.first_row + r].planes;
        let first = (chunk.first_count + r * chunk.block_count + block) * BLOCK;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let i = k * BLOCK_THREADS + thread;
            flags[first + i] = u32(is_visible(chunk, planes, spheres[k], block * BLOCK + i));
        }
    }
}

// One step of the scan.
struct Doubling {
    reach: u32,
    pad_a: u32,
    pad_b: u32,
    pad_c: u32,
}

@group(0) @binding(17) var<uniform> doubling: Doubling;
@group(0) @binding(15) var<storage, read> sums: array<u32>;
@group(0) @binding(16) var<storage, read_write> next_sums: array<u32>;

// One thread per sum, as plain as in the article.
@compute @workgroup_size(BLOCK_THREADS)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let group = block_of(workgroup, groups.x);
    if (group >= batch.count_len * BLOCK_ITEMS) {
        return;
    }
    let at = group * BLOCK_THREADS + thread;
    var sum = sums[at];
    if (at >= doubling.reach) {
        sum += sums[at - doubling.reach];
    }
    next_sums[at] = sum;
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;

    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let first = (chunk.first_count + r * chunk.block_count + block) * BLOCK;
        for (var k = 0u; k < BLOCK_ITEMS; k += 1u) {
            let i = k * BLOCK_THREADS + thread;
            let at = first + i;
            var before = 0u;
            if (at > 0u) {
                before = sums[at - 1u];
            }
            if (sums[at] != before) {
                store(before, chunk.first_instance + block * BLOCK + i);
            }
        }
    }
}

// The place of a cell: the sum of all votes before it.
fn place_of(cell: u32) -> u32 {
    var place = 0u;
    if (cell > 0u) {
        place = sums[cell * BLOCK - 1u];
    }
    return place;
}

// One thread per row writes the row's command. The first thread writes the totals.
@compute @workgroup_size(64)
fn write_args(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row < batch.row_count) {
        let draw = chunk_views[row];
        write_command(row, place_of(draw.first_count), place_of(draw.first_count + draw.block_count));
    }
    if (row == 0u) {
        write_totals(place_of(batch.count_len), 0u, 0u, 0u);
    }
}
