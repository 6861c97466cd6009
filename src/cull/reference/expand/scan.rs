//! Twin of `shaders/expand/scan.wesl`, `spine.wesl`, `sources.wesl` and `fixed_max.wesl`.

use crate::cull::layout::expand::EXPAND_TILE;

/// Exclusive prefixes of the sources' weights within tiles of [`EXPAND_TILE`] sources, modulo 2^32,
/// and each tile's sum, limited to the greatest u32.
#[must_use]
pub fn expand_scan(counts: &[u32], weight_of: impl Fn(u32) -> u32) -> (Vec<u32>, Vec<u32>) {
    let (mut prefixes, mut partials) = (Vec::new(), Vec::new());
    for tile in counts.chunks(EXPAND_TILE as usize) {
        let mut sum = 0u32;
        let mut total = 0u32;
        for items in tile {
            prefixes.push(sum);
            sum = sum.wrapping_add(weight_of(*items));
            total = total.saturating_add(weight_of(*items));
        }
        partials.push(total);
    }
    (prefixes, partials)
}

/// Replaces the tiles' sums by their exclusive prefixes, modulo 2^32. Returns the sum of all,
/// limited to the greatest u32.
pub fn expand_spine(partials: &mut [u32]) -> u32 {
    let (mut sum, mut total) = (0u32, 0u32);
    for partial in partials {
        total = total.saturating_add(*partial);
        (*partial, sum) = (sum, sum.wrapping_add(*partial));
    }
    total
}

/// Index of the first entry of source `i`.
#[must_use]
pub fn expand_place_of(prefixes: &[u32], partials: &[u32], i: u32) -> u32 {
    prefixes[i as usize].wrapping_add(partials[(i / EXPAND_TILE) as usize])
}

/// The number of items, limited to the greatest u32.
#[must_use]
pub fn sum_items(counts: &[u32]) -> u32 {
    exact_items(counts).min(u64::from(u32::MAX)) as u32
}

/// The exact number of items.
#[must_use]
pub fn exact_items(counts: &[u32]) -> u64 {
    counts.iter().map(|items| u64::from(*items)).sum()
}

/// The greatest number of items of a source, and the number of all items, limited to the greatest
/// u32.
#[must_use]
pub fn measure(counts: &[u32]) -> (u32, u32) {
    (counts.iter().copied().max().unwrap_or(0), sum_items(counts))
}
