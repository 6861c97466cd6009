//! The batch sets of a view.

use crate::cull::DrawList;
use bevy::platform::collections::HashMap;

/// A part of a batch set in one batch of the culling: one multi-draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::render) struct BatchSetDraw {
    pub batch: usize,
    /// Index of the table that finds the draw slots.
    pub table: u32,
    /// Index of the multi-draw in its batch.
    pub(super) draw: usize,
}

/// The draws of a batch set in a view, by the list that they take.
#[derive(Default)]
pub(super) struct ListDraws([Vec<BatchSetDraw>; LISTS]);

/// Number of lists of a view that hides.
const LISTS: usize = 3;

impl ListDraws {
    /// The lists of a view, each once.
    pub fn lists(hides: bool) -> &'static [DrawList] {
        match hides {
            true => &[DrawList::Early, DrawList::Late, DrawList::Visible],
            false => &[DrawList::Kept],
        }
    }

    /// Adds a draw to a list.
    pub fn add(&mut self, list: DrawList, draw: BatchSetDraw) {
        self.0[place(list)].push(draw);
    }

    /// The draws of a list.
    pub fn of(&self, list: DrawList) -> &[BatchSetDraw] {
        &self.0[place(list)]
    }
}

/// A view has early lists or lists of what it keeps.
fn place(list: DrawList) -> usize {
    match list {
        DrawList::Kept | DrawList::Early => 0,
        DrawList::Late => 1,
        DrawList::Visible => 2,
    }
}

/// The batch sets of a view. Entities are indices in
/// [`SetDraws::drawn`](crate::render::set_draws::SetDraws).
#[derive(Default)]
pub(super) struct ViewBatchSets {
    /// The batch set of each entity.
    of_drawn: Vec<Option<u32>>,
    /// The batch sets by their [numbers](super::member::BatchSetNumbers).
    pub of_numbers: HashMap<u32, u32>,
    pub sets: Vec<ListDraws>,
    /// The members of each batch set.
    pub members: Vec<Vec<usize>>,
}

impl ViewBatchSets {
    /// Adds an entity to a batch set.
    pub fn add_member(&mut self, drawn: usize, set: u32) {
        if self.of_drawn.len() <= drawn {
            self.of_drawn.resize(drawn + 1, None);
        }
        self.of_drawn[drawn] = Some(set);
        self.members[set as usize].push(drawn);
    }

    /// The batch set of an entity.
    pub fn of(&self, drawn: usize) -> Option<u32> {
        self.of_drawn.get(drawn).copied().flatten()
    }
}
