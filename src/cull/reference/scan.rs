//! Twin of what `shaders/cull/vote.wesl` counts, and of `shaders/cull/scan.wesl`.

use super::first_word_at;
use crate::cull::layout::Batch;

/// Number of survivors per block and row.
#[cfg(feature = "testing")]
pub fn count(batch: &Batch, words: &[u32], counts: &mut [u32]) {
    let words = words.chunks_exact(crate::cull::layout::BLOCK_WORDS as usize);
    for (count, words) in counts[..batch.count_len as usize].iter_mut().zip(words) {
        *count = words.iter().map(|word| word.count_ones()).sum();
    }
}

/// Index in the arena of the first survivor at each rank: exclusive prefixes, and the sum of all.
/// `first_words` has what [`order`](super::order()) returns; it is empty in set order.
#[must_use]
pub fn scan(batch: &Batch, words: &[u32], first_words: &[u32]) -> Vec<u32> {
    let mut places = vec![0];
    let mut sum = 0;
    for rank in 0..batch.rank_count() {
        let first_word = first_word_at(batch, first_words, rank);
        for k in 0..batch.unit_words {
            sum += words[(first_word ^ k) as usize].count_ones();
        }
        places.push(sum);
    }
    places
}
