// The vote of a compaction that counts survivors later.

fn add_word(row: u32, word: u32) {}

fn close_row(chunk: Chunk, block: u32, row: u32, thread: u32) {}
