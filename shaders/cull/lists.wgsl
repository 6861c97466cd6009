// What passes of a batch leave for later passes.
//
// `lists`: one pass appends work in any order, and a later one strides over it with a fixed number
// of workgroups, so that no dispatch needs a count from the GPU. From `classify` through `vote`,
// the list holds the blocks that some view crosses. From `scan` on, it holds the occupied ranks,
// which have survivors, two words per rank.
//
// `ranks`: the order of the units. `order` writes which unit has which rank, `scan` the places.

import package::shared::layout::{BLOCK, MOST_TILES, Rank, SCAN_TILE};

struct Lists {
    // Number of crossed blocks. `classify` fills the list, `compact` empties it for the next frame.
    crossed_count: atomic<u32>,
    // Number of occupied ranks. The first pass of a frame empties the list, `scan` fills it.
    occupied_count: atomic<u32>,
    // Of a view's late lists: instances that the frustum keeps, and how many of them reach no
    // sample. `occlude_words` and `occlude` add them up, `compact` moves the sums to the totals.
    in_frustum: atomic<u32>,
    too_small: atomic<u32>,
    // Crossed blocks: x is the block, counted over the batch. Occupied ranks: see below.
    entries: array<vec2<u32>>,
}

@group(0) @binding(8) var<storage, read_write> lists: Lists;

// An occupied rank. The low bits of x: its survivors, up to BLOCK. The high bits of x: the rank.
// y: the survivors of its tile before it.
const OCCUPIED_SHIFT: u32 = 11u;
const OCCUPIED_SURVIVORS: u32 = (1u << OCCUPIED_SHIFT) - 1u;
const_assert BLOCK <= OCCUPIED_SURVIVORS;
const_assert MOST_TILES * SCAN_TILE <= 1u << (32u - OCCUPIED_SHIFT);

struct Ranks {
    // Survivors of each tile of the scan.
    tiles: array<u32, MOST_TILES>,
    // One per unit, and one that holds the end.
    entries: array<Rank>,
}

@group(0) @binding(9) var<storage, read_write> ranks: Ranks;
