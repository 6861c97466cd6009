// Bits to masks by ballots, one for each bit that a lane has; a subgroup may hold a part of a word or several.

fn transpose(bits: u32, place: u32, thread: Thread) {
    let first = place - thread.lane;
    var left = subgroupOr(bits);
    while (left != 0u) {
        let bucket = countTrailingZeros(left);
        left &= left - 1u;
        let ballot = subgroupBallot((bits >> bucket & 1u) != 0u);
        if (thread.lane < (thread.size + 31u) / 32u) {
            let word = first / 32u + thread.lane;
            atomicOr(&masks[word * EXPAND_BUCKETS + bucket], ballot[thread.lane] << (first % 32u));
        }
    }
}
