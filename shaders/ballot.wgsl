// Ballots at any subgroup size from 4 to 128: component c has the answers of lanes 32c .. 32c + 31.

fn ballot_count(ballot: vec4<u32>) -> u32 {
    let bits = countOneBits(ballot);
    return bits.x + bits.y + bits.z + bits.w;
}

// Answers of the lanes before `lane` (GCN's mbcnt).
fn ballot_before(ballot: vec4<u32>, lane: u32) -> u32 {
    let lanes = vec4<u32>(clamp(vec4<i32>(i32(lane)) - vec4<i32>(0, 32, 64, 96), vec4<i32>(0), vec4<i32>(32)));
    let mask = select((vec4<u32>(1u) << (lanes & vec4<u32>(31u))) - 1u, vec4<u32>(0xffffffffu), lanes == vec4<u32>(32u));
    return ballot_count(ballot & mask);
}
