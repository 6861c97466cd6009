// `compact` through workgroup memory.

import package::cull::compact::{Occupied, compact_all, counted, tiles_before_any, write_count};
import package::shared::layout::BLOCK_THREADS;

struct Thread {
    index: u32,
}

var<workgroup> thread_sums: array<vec4<u32>, BLOCK_THREADS>;

// The sum of `value` over all threads.
fn add_up(thread: Thread, value: vec4<u32>) -> vec4<u32> {
    thread_sums[thread.index] = value;
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (thread.index < span) {
            thread_sums[thread.index] += thread_sums[thread.index + span];
        }
        workgroupBarrier();
    }
    let total = thread_sums[0];
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

// The ways of subgroups of 32 lanes have no use here: 32 threads take a bit per word.
fn word_of(first_word: u32, survivors: u32, thread: Thread) -> u32 {
    return 0u;
}

fn tiles_before_occupied(at: u32, end: u32, occupied: Occupied, thread: Thread) -> u32 {
    return tiles_before_any(at, end, thread);
}

fn write_count_together(
    first_word: u32,
    lane_word: u32,
    place: u32,
    survivors: u32,
    thread: Thread,
) {
    if (survivors > 0u) {
        write_count(first_word, counted(first_word), place, survivors, thread.index % 32u);
    }
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    compact_all(workgroup.x, workgroups.x, Thread(thread));
}
