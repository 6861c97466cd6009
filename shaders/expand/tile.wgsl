// A workgroup-wide scan. The kernel says where values come from and go to: load_value(i) and
// store_prefix(i, prefix); tile_base(total, thread) is added to all prefixes; RUN is the number of
// values per thread.
//
// Hooks: RUN, load_value, store_prefix, tile_base.

import package::expand::layout::EXPAND_THREADS;
import package::expand::sources::{Thread, saturated};
@if(subgroup) import package::expand::sources::index_of;

// One sum per subgroup: 64 if subgroups have four lanes. Then one sum of the upper halves.
@if(subgroup)
var<workgroup> subgroup_totals: array<u32, 64>;
@if(subgroup)
var<workgroup> subgroup_highs: array<u32, 64>;

// A workgroup's scan of RUN * EXPAND_THREADS values. Returns their saturated sum.
//
// By subgroup prefix sums: a subgroup takes RUN * size contiguous values, `size` of them at a time.
@if(subgroup)
fn scan_tile(first: u32, thread: Thread) -> u32 {
    let first_value = first + thread.subgroup * thread.size * RUN + thread.lane;
    var prefixes: array<u32, RUN>;
    var sum = 0u;
    var high = 0u;
    for (var r = 0u; r < RUN; r += 1u) {
        let value = load_value(first_value + r * thread.size);
        prefixes[r] = sum + subgroupExclusiveAdd(value);
        sum += subgroupAdd(value);
        high += value >> 16u;
    }
    high = subgroupAdd(high);
    if (thread.lane == 0u) {
        subgroup_totals[thread.subgroup] = sum;
        subgroup_highs[thread.subgroup] = high;
    }
    workgroupBarrier();
    var before = 0u;
    var total = 0u;
    high = 0u;
    for (var s = 0u; s < EXPAND_THREADS / thread.size; s += 1u) {
        before += select(0u, subgroup_totals[s], s < thread.subgroup);
        total += subgroup_totals[s];
        high += subgroup_highs[s];
    }
    total = saturated(total, high);
    let base = tile_base(total, index_of(thread)) + before;
    for (var r = 0u; r < RUN; r += 1u) {
        store_prefix(first_value + r * thread.size, base + prefixes[r]);
    }
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

@if(!subgroup)
var<workgroup> thread_sums: array<vec2<u32>, EXPAND_THREADS>;

// The same through workgroup memory (Hillis and Steele): a thread takes RUN contiguous values.
@if(!subgroup)
fn scan_tile(first: u32, thread: Thread) -> u32 {
    let first_value = first + thread.index * RUN;
    var prefixes: array<u32, RUN>;
    // Sums of the values and of their upper halves.
    var sums = vec2<u32>(0u);
    for (var r = 0u; r < RUN; r += 1u) {
        let value = load_value(first_value + r);
        prefixes[r] = sums.x;
        sums += vec2<u32>(value, value >> 16u);
    }
    let thread_sum = sums.x;
    thread_sums[thread.index] = sums;
    workgroupBarrier();
    for (var reach = 1u; reach < EXPAND_THREADS; reach *= 2u) {
        var before = vec2<u32>(0u);
        if (thread.index >= reach) {
            before = thread_sums[thread.index - reach];
        }
        workgroupBarrier();
        sums += before;
        thread_sums[thread.index] = sums;
        workgroupBarrier();
    }
    let last = thread_sums[EXPAND_THREADS - 1u];
    let total = saturated(last.x, last.y);
    let base = tile_base(total, thread.index) + sums.x - thread_sum;
    for (var r = 0u; r < RUN; r += 1u) {
        store_prefix(first_value + r, base + prefixes[r]);
    }
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}
