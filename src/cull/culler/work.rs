//! What frames had to make again, in numbers.

use super::Culler;

/// What a [`Culler`] made again, because something changed. A frame like the one before it makes
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CullerWork {
    /// Number of plans built, because a request or a set came or went, or views see other sets, or
    /// a set has more or fewer blocks. The plans of late lists are built in the same frames.
    /// Requests that come behind the others are added to the plan, unless a view hides instances or
    /// one has further shapes.
    pub plans: u64,
    /// Number of requests that moved, or whose set got or lost a few instances, or that were added.
    /// The rest of the plan stays.
    pub mended: u64,
    /// Number of writes of instances, scales and data that the queue got.
    pub writes: u64,
    /// Number of dispatches that computed the bounds of blocks.
    pub bound_jobs: u64,
}

impl Culler {
    /// What was made again since the last call.
    pub fn take_work(&mut self) -> CullerWork {
        let (planned, stored) = (self.planner.take_work(), self.store.take_work());
        CullerWork {
            plans: planned.built,
            mended: planned.mended,
            writes: stored.writes,
            bound_jobs: stored.bound_jobs,
        }
    }
}
