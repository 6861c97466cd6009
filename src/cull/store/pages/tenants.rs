//! Which sets share a page.

use crate::cull::{
    layout::{BLOCK, GRANULE},
    store::region::{ChannelLayout, Channels},
};

/// The sets that may lie in a page.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Tenants {
    /// Small sets whose channels have this layout.
    Small(ChannelLayout),
    /// Large sets with these channels: no set pays for a channel that only its neighbor has.
    Large(Channels),
    /// The set that the page was made for.
    One,
}

impl Tenants {
    /// Number of instances in a granule of their pages, the unit in which these are allocated and
    /// have bounds. A small set would leave most of its last block empty. A region of some granules
    /// has no more blocks, so each block has its own bound.
    pub fn granule(self) -> u32 {
        match self {
            Self::Small(_) => GRANULE,
            Self::Large(_) | Self::One => BLOCK,
        }
    }
}
