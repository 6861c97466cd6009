// Pass 1 of an expansion: exclusive prefixes within tiles, and the sum of each tile. Workgroups
// stride over the tiles, so a dispatch needs no count from the GPU.
//
// `scan`, the first step of most expansions, scans the weights of the sources. `scan_table`, the
// second step of the buckets, scans a table: the entries per bucket and tile of sources.

@if(!table) import package::expand::counts::items_of;
import package::expand::layout::{EXPAND_THREADS, EXPAND_TILE, arena, params};
@if(table) import package::expand::layout::EXPAND_BUCKETS;
import package::expand::sources::{Thread, index_of, tile_count};
@if(!table) import package::expand::sources::{source_count, weight_of};
@if(groups) import package::expand::sources::{note_items, store_sums};
import package::expand::tile::scan_tile;

const RUN: u32 = EXPAND_TILE / EXPAND_THREADS;

// Number of values.
var<private> value_count: u32;

@if(!table)
fn load_value(i: u32) -> u32 {
    var weight = 0u;
    if (i < value_count) {
        let items = items_of(i);
        note_items(items);
        weight = weight_of(items);
    }
    return weight;
}

@if(table)
fn load_value(i: u32) -> u32 {
    var entries = 0u;
    if (i < value_count) {
        entries = arena[params.prefix_at + i];
    }
    return entries;
}

fn store_prefix(i: u32, prefix: u32) {
    if (i < value_count) {
        arena[params.prefix_at + i] = prefix;
    }
}

// The hook of the tile scan: nothing is added to the prefixes.
fn tile_base(total: u32, thread: u32) -> u32 {
    return 0u;
}

fn scan_tiles(end: u32, workgroup: u32, workgroups: u32, thread: Thread) {
    for (var tile = workgroup; tile < end; tile += workgroups) {
        let total = scan_tile(tile * EXPAND_TILE, thread);
        if (index_of(thread) == 0u) {
            arena[params.partials_at + tile] = total;
        }
    }
}

@if(!table) @compute @workgroup_size(EXPAND_THREADS)
fn scan(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    value_count = source_count();
    scan_tiles(tile_count(), workgroup.x, workgroups.x, thread);
    store_sums(workgroup.x, index_of(thread));
}

@if(table) @compute @workgroup_size(EXPAND_THREADS)
fn scan_table(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    value_count = tile_count() * EXPAND_BUCKETS;
    let tiles = (value_count + EXPAND_TILE - 1u) / EXPAND_TILE;
    scan_tiles(tiles, workgroup.x, workgroups.x, thread);
}

// Without groups, a weight is a number of items, so items need no separate sum.
@if(!groups)
fn note_items(items: u32) {}

@if(!groups)
fn store_sums(slot: u32, thread: u32) {}
