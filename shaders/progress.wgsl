// Survivors of each block and row, and what the passes of a frame add up on the way. All of `progress` is zero
// between frames: the last workgroup of `compact` clears it.

struct Progress {
    // Workgroups of `compact` that are done.
    finished: atomic<u32>,
    // Length of the list of crossed blocks, which lies in `counts` behind the counts.
    crossed: atomic<u32>,
    // Survivors of each tile of SCAN_TILE counts: their sum is the place of the tile behind them.
    tiles: array<atomic<u32>>,
}

@group(0) @binding(6) var<storage, read_write> counts: array<u32>;
@group(0) @binding(7) var<storage, read_write> progress: Progress;

fn set_count(count: u32, survivors: u32) {
    counts[count] = survivors;
    if (survivors > 0u) {
        atomicAdd(&progress.tiles[count / SCAN_TILE], survivors);
    }
}
