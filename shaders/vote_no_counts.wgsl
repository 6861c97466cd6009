// The vote of a compaction that counts survivors later.

fn begin_vote(block_in_batch: u32, thread: u32) {}

fn add_word(row: u32, word: u32) {}

fn close_row(chunk: Chunk, block: u32, row: u32, thread: u32) {}
