// Ballots at any subgroup size from 4 to 128. Component c has the answers of lanes 32c to 32c + 31.

// Answers of all lanes.
fn ballot_count(ballot: vec4<u32>) -> u32 {
    let bits = countOneBits(ballot);
    return bits.x + bits.y + bits.z + bits.w;
}

// Answers of the lanes before `lane` (mbcnt on GCN).
fn ballot_before(ballot: vec4<u32>, lane: u32) -> u32 {
    let first_lanes = vec4<i32>(0, 32, 64, 96);
    let lanes = vec4<u32>(clamp(vec4<i32>(i32(lane)) - first_lanes, vec4<i32>(0), vec4<i32>(32)));
    let below = (vec4<u32>(1u) << (lanes & vec4<u32>(31u))) - 1u;
    let mask = select(below, vec4<u32>(0xffffffffu), lanes == vec4<u32>(32u));
    return ballot_count(ballot & mask);
}

// The answers of lanes 32i to 32i + 31.
fn component(ballot: vec4<u32>, i: u32) -> u32 {
    return select(select(ballot.x, ballot.y, i == 1u), select(ballot.z, ballot.w, i == 3u), i > 1u);
}

// Distributes ballots over the lanes: of the words that a subgroup votes on, lane w ends up holding
// word w. A subgroup of S lanes tests S * 8 contiguous instances with 8 ballots. That makes S / 4
// words:
//     S =   8: ballot k holds bits 8k to 8k + 7 of 64: word k / 4, shifted by 8 * (k % 4)
//     S =  32: ballot k is word k
//     S = 128: ballot k is words 4k to 4k + 3, one per component
// Returns `word` with the part that ballot `k` adds to it.
fn keep_ballot(word: u32, k: u32, ballot: vec4<u32>, lane: u32, size: u32) -> u32 {
    let words_each = size >> 5u;
    let bit = k * size;
    // From 32 lanes on, a ballot has whole words. Below, it is a part of one word.
    let whole = component(ballot, lane & (max(words_each, 1u) - 1u));
    let is_whole = (lane >> firstTrailingBit(max(words_each, 1u))) == k;
    let part = select(0u, ballot.x << (bit & 31u), lane == (bit >> 5u));
    return select(word | part, select(word, whole, is_whole), words_each > 0u);
}
