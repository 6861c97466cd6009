//! Twin of `shaders/cull/compact.wgsl`.

use crate::cull::layout::{BLOCK, BLOCK_WORDS, Batch, Chunk};

/// Writes the ids of the survivors, counted from the start of the page, in instance order. Ids
/// beyond the arena are lost.
pub fn compact(
    batch: &Batch,
    chunks: &[Chunk],
    words: &[u32],
    places: &[u32],
    survivors: &mut [u32],
) {
    for chunk in &chunks[..batch.chunk_count as usize] {
        for r in 0..chunk.row_count {
            for block in 0..chunk.block_count {
                let count = chunk.first_count + r * chunk.block_count + block;
                let mut place = places[count as usize];
                for w in 0..BLOCK_WORDS {
                    let mut word = words[(count * BLOCK_WORDS + w) as usize];
                    while word != 0 && place < batch.survivor_capacity {
                        let i = w * 32 + word.trailing_zeros();
                        survivors[place as usize] = chunk.first_instance + block * BLOCK + i;
                        place += 1;
                        word &= word - 1;
                    }
                }
            }
        }
    }
}
