// Pass 1, a step of one workgroup: exclusive prefixes of the tiles' sums, then the plan of pass 2.
// The solution says how many sums there are (`partial_count`) and writes the plan (`plan`).
//
// Hooks: partial_count, plan.

import package::expand::layout::{EXPAND_SPINE_RUN, EXPAND_THREADS, arena, params};
import package::expand::sources::{Thread, add_saturated, index_of};
import package::expand::tile::scan_tile;

const RUN: u32 = EXPAND_SPINE_RUN;

var<private> carry: u32;
var<private> partials: u32;

fn load_value(i: u32) -> u32 {
    var value = 0u;
    if (i < partials) {
        value = arena[params.partials_at + i];
    }
    return value;
}

fn store_prefix(i: u32, prefix: u32) {
    if (i < partials) {
        arena[params.partials_at + i] = prefix;
    }
}

fn tile_base(total: u32, thread: u32) -> u32 {
    return carry;
}

@compute @workgroup_size(EXPAND_THREADS)
fn spine(thread: Thread) {
    partials = partial_count();
    for (var first = 0u; first < partials; first += RUN * EXPAND_THREADS) {
        let total = scan_tile(first, thread);
        carry = add_saturated(carry, total);
    }
    plan(carry, index_of(thread));
}
