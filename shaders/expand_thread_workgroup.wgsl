// The number of a thread.

struct Thread {
    @builtin(local_invocation_index) index: u32,
}

fn index_of(thread: Thread) -> u32 {
    return thread.index;
}
