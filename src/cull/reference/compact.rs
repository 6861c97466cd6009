//! Twin of `shaders/cull/compact.wesl`.

use super::first_word_at;
use crate::cull::layout::{BLOCK, BLOCK_WORDS, Batch, Chunk};

/// Writes the ids of the survivors, counted from the start of the page, in the order of the ranks.
/// Ids beyond the arena are lost. The second table has what [`order`](super::order()) returns; it
/// is empty in set order.
pub fn compact(
    batch: &Batch,
    (chunks, first_words): (&[Chunk], &[u32]),
    words: &[u32],
    places: &[u32],
    survivors: &mut [u32],
) {
    for chunk in &chunks[..batch.chunk_count as usize] {
        let first = chunk.first_count * batch.block_units();
        let ranks = chunk.row_count * chunk.block_count * batch.block_units();
        for rank in first..first + ranks {
            let first_word = first_word_at(batch, first_words, rank);
            let mut place = places[rank as usize];
            for k in 0..batch.unit_words {
                let at = first_word ^ k;
                let block = (at / BLOCK_WORDS - chunk.first_count) % chunk.block_count;
                let mut word = words[at as usize];
                while word != 0 && place < batch.survivor_capacity {
                    let i = at % BLOCK_WORDS * 32 + word.trailing_zeros();
                    survivors[place as usize] = chunk.first_instance + block * BLOCK + i;
                    place += 1;
                    word &= word - 1;
                }
            }
        }
    }
}
