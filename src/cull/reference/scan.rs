//! Twin of `shaders/scan.wgsl`.

use crate::cull::layout::{BLOCK_WORDS, Batch, SCAN_TILE};

/// Survivors of each block and row, as exclusive prefixes within tiles of [`SCAN_TILE`]; each tile's total.
/// `counts` has a closing entry, so it is one longer than the batch's counts.
pub fn scan(batch: &Batch, words: &[u32], counts: &mut [u32], partials: &mut [u32]) {
    let mut sum = 0;
    for count in 0..=batch.count_len {
        if count % SCAN_TILE == 0 {
            sum = 0;
        }
        counts[count as usize] = sum;
        if count < batch.count_len {
            let first = (count * BLOCK_WORDS) as usize;
            sum += words[first..first + BLOCK_WORDS as usize]
                .iter()
                .map(|word| word.count_ones())
                .sum::<u32>();
        }
        partials[(count / SCAN_TILE) as usize] = sum;
    }
}

/// Exclusive prefixes of the tiles' totals.
pub fn spine(batch: &Batch, partials: &mut [u32]) {
    let mut sum = 0;
    for partial in &mut partials[..=(batch.count_len / SCAN_TILE) as usize] {
        (*partial, sum) = (sum, sum + *partial);
    }
}

/// Place in the arena of the first survivor of a block and row; of the closing entry: the sum of all.
#[must_use]
pub fn place_of(counts: &[u32], partials: &[u32], count: u32) -> u32 {
    counts[count as usize] + partials[(count / SCAN_TILE) as usize]
}
