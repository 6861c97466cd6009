//! The batch sets of a view.

/// A part of a batch set in one batch of the culling: one multi-draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::render) struct BatchSetDraw {
    pub batch: usize,
    /// Index of the table that finds the draw slots.
    pub table: u32,
    /// Index of the multi-draw in its batch.
    pub(super) draw: usize,
}

/// The batch sets of a view. Entities are indices in
/// [`SetDraws::drawn`](crate::render::set_draws::SetDraws).
#[derive(Default)]
pub(super) struct ViewBatchSets {
    /// The batch set of each entity.
    pub of_drawn: Vec<Option<u32>>,
    pub sets: Vec<Vec<BatchSetDraw>>,
    /// The members of each batch set.
    pub members: Vec<Vec<usize>>,
}

impl ViewBatchSets {
    /// The batch set of an entity.
    pub fn of(&self, drawn: usize) -> Option<u32> {
        self.of_drawn.get(drawn).copied().flatten()
    }
}
