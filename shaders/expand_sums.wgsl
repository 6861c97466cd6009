// The number of items, where no scan gives it: a sum a workgroup of pass 1, in two halves so that it cannot wrap.

var<private> low_sum: u32;
var<private> high_sum: u32;
var<workgroup> group_low: atomic<u32>;
var<workgroup> group_high: atomic<u32>;

fn note_items(items: u32) {
    low_sum += items & 0xffffu;
    high_sum += items >> 16u;
    // Long runs of tiles carry.
    high_sum = min(high_sum + (low_sum >> 16u), 0x10000u);
    low_sum &= 0xffffu;
}

// The workgroup's sum, or the greatest u32: to all its threads, once.
fn sum_items() -> u32 {
    atomicAdd(&group_low, low_sum);
    atomicAdd(&group_high, high_sum);
    workgroupBarrier();
    let high = atomicLoad(&group_high) + (atomicLoad(&group_low) >> 16u);
    let low = atomicLoad(&group_low) & 0xffffu;
    return select((high << 16u) | low, 0xffffffffu, high >= 65536u);
}

fn store_sums(slot: u32, thread: u32) {
    let sum = sum_items();
    if (thread == 0u) {
        arena[params.sums_at + slot] = sum;
    }
}

// The sum of all workgroups of pass 1, to all threads of the one that asks.
fn sum_all(thread: u32) -> u32 {
    for (var slot = thread; slot < params.workgroups; slot += EXPAND_THREADS) {
        note_items(arena[params.sums_at + slot]);
    }
    return sum_items();
}
