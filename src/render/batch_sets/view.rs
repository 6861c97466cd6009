//! The batch sets of a view, and what each item of its phases draws.

use core::ops::Range;

/// What the item of an entity draws in a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::render) enum Role {
    /// Its own draws.
    #[default]
    Alone,
    /// Nothing: its leader draws it.
    Follower,
    /// The draws of the batch set with this index in the view.
    Leader(u32),
}

/// A part of a batch set in one batch of the culling: one multi-draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::render) struct BatchSetDraw {
    pub batch: usize,
    /// Index of the table that finds the draw slots.
    pub table: u32,
    pub(super) commands: Range<u32>,
}

/// The batch sets of a view.
#[derive(Default)]
pub(super) struct ViewBatchSets {
    /// By the index of the entity in [`SetDraws::drawn`].
    pub roles: Vec<Role>,
    pub sets: Vec<Vec<BatchSetDraw>>,
}
