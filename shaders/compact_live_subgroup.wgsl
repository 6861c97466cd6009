// Compact on the live blocks; a block of which all instances survive has no words. Words by words_subgroup.wgsl.

@group(0) @binding(6) var<storage, read> live: Live;

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let thread = subgroup * size + lane;
    for (var at = workgroup.x; at < live.count; at += workgroups.x) {
        let block_in_batch = live.blocks[at] & ~CROSSED;
        let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
        let block = block_in_batch - chunk.first_block;
        let len = min(chunk.instance_count - block * BLOCK, BLOCK);
        let first_id = chunk.first_instance + block * BLOCK;
        for (var r = 0u; r < chunk.row_count; r += 1u) {
            let count = chunk.first_count + r * chunk.block_count + block;
            let place = place_of(count);
            // The same for all threads.
            let survivors = place_of(count + 1u) - place;
            if (survivors == 0u) {
                continue;
            }
            if (survivors == len) {
                for (var i = thread; i < len; i += BLOCK_THREADS) {
                    store(place + i, first_id + i);
                }
                continue;
            }
            load_words(count, thread, subgroup, lane, size);
            write_survivors(place, first_id, thread);
            // The next row overwrites the words.
            workgroupBarrier();
        }
    }
}
