// A visible instance's place among those of its workgroup: one atomicAdd in workgroup memory an instance.

fn lane_index() -> u32 {
    return 0u;
}

fn place_in_group(visible: bool, lane: u32) -> u32 {
    var place = 0u;
    if (visible) {
        place = atomicAdd(&group_count, 1u);
    }
    return place;
}
