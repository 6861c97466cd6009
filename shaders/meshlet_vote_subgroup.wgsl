// Votes by ballot, at any subgroup size from 4 to 128: a subgroup's bits lie side by side in the cell's words.

fn add_votes(first_word: u32, vote: bool, thread: u32, subgroup: u32, lane: u32, size: u32) {
    let ballot = subgroupBallot(vote);
    let first_bit = subgroup * size;
    if (size < 32u) {
        if (lane == 0u) {
            atomicOr(&item_words[first_word + first_bit / 32u], ballot.x << (first_bit % 32u));
        }
    } else if (lane < size / 32u) {
        let word = select(select(ballot.x, ballot.y, lane == 1u), select(ballot.z, ballot.w, lane == 3u), lane > 1u);
        atomicOr(&item_words[first_word + first_bit / 32u + lane], word);
    }
}

@compute @workgroup_size(MESHLET_TILE)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    for (var item = workgroup.x; item < spans.totals.item_count; item += workgroups.x) {
        let source = row_of(item);
        expand_item(source, item - spans.rows[source].first_item, subgroup * size + lane, subgroup, lane, size);
    }
}
