// The ranks of a batch: `order` writes which unit has which rank, `scan` the places.

import package::shared::layout::{MOST_TILES, Rank};

struct Ranks {
    // Survivors of each tile of the scan.
    tiles: array<u32, MOST_TILES>,
    // One per unit, and a closing entry.
    entries: array<Rank>,
}

@group(0) @binding(9) var<storage, read_write> ranks: Ranks;
