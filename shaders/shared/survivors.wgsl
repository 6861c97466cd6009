// What culling writes: ids of survivors in the arena, totals, and one indirect command per row.

import package::shared::layout::{
    BLOCK, Chunk, DrawCommand, NOT_INDEXED, Totals, VIEW_INDEXED, batch, chunk_views,
};

@group(0) @binding(10) var<storage, read_write> survivors: array<u32>;

// Writes the id of a survivor if its place is within the arena.
fn store(place: u32, id: u32) {
    // An arena that is too small loses survivors. The totals count them.
    if (place < batch.survivor_capacity) {
        survivors[place] = id;
    }
}

// How many of `len` survivors from `place` on fit into the arena.
fn room_for(place: u32, len: u32) -> u32 {
    return min(len, max(place, batch.survivor_capacity) - place);
}

// Writes an id at a place that is known to be within the arena.
fn put(place: u32, id: u32) {
    survivors[place] = id;
}

@group(0) @binding(11) var<storage, read_write> args: Args;

struct Args {
    totals: Totals,
    draws: array<DrawCommand>,
}

// Writes the command of a row whose survivors have the places from `first_place` to `end_place`,
// clamped to the arena.
fn write_command(row: u32, first_place: u32, end_place: u32) {
    let element_count = chunk_views[row].element_count;
    let first_element = chunk_views[row].first_element;
    let first = min(first_place, batch.survivor_capacity);
    let end = min(end_place, batch.survivor_capacity);
    let instances = end - first;
    if ((chunk_views[row].flags & VIEW_INDEXED) != 0u) {
        let base = bitcast<u32>(chunk_views[row].base_vertex);
        args.draws[row] = DrawCommand(element_count, instances, first_element, base, first);
    } else {
        args.draws[row] = DrawCommand(element_count, instances, first_element, first, 0u);
    }
    write_siblings(row, first, instances);
}

// Gives the sibling commands of a row the survivors of the row. The CPU wrote the rest of them.
fn write_siblings(row: u32, first: u32, instances: u32) {
    let first_sibling = chunk_views[row].first_sibling;
    let end = first_sibling + chunk_views[row].sibling_count;
    for (var sibling = first_sibling; sibling < end; sibling += 1u) {
        args.draws[sibling].instance_count = instances;
        if (args.draws[sibling].first_instance == NOT_INDEXED) {
            args.draws[sibling].base_vertex_or_first_instance = first;
        } else {
            args.draws[sibling].first_instance = first;
        }
    }
}

// Writes the totals of a dense arena, in which `survivors` survivors need that many places.
fn write_totals(survivors: u32, crossed: u32, in_frustum: u32, too_small: u32) {
    let overflow = max(survivors, batch.survivor_capacity) - batch.survivor_capacity;
    args.totals = Totals(
        survivors, overflow, 1u, survivors, crossed, in_frustum, too_small,
    );
}

// An unordered strategy learns the place of a survivor only while it writes. Its arena has one
// region per row with room for all instances of the row, in whole blocks, and one counter per row.
@group(0) @binding(14) var<storage, read_write> row_counters: array<atomic<u32>>;

// First place of the region of row `row` of the chunk.
fn region_of(chunk: Chunk, row: u32) -> u32 {
    return (chunk.first_count + row * chunk.block_count) * BLOCK;
}

// Reserves places for `count` survivors of row `row` of the chunk; returns the first place.
fn reserve(chunk: Chunk, row: u32, count: u32) -> u32 {
    return region_of(chunk, row) + atomicAdd(&row_counters[chunk.first_row + row], count);
}
