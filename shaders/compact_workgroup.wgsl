// Sums over a workgroup through its memory.

struct Own {
    thread: u32,
}

var<workgroup> thread_sums: array<vec4<u32>, BLOCK_THREADS>;

// The sum of `value` over all threads.
fn add_up(own: Own, value: vec4<u32>) -> vec4<u32> {
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

fn word_of(count: u32, survivors: u32, own: Own) -> u32 {
    return 0u;
}

fn tiles_before_live(at: u32, end: u32, live: Live, own: Own) -> u32 {
    return tiles_before_any(at, end, own);
}

fn write_count_together(count: u32, own_word: u32, place: u32, survivors: u32, own: Own) {
    if (survivors > 0u) {
        write_count(count, counted(count), place, survivors, own.thread % 32u);
    }
}

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    compact_all(workgroup.x, workgroups.x, Own(thread));
}
