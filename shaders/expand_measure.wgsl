// Pass 1 of `fixed-max`: the greatest number of items of a source, and the sum of all; then the plan.

var<workgroup> group_max: atomic<u32>;

@compute @workgroup_size(EXPAND_THREADS)
fn measure(
    @builtin(local_invocation_index) thread: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let sources = source_count();
    let stride = workgroups.x * EXPAND_THREADS;
    var most = 0u;
    let first = workgroup.x * EXPAND_THREADS + thread;
    // The last step could wrap.
    for (var source = first; source < sources; source += min(stride, sources - source)) {
        let items = items_of(source);
        note_items(items);
        most = max(most, items);
    }
    atomicMax(&group_max, most);
    // With the barrier between the maxima and their reading.
    store_sums(workgroup.x, thread);
    if (thread == 0u) {
        arena[params.partials_at + workgroup.x] = atomicLoad(&group_max);
    }
}

@compute @workgroup_size(EXPAND_THREADS)
fn plan_fixed(@builtin(local_invocation_index) thread: u32) {
    for (var slot = thread; slot < params.workgroups; slot += EXPAND_THREADS) {
        atomicMax(&group_max, arena[params.partials_at + slot]);
    }
    let items = sum_all(thread);
    if (thread == 0u) {
        let width = atomicLoad(&group_max);
        let sources = source_count();
        let fits = width == 0u || sources <= EXPAND_MOST_ITEMS / width;
        let threads = select(0u, sources * width, fits);
        write_plan(items, 0u, width, chunks_of(threads), select(EXPAND_TOO_MANY_THREADS, 0u, fits));
    }
}
