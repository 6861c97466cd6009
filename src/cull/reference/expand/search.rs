//! Twin of `shaders/study/prefix_search.wesl`, `workgroup_search.wesl`, `packed_atomic.wesl` and
//! `fixed_max.wesl`.

use crate::cull::layout::expand::{EXPAND_SPAN, EXPAND_TILE};

/// The source and the item of thread `i`, which must be below the number of all items.
#[must_use]
pub fn search(prefixes: &[u32], partials: &[u32], i: u32) -> (u32, u32) {
    // The last tile whose prefix is at most `i`.
    let tile = partials.partition_point(|partial| *partial <= i) - 1;
    let in_tile = i - partials[tile];
    let first = tile * EXPAND_TILE as usize;
    let end = prefixes.len().min(first + EXPAND_TILE as usize);
    let source = first + prefixes[first..end].partition_point(|prefix| *prefix <= in_tile) - 1;
    (source as u32, in_tile - prefixes[source])
}

/// Items in the order of the threads.
pub fn search_items(
    prefixes: &[u32],
    partials: &[u32],
    total: u32,
    mut expand: impl FnMut(u32, u32),
) {
    for i in 0..total {
        let (source, item) = search(prefixes, partials, i);
        expand(source, item);
    }
}

/// The items of `workgroup-search`, span after span. Each span first finds the sources at its ends.
pub fn span_items(
    prefixes: &[u32],
    partials: &[u32],
    total: u32,
    mut expand: impl FnMut(u32, u32),
) {
    let first_item_of =
        |source: u32| prefixes[source as usize] + partials[(source / EXPAND_TILE) as usize];
    for begin in (0..total).step_by(EXPAND_SPAN as usize) {
        let end = total.min(begin.saturating_add(EXPAND_SPAN));
        let first = search(prefixes, partials, begin).0;
        let last = search(prefixes, partials, end - 1).0;
        let firsts: Vec<_> = (first..=last).map(first_item_of).collect();
        for i in begin..end {
            let k = firsts.partition_point(|before| *before <= i) - 1;
            expand(first + k as u32, i - firsts[k]);
        }
    }
}

/// What `packed-atomic` writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Number of items before each record.
    pub prefixes: Vec<u32>,
    /// The source of each record.
    pub sources: Vec<u32>,
}

/// The records of tiles that run in the order of `tiles`. Together they must have less than 2^32
/// items.
#[must_use]
pub fn pack(counts: &[u32], tiles: &[u32]) -> Packed {
    let mut packed = Packed::default();
    // Upper half: number of sources; lower half: number of items.
    let mut count_sum = 0u64;
    for tile in tiles {
        let first = (tile * EXPAND_TILE) as usize;
        let end = counts.len().min(first + EXPAND_TILE as usize);
        let mut prefix = count_sum as u32;
        for (items, source) in counts[first..end].iter().zip(first as u32..) {
            packed.prefixes.push(prefix);
            packed.sources.push(source);
            prefix += items;
        }
        count_sum = ((packed.sources.len() as u64) << 32) + u64::from(prefix);
    }
    packed
}

/// Items in the order of the threads.
pub fn packed_items(packed: &Packed, total: u32, mut expand: impl FnMut(u32, u32)) {
    for i in 0..total {
        let record = packed.prefixes.partition_point(|prefix| *prefix <= i) - 1;
        expand(packed.sources[record], i - packed.prefixes[record]);
    }
}

/// Items in the order of the threads: `width` threads per source.
pub fn fixed_items(counts: &[u32], width: u32, mut expand: impl FnMut(u32, u32)) {
    for i in 0..counts.len() as u32 * width {
        let (source, item) = (i / width, i % width);
        if item < counts[source as usize] {
            expand(source, item);
        }
    }
}
