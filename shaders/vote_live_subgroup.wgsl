// Answers by ballot, at any subgroup size from 4 to 128: a ballot holds a part of a word, a word, or several.

struct Own {
    // Threads are numbered subgroup by subgroup.
    thread: u32,
    lane: u32,
    size: u32,
}

// Of 32 threads side by side, all with the same `word`.
fn answer(own: Own, word: u32, visible: bool) {
    let ballot = subgroupBallot(visible);
    if (own.size >= 32u) {
        if ((own.lane & 31u) == 0u) {
            atomicOr(&answers[word], component(ballot, own.lane >> 5u));
        }
    } else if (own.lane == 0u) {
        atomicOr(&answers[word], ballot.x << (own.thread & 31u));
    }
}

@compute @workgroup_size(BLOCK_THREADS)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    vote_live(workgroup.x, workgroups.x, Own(subgroup * size + lane, lane, size));
}
