// `packed-atomic`: places and prefixes from one 64-bit counter. Its upper half counts sources, its
// lower half their items. A workgroup adds a whole tile at once, so tiles lie in the order of
// arrival. In pass 2 a thread finds its source by binary search among the prefixes.

import package::expand::body::expand_item;
import package::expand::counts::items_of;
import package::expand::items::expand;
import package::expand::layout::{
    EXPAND_CHUNK, EXPAND_MOST_ITEMS, EXPAND_THREADS, EXPAND_TILE, EXPAND_TOO_MANY_ITEMS, arena,
    params, state,
};
import package::expand::sources::{Thread, chunks_of, source_count, tile_count, write_plan};
import package::expand::tile::scan_tile;

const RUN: u32 = EXPAND_TILE / EXPAND_THREADS;

struct Packed {
    count_sum: atomic<u64>,
    status: atomic<u32>,
    pad_a: u32,
}

@group(0) @binding(5) var<storage, read_write> packed: Packed;

var<private> sources: u32;
var<private> tile_first: u32;
// What other tiles have added before this one.
var<workgroup> sources_before: u32;
var<workgroup> items_before: u32;

fn load_value(i: u32) -> u32 {
    var items = 0u;
    if (i < sources) {
        items = items_of(i);
    }
    return items;
}

fn tile_base(total: u32, thread: u32) -> u32 {
    if (thread == 0u) {
        let count = min(sources - tile_first, EXPAND_TILE);
        let before = atomicAdd(&packed.count_sum, (u64(count) << 32u) + u64(total));
        sources_before = u32(before >> 32u);
        items_before = u32(before);
        // The first tile beyond the limit says so: from then on the sum may carry into the count.
        if (total > EXPAND_MOST_ITEMS || items_before > EXPAND_MOST_ITEMS - total) {
            atomicOr(&packed.status, EXPAND_TOO_MANY_ITEMS);
        }
    }
    workgroupBarrier();
    return items_before;
}

fn store_prefix(i: u32, prefix: u32) {
    let place = sources_before + i - tile_first;
    if (i < sources && place < params.source_capacity) {
        arena[params.prefix_at + place] = prefix;
        arena[params.entries_at + place] = i;
    }
}

@compute @workgroup_size(1)
fn clear_packed() {
    atomicStore(&packed.count_sum, u64(0u));
    atomicStore(&packed.status, 0u);
}

@compute @workgroup_size(EXPAND_THREADS)
fn pack(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    sources = source_count();
    for (var tile = workgroup.x; tile < tile_count(); tile += workgroups.x) {
        tile_first = tile * EXPAND_TILE;
        scan_tile(tile_first, thread);
    }
}

@compute @workgroup_size(1)
fn plan_packed() {
    let status = atomicLoad(&packed.status);
    let total = select(u32(atomicLoad(&packed.count_sum)), 0xffffffffu, status != 0u);
    write_plan(total, 0u, total, chunks_of(total), status);
}

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    if (i >= state.width) {
        return;
    }
    var record = 0u;
    var end = state.sources;
    while (end - record > 1u) {
        let middle = record + (end - record) / 2u;
        if (arena[params.prefix_at + middle] <= i) {
            record = middle;
        } else {
            end = middle;
        }
    }
    expand_item(arena[params.entries_at + record], i - arena[params.prefix_at + record]);
}
