//! Twin of what `shaders/cull/vote.wgsl` counts and `shaders/cull/compact.wgsl` adds up.

use crate::cull::layout::{BLOCK_WORDS, Batch};

/// Number of survivors per block and row.
pub fn count(batch: &Batch, words: &[u32], counts: &mut [u32]) {
    let words = words.chunks_exact(BLOCK_WORDS as usize);
    for (count, words) in counts[..batch.count_len as usize].iter_mut().zip(words) {
        *count = words.iter().map(|word| word.count_ones()).sum();
    }
}

/// Index in the arena of the first survivor of each block and row: exclusive prefixes, and the sum
/// of all.
#[must_use]
pub fn scan(batch: &Batch, counts: &[u32]) -> Vec<u32> {
    let mut places = vec![0];
    let mut sum = 0;
    for count in &counts[..batch.count_len as usize] {
        sum += count;
        places.push(sum);
    }
    places
}
