// What the kernels of pass 1 share: sources and threads, sums of items, and the plan of pass 2.

import package::expand::layout::{
    EXPAND_CHUNK, EXPAND_KNOWN, EXPAND_MOST_ITEMS, EXPAND_NO_ROOM, EXPAND_THREADS, EXPAND_TILE,
    EXPAND_TOO_MANY_ITEMS, EXPAND_TOO_MANY_THREADS, arena, params, state,
};

@group(0) @binding(1) var<storage, read> source_words: array<u32>;

// Number of sources.
fn source_count() -> u32 {
    var count = params.source_capacity;
    if (params.source_word != EXPAND_KNOWN) {
        count = min(count, source_words[params.source_word]);
    }
    return count;
}

// Tiles of the sources.
fn tile_count() -> u32 {
    // The sum could wrap.
    let sources = source_count();
    return sources / EXPAND_TILE + select(0u, 1u, sources % EXPAND_TILE != 0u);
}

fn add_saturated(a: u32, b: u32) -> u32 {
    let sum = a + b;
    return select(sum, 0xffffffffu, sum < a);
}

// A saturated sum of at most 65,536 values. `total` is the sum modulo 2^32, `high` the sum of the
// upper halves.
fn saturated(total: u32, high: u32) -> u32 {
    let low = total - (high << 16u);
    return select(total, 0xffffffffu, high + (low >> 16u) >= 65536u);
}

// Place of value i of a scan in two levels with tiles of EXPAND_TILE values.
fn place_of(i: u32) -> u32 {
    return arena[params.prefix_at + i] + arena[params.partials_at + i / EXPAND_TILE];
}

// The number of a thread in its workgroup, with subgroups: subgroup by subgroup.
@if(subgroup)
struct Thread {
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
}

@if(subgroup)
fn index_of(thread: Thread) -> u32 {
    return thread.subgroup * thread.size + thread.lane;
}

@if(!subgroup)
struct Thread {
    @builtin(local_invocation_index) index: u32,
}

@if(!subgroup)
fn index_of(thread: Thread) -> u32 {
    return thread.index;
}

// The entries of a source in a list: one per item, or one per workgroup of items.
@if(!groups)
fn weight_of(items: u32) -> u32 {
    return items;
}

@if(groups)
fn weight_of(items: u32) -> u32 {
    return items / EXPAND_CHUNK + select(0u, 1u, items % EXPAND_CHUNK != 0u);
}

// ---- Sums.

// The number of items, if no scan gives it: one sum per workgroup of pass 1, in two halves so that
// it cannot wrap.
var<private> low_sum: u32;
var<private> high_sum: u32;
var<workgroup> group_low: atomic<u32>;
var<workgroup> group_high: atomic<u32>;

// Adds the items of a source to the sum.
fn note_items(items: u32) {
    low_sum += items & 0xffffu;
    high_sum += items >> 16u;
    // Carries, because runs of tiles may be long.
    high_sum = min(high_sum + (low_sum >> 16u), 0x10000u);
    low_sum &= 0xffffu;
}

// The saturated sum of the workgroup, for all its threads. It can be called once.
fn sum_items() -> u32 {
    atomicAdd(&group_low, low_sum);
    atomicAdd(&group_high, high_sum);
    workgroupBarrier();
    let high = atomicLoad(&group_high) + (atomicLoad(&group_low) >> 16u);
    let low = atomicLoad(&group_low) & 0xffffu;
    return select((high << 16u) | low, 0xffffffffu, high >= 65536u);
}

// Stores the sum of the workgroup.
fn store_sums(slot: u32, thread: u32) {
    let sum = sum_items();
    if (thread == 0u) {
        arena[params.sums_at + slot] = sum;
    }
}

// The sum of all workgroups of pass 1, for all threads of the calling workgroup.
fn sum_all(thread: u32) -> u32 {
    for (var slot = thread; slot < params.workgroups; slot += EXPAND_THREADS) {
        note_items(arena[params.sums_at + slot]);
    }
    return sum_items();
}

// ---- The plan.

// Workgroups of an indirect dispatch, at most 65,535 in x: wgpu silently drops a larger dispatch.
fn write_dispatch(index: u32, chunks: u32) {
    let x = min(chunks, 65535u);
    state.dispatches[index] = vec4<u32>(x, (chunks + 65534u) / 65535u, 1u, 0u);
}

// Chunks of pass 2 for this many threads.
fn chunks_of(threads: u32) -> u32 {
    return threads / EXPAND_CHUNK + select(0u, 1u, threads % EXPAND_CHUNK != 0u);
}

// Writes the plan of pass 2, except the buckets.
fn write_plan(items: u32, needed: u32, width: u32, chunks: u32, status: u32) {
    var all = status;
    if (items > EXPAND_MOST_ITEMS) {
        all |= EXPAND_TOO_MANY_ITEMS;
    }
    // Refused input expands to nothing.
    let runs = (all & (EXPAND_TOO_MANY_ITEMS | EXPAND_TOO_MANY_THREADS)) == 0u;
    let some = select(0u, chunks, runs);
    state.sources = source_count();
    state.items = items;
    state.needed = needed;
    state.status = all;
    state.chunks = some;
    state.width = width;
    write_dispatch(0u, some);
}

// The status bit of entries that do not fit.
fn no_room(needed: u32) -> u32 {
    return select(0u, EXPAND_NO_ROOM, needed > params.entry_capacity);
}
