// Compact on every block; words by words_workgroup.wgsl.

@compute @workgroup_size(BLOCK_THREADS)
fn compact(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let block_in_batch = block_of(workgroup, batch.dispatch_width);
    if (block_in_batch >= batch.block_count) {
        return;
    }
    let chunk = chunks[chunk_of(block_in_batch, batch.chunk_count)];
    let block = block_in_batch - chunk.first_block;

    for (var r = 0u; r < chunk.row_count; r += 1u) {
        let count = chunk.first_count + r * chunk.block_count + block;
        let place = place_of(count);
        // The next place is this one: no survivor. The same for all threads.
        if (place_of(count + 1u) == place) {
            continue;
        }
        load_words(count, thread);
        write_survivors(place, chunk.first_instance + block * BLOCK, thread);
        // The next row overwrites the words.
        workgroupBarrier();
    }
}
