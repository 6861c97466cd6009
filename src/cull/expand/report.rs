//! What an expansion has found, read back.

use crate::cull::{
    CullError,
    layout::expand::{
        EXPAND_MAX_ITEMS, EXPAND_NO_ROOM, EXPAND_TOO_MANY_ITEMS, EXPAND_TOO_MANY_THREADS,
        ExpandState,
    },
};

/// Counts of one expansion. Get it from [`Expander::read`](super::Expander::read), which waits, or
/// from a copy of [`Expander::state`](super::Expander::state) some frames later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpandReport {
    /// Sources.
    pub sources: u32,
    /// Number of items of all sources, also of items that did not fit; [`u32::MAX`] stands for all
    /// larger numbers.
    pub items: u32,
    /// Entries that the arena must hold so that no item is lost.
    pub needed: u32,
    /// Entries that the arena holds.
    pub capacity: u32,
    /// Number of items of the largest source if the expansion measures it (`fixed-max`), else 0.
    pub max: u32,
    status: u32,
}

impl ExpandReport {
    /// From the state that pass 1 wrote for an arena of `capacity` entries.
    #[must_use]
    pub fn new(state: &ExpandState, capacity: u32) -> Self {
        let measured = state.status & EXPAND_TOO_MANY_THREADS != 0;
        Self {
            sources: state.sources,
            items: state.items,
            needed: state.needed,
            capacity,
            max: if measured { state.width } else { 0 },
            status: state.status,
        }
    }

    /// Whether every item was given to pass 2.
    ///
    /// # Errors
    /// [`CullError::TooManyItems`] and [`CullError::TooManyThreads`]: none was.
    /// [`CullError::ExpansionOverflow`]: the items of the last entries were not;
    /// [`Expander::grow`](super::Expander::grow) makes room.
    pub fn check(&self) -> Result<(), CullError> {
        let limit = EXPAND_MAX_ITEMS;
        let sources = self.sources;
        if self.status & EXPAND_TOO_MANY_ITEMS != 0 {
            let items = self.items;
            return Err(CullError::TooManyItems {
                sources,
                items,
                limit,
            });
        }
        if self.status & EXPAND_TOO_MANY_THREADS != 0 {
            let max = self.max;
            return Err(CullError::TooManyThreads {
                sources,
                max,
                limit,
            });
        }
        if self.status & EXPAND_NO_ROOM != 0 {
            return Err(CullError::ExpansionOverflow {
                needed: self.needed,
                capacity: self.capacity,
            });
        }
        Ok(())
    }
}
