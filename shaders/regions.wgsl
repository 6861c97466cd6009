// The arena of the strategies that learn a row's place only while they write: each row has a region with room
// for all its instances, in whole blocks, and a counter of those that have survived.

@group(0) @binding(6) var<storage, read_write> row_counts: array<atomic<u32>>;

// First place of the region of row `row` of the chunk.
fn region_of(chunk: Chunk, row: u32) -> u32 {
    return (chunk.first_count + row * chunk.block_count) * BLOCK;
}

// Room for `count` survivors of row `row` of the chunk: the place of the first of them.
fn reserve(chunk: Chunk, row: u32, count: u32) -> u32 {
    return region_of(chunk, row) + atomicAdd(&row_counts[chunk.first_row + row], count);
}
