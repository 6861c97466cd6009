//! The batch sets of a view, and what each item of its phases draws.

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
    /// Index of the multi-draw in its batch.
    pub(super) draw: usize,
}

/// The batch sets of a view.
#[derive(Default)]
pub(super) struct ViewBatchSets {
    /// By the index of the entity in [`SetDraws::drawn`](crate::render::set_draws::SetDraws): its
    /// batch set.
    pub of_drawn: Vec<Option<u32>>,
    pub sets: Vec<Vec<BatchSetDraw>>,
    /// The leader of each batch set in the frame: the first entity that the view sees, as an index
    /// in `drawn`. `None` if it sees none.
    leaders: Vec<Option<usize>>,
}

impl ViewBatchSets {
    /// Starts a frame, in which the view has seen nothing yet.
    pub fn start_frame(&mut self) {
        self.leaders.clear();
        self.leaders.resize(self.sets.len(), None);
    }

    /// Notes that the view sees an entity. Entities come in any order.
    pub fn see(&mut self, drawn: usize) {
        if let Some(Some(set)) = self.of_drawn.get(drawn)
            && let Some(leader) = self.leaders.get_mut(*set as usize)
        {
            *leader = Some(leader.map_or(drawn, |leader| leader.min(drawn)));
        }
    }

    /// What the item of an entity draws.
    pub fn role(&self, drawn: usize) -> Role {
        match self.of_drawn.get(drawn) {
            Some(Some(set)) => match self.leaders.get(*set as usize) {
                Some(Some(leader)) if *leader == drawn => Role::Leader(*set),
                _ => Role::Follower,
            },
            _ => Role::Alone,
        }
    }
}
