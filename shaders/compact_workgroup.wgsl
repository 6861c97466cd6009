// Sums over a workgroup through its memory.

struct Own {
    thread: u32,
}

var<workgroup> thread_sums: array<vec3<u32>, BLOCK_THREADS>;

// The sum of `value` over all threads.
fn add_up(own: Own, value: vec3<u32>) -> vec3<u32> {
    thread_sums[own.thread] = value;
    workgroupBarrier();
    for (var span = BLOCK_THREADS / 2u; span > 0u; span /= 2u) {
        if (own.thread < span) {
            thread_sums[own.thread] += thread_sums[own.thread + span];
        }
        workgroupBarrier();
    }
    let total = thread_sums[0];
    // The next call overwrites the sums.
    workgroupBarrier();
    return total;
}

// The sum of `value` over the threads before.
fn scan_up(own: Own, value: u32) -> u32 {
    var inclusive = value;
    thread_sums[own.thread].x = inclusive;
    workgroupBarrier();
    for (var reach = 1u; reach < BLOCK_THREADS; reach *= 2u) {
        var before = 0u;
        if (own.thread >= reach) {
            before = thread_sums[own.thread - reach].x;
        }
        workgroupBarrier();
        inclusive += before;
        thread_sums[own.thread].x = inclusive;
        workgroupBarrier();
    }
    return inclusive - value;
}

fn write_words_together(count: u32, first_place: u32, survivors: u32, first_id: u32, own: Own) -> bool {
    return false;
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    compact_all(workgroup.x, workgroups.x, Own(thread));
}
