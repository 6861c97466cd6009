// The number of a thread: subgroup by subgroup.

struct Thread {
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
}

fn index_of(thread: Thread) -> u32 {
    return thread.subgroup * thread.size + thread.lane;
}

// One sum a subgroup: 64 when subgroups have four lanes.
