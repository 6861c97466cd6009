// The commands of an arena of regions. `clear_rows` runs before survivors are counted, `write_args`
// after.

import package::shared::layout::{BLOCK, Totals, batch, chunk_views};
import package::shared::survivors::{args, write_command};

@group(0) @binding(14) var<storage, read_write> row_counts: array<u32>;

var<workgroup> thread_totals: array<vec3<u32>, 64>;

@compute @workgroup_size(64)
fn clear_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < batch.row_count) {
        row_counts[id.x] = 0u;
    }
}

@compute @workgroup_size(64)
fn write_args(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let this_row = workgroup.x * 64u + thread;
    if (this_row < batch.row_count) {
        let first = chunk_views[this_row].first_count * BLOCK;
        write_command(this_row, first, first + row_counts[this_row]);
    }
    // The first workgroup adds up all rows.
    if (workgroup.x > 0u) {
        return;
    }
    let capacity = batch.survivor_capacity;
    // Survivors, survivors that did not fit, needed capacity of the arena.
    var sum = vec3<u32>(0u);
    for (var row = thread; row < batch.row_count; row += 64u) {
        let survivors = row_counts[row];
        let first = chunk_views[row].first_count * BLOCK;
        let stored = min(first + survivors, capacity) - min(first, capacity);
        let needed = select(0u, first + survivors, survivors > 0u);
        sum = vec3<u32>(sum.xy + vec2<u32>(survivors, survivors - stored), max(sum.z, needed));
    }
    thread_totals[thread] = sum;
    workgroupBarrier();
    if (thread == 0u) {
        for (var t = 1u; t < 64u; t += 1u) {
            let other = thread_totals[t];
            sum = vec3<u32>(sum.xy + other.xy, max(sum.z, other.z));
        }
        args.totals = Totals(sum.x, sum.y, 1u, sum.z, 0u, 0u, 0u);
    }
}
