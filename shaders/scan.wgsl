// Stage 2, where there are many counts: survivors of each block and row to exclusive prefixes within tiles of
// SCAN_TILE, and the tiles' totals, in place. `compact` adds up the tiles before its own. A closing entry holds
// the sum of all. Few counts stay as they are: `compact` adds up all before its own.
//
//     survivors of 5 blocks, tiles of 2    3 0 | 4 1 | 2
//     counts after scan                    0 3 | 0 4 | 0 2     (2 = closing entry)
//     partials                             3     5     2
//     place of block 3                     3 + 4 = 7

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(6) var<storage, read_write> counts: array<u32>;
@group(0) @binding(8) var<storage, read_write> partials: array<u32>;

fn count_at(count: u32) -> u32 {
    var survivors = 0u;
    if (count < batch.count_len) {
        survivors = counts[count];
    }
    return survivors;
}

fn store_tile(tile: u32, thread: u32, exclusive: u32, total: u32) {
    let count = tile * SCAN_TILE + thread;
    if (count <= batch.count_len) {
        counts[count] = exclusive;
    }
    if (thread == 0u) {
        partials[tile] = total;
    }
}
