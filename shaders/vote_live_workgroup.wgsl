// Answers through workgroup memory.

struct Own {
    thread: u32,
}

fn answer(own: Own, word: u32, visible: bool) {
    if (visible) {
        atomicOr(&answers[word], 1u << (own.thread & 31u));
    }
}

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    vote_live(workgroup.x, workgroups.x, Own(thread));
}
