// Pass 1 of the buckets, second step: exclusive prefixes, within tiles, of the entries per bucket
// and tile.

import package::expand::layout::{EXPAND_BUCKETS, EXPAND_THREADS, EXPAND_TILE, arena, params};
import package::expand::sources::{Thread, index_of, tile_count};
import package::expand::tile::scan_tile;

const RUN: u32 = EXPAND_TILE / EXPAND_THREADS;

var<private> table_len: u32;

fn load_value(i: u32) -> u32 {
    var value = 0u;
    if (i < table_len) {
        value = arena[params.prefix_at + i];
    }
    return value;
}

fn store_prefix(i: u32, prefix: u32) {
    if (i < table_len) {
        arena[params.prefix_at + i] = prefix;
    }
}

fn tile_base(total: u32, thread: u32) -> u32 {
    return 0u;
}

@compute @workgroup_size(EXPAND_THREADS)
fn scan_table(
    thread: Thread,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    table_len = tile_count() * EXPAND_BUCKETS;
    for (var tile = workgroup.x; tile * EXPAND_TILE < table_len; tile += workgroups.x) {
        let total = scan_tile(tile * EXPAND_TILE, thread);
        if (index_of(thread) == 0u) {
            arena[params.partials_at + tile] = total;
        }
    }
}
