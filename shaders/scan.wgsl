// Stage 2. Turns the survivors of each (row, block), which lie row after row, into exclusive prefixes: the place of a block's first survivor in the arena. Two levels:
//     scan   a workgroup counts 256 blocks, scans them and keeps the tile's total
//     spine  one workgroup scans the totals
// so that the place of block c is counts[c] + partials[c / 256]. A closing entry holds the sum of all.
//
//     survivors of 5 blocks, tiles of 2    3 0 | 4 1 | 2
//     counts after scan                    0 3 | 0 4 | 0 2     (2 = closing entry)
//     partials after scan / after spine    3 5 2 / 0 3 8
//     place of block 3                     4 + 3 = 7

@group(0) @binding(0) var<uniform> batch: Batch;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<u32>;

struct Prefix {
    // Sum of the values of all threads before this one.
    exclusive: u32,
    // Sum of all values of the workgroup.
    total: u32,
}

fn store_tile(tile: u32, thread: u32, prefix: Prefix) {
    let count = tile * SCAN_TILE + thread;
    if (count <= batch.count_len) {
        counts[count] = prefix.exclusive;
    }
    if (thread == 0u) {
        partials[tile] = prefix.total;
    }
}

fn tile_count() -> u32 {
    return batch.count_len / SCAN_TILE + 1u;
}
