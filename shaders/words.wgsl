// Visibility words, as votes write them.

@group(0) @binding(5) var<storage, read_write> words: array<u32>;
