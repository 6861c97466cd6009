// Votes through workgroup memory.

fn add_votes(first_word: u32, vote: bool, thread: u32, subgroup: u32, lane: u32, size: u32) {
    if (vote) {
        atomicOr(&item_words[first_word + thread / 32u], 1u << (thread % 32u));
    }
}

@compute @workgroup_size(MESHLET_TILE)
fn vote(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var item = workgroup.x; item < spans.totals.item_count; item += workgroups.x) {
        let source = row_of(item);
        expand_item(source, item - spans.rows[source].first_item, thread, 0u, 0u, 0u);
    }
}
