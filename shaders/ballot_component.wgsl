// The i-th 32 lanes of a ballot.

fn component(ballot: vec4<u32>, i: u32) -> u32 {
    return select(select(ballot.x, ballot.y, i == 1u), select(ballot.z, ballot.w, i == 3u), i > 1u);
}
