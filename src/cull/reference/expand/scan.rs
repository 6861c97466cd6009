//! Twin of `shaders/expand/scan.wgsl`, `spine.wgsl`, `sources.wgsl` and `fixed_max.wgsl`.

use crate::cull::layout::expand::EXPAND_TILE;

/// Exclusive prefixes of the sources' weights within tiles of [`EXPAND_TILE`], modulo 2^32, and each tile's sum, at
/// most the greatest u32.
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

/// Exclusive prefixes of the tiles' sums, modulo 2^32 where they are beyond; the sum of all, at most the greatest
/// u32.
pub fn expand_spine(partials: &mut [u32]) -> u32 {
    let (mut sum, mut total) = (0u32, 0u32);
    for partial in partials {
        total = total.saturating_add(*partial);
        (*partial, sum) = (sum, sum.wrapping_add(*partial));
    }
    total
}

/// Place of source `i` among the entries.
#[must_use]
pub fn expand_place_of(prefixes: &[u32], partials: &[u32], i: u32) -> u32 {
    prefixes[i as usize].wrapping_add(partials[(i / EXPAND_TILE) as usize])
}

/// The sum, at most the greatest u32.
#[must_use]
pub fn sum_items(counts: &[u32]) -> u32 {
    exact_items(counts).min(u64::from(u32::MAX)) as u32
}

/// The sum.
#[must_use]
pub fn exact_items(counts: &[u32]) -> u64 {
    counts.iter().map(|items| u64::from(*items)).sum()
}

/// The greatest number of items of a source, and the sum of all, at most the greatest u32.
#[must_use]
pub fn measure(counts: &[u32]) -> (u32, u32) {
    (counts.iter().copied().max().unwrap_or(0), sum_items(counts))
}
