// Pass 1, first step: exclusive prefixes of the sources' weights within tiles, and the sum of each
// tile. Workgroups stride over the tiles, so a dispatch needs no count from the GPU.

import package::expand::counts::items_of;
import package::expand::layout::{EXPAND_THREADS, EXPAND_TILE, arena, params};
import package::expand::sources::{Thread, index_of, source_count, tile_count, weight_of};
import package::expand::tile::scan_tile;
@if(groups) import package::expand::sources::{note_items, store_sums};

const RUN: u32 = EXPAND_TILE / EXPAND_THREADS;

var<private> sources: u32;

fn load_value(i: u32) -> u32 {
    var weight = 0u;
    if (i < sources) {
        let items = items_of(i);
        note_items(items);
        weight = weight_of(items);
    }
    return weight;
}

fn store_prefix(i: u32, prefix: u32) {
    if (i < sources) {
        arena[params.prefix_at + i] = prefix;
    }
}

fn tile_base(total: u32, thread: u32) -> u32 {
    return 0u;
}

@compute @workgroup_size(EXPAND_THREADS)
fn scan(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    sources = source_count();
    for (var tile = workgroup.x; tile < tile_count(); tile += workgroups.x) {
        let total = scan_tile(tile * EXPAND_TILE, thread);
        if (index_of(thread) == 0u) {
            arena[params.partials_at + tile] = total;
        }
    }
    store_sums(workgroup.x, index_of(thread));
}

// With one entry per item, the sum of the weights is the number of items.
@if(!groups)
fn note_items(items: u32) {}

@if(!groups)
fn store_sums(slot: u32, thread: u32) {}
