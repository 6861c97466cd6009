// Lists of work that one pass makes and another strides over, in any order, so that no dispatch needs a count from
// the GPU.
//
// Until `vote`: the blocks that some view crosses. From `scan` on: the live counts, which have survivors, two words each.

struct Lists {
    // Crossed blocks: filled by `classify`, emptied by `compact` for the next frame.
    crossed_count: atomic<u32>,
    // Live counts: emptied by the first pass of a frame, filled by `scan`.
    live_count: atomic<u32>,
    // In x: blocks, counted over the batch. Or live counts (`live_at`, compact.wgsl).
    entries: array<vec2<u32>>,
}

@group(0) @binding(7) var<storage, read_write> lists: Lists;

// A live count in x: its survivors, up to BLOCK, and above these bits which count it is. In y: the survivors of its
// tile before it.
const LIVE_SHIFT: u32 = 11u;
const LIVE_SURVIVORS: u32 = (1u << LIVE_SHIFT) - 1u;
const_assert BLOCK <= LIVE_SURVIVORS;
const_assert MOST_TILES * SCAN_TILE <= 1u << (32u - LIVE_SHIFT);
