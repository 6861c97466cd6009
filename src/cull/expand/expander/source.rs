//! The input of an expansion, checked.

use crate::cull::{
    CullError,
    expand::options::{ExpandInput, SourceCount},
    layout::expand::EXPAND_KNOWN,
};
use wgpu::Buffer;

/// An [`ExpandInput`] that was checked.
#[derive(Clone, PartialEq)]
pub(super) struct Source {
    pub(super) counts: Buffer,
    /// Holds the number of sources.
    pub(super) words: Buffer,
    /// The word of it, or [`EXPAND_KNOWN`].
    pub(super) word: u32,
    /// The most sources.
    pub(super) max: u32,
}

impl Source {
    /// Checks that the buffers hold what the kernels read: the kernels do not.
    ///
    /// `nothing` is bound in place of absent inputs.
    pub(super) fn check(
        input: &ExpandInput<'_>,
        has_counts: bool,
        nothing: &Buffer,
    ) -> Result<Self, CullError> {
        let (words, word, max) = match input.sources {
            SourceCount::Known(count) => (nothing, EXPAND_KNOWN, count),
            SourceCount::Buffer {
                buffer,
                offset,
                max,
            } => {
                let bytes = buffer.size();
                let ends = offset.checked_add(4).is_some_and(|end| end <= bytes);
                let word = u32::try_from(offset / 4).unwrap_or(EXPAND_KNOWN);
                if !ends || !offset.is_multiple_of(4) || word == EXPAND_KNOWN {
                    return Err(CullError::SourceCountOffset { offset, bytes });
                }
                (buffer, word, max)
            }
        };
        let counts = match input.counts {
            _ if !has_counts => nothing,
            None => return Err(CullError::NoCounts),
            // Nothing is read, and an empty buffer cannot be bound.
            Some(_) if max == 0 => nothing,
            Some(buffer) => {
                let counts = buffer.size() / 4;
                if counts < u64::from(max) {
                    let sources = max;
                    return Err(CullError::TooFewCounts { counts, sources });
                }
                buffer
            }
        };
        Ok(Self {
            counts: counts.clone(),
            words: words.clone(),
            word,
            max,
        })
    }
}
