// `fixed-max`: as many threads per source as the largest source has items. Pass 1 finds that
// number. In pass 2 the threads beyond a source's items leave at once.

import package::expand::body::expand_item;
import package::expand::counts::items_of;
import package::expand::items::expand;
import package::expand::layout::{
    EXPAND_CHUNK, EXPAND_MOST_ITEMS, EXPAND_THREADS, EXPAND_TOO_MANY_THREADS, arena, params, state,
};
import package::expand::sources::{
    chunks_of, note_items, source_count, store_sums, sum_all, write_plan,
};

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
    // Has the barrier between the writes of the maximum and its reading.
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

fn expand_chunk(chunk: u32, thread: u32) {
    let i = chunk * EXPAND_CHUNK + thread;
    let source = i / state.width;
    let item = i % state.width;
    if (source < state.sources) {
        if (item < items_of(source)) {
            expand_item(source, item);
        }
    }
}
