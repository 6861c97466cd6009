// A visible instance's place among those of its workgroup: one atomicAdd in workgroup memory a subgroup.

fn lane_index() -> u32 {
    return subgroupExclusiveAdd(1u);
}

fn place_in_group(visible: bool, lane: u32) -> u32 {
    let ballot = subgroupBallot(visible);
    var base = 0u;
    if (lane == 0u) {
        base = atomicAdd(&group_count, ballot_count(ballot));
    }
    return subgroupBroadcastFirst(base) + ballot_before(ballot, lane);
}
