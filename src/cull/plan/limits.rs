//! The limits of a plan.

use crate::cull::{
    layout::{BLOCK, MAX_TILES, SCAN_TILE},
    policy::{FEW_COUNTS, FINE_WORDS},
};

/// Limits that a plan respects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    /// Largest number of counts (blocks x rows) in a batch.
    pub counts: u32,
    /// Largest number of workgroups in one dimension of a dispatch.
    pub workgroups: u32,
    /// Largest number of counts of a batch that `compact` adds up itself; more are scanned by a
    /// separate pass.
    pub few_counts: u32,
    /// Largest number of visibility words of a near-first batch that is sorted by less than blocks.
    pub fine_words: u32,
}

impl PlanLimits {
    /// Limits that keep a batch small: one binding holds its words, and its ids even if every
    /// instance is visible, and ids can be counted in 32 bits.
    #[must_use]
    pub fn new(binding_bytes: u64, workgroups: u32) -> Self {
        let tiles = u64::from(MAX_TILES * SCAN_TILE - 1);
        let counts = (binding_bytes / (u64::from(BLOCK) * 4))
            .min(u64::from(u32::MAX / BLOCK - SCAN_TILE))
            .min(tiles);
        Self {
            counts: counts.max(1) as u32,
            workgroups,
            few_counts: FEW_COUNTS,
            fine_words: FINE_WORDS,
        }
    }
}
