// The vote counts the survivors of its block in every row, 16 rows at a time.

@group(0) @binding(6) var<storage, read_write> counts: array<u32>;

var<workgroup> row_survivors: array<atomic<u32>, 16>;

// To be called by all threads of the batch. The list of live counts is empty for `scan`.
fn begin_vote(block_in_batch: u32, thread: u32) {
    if (block_in_batch == 0u && thread == 0u) {
        atomicStore(&lists.live_count, 0u);
    }
}

// To be called for each word of the block.
fn add_word(row: u32, word: u32) {
    if (word != 0u) {
        atomicAdd(&row_survivors[row & 15u], countOneBits(word));
    }
}

// To be called by all threads when the row's words have been added.
fn close_row(chunk: Chunk, block: u32, row: u32, thread: u32) {
    let own = row & 15u;
    if (own < 15u && row + 1u < chunk.row_count) {
        return;
    }
    workgroupBarrier();
    if (thread <= own) {
        let survivors = atomicExchange(&row_survivors[thread], 0u);
        counts[chunk.first_count + (row - own + thread) * chunk.block_count + block] = survivors;
    }
    workgroupBarrier();
}
