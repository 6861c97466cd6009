//! The engine: what it holds. [`make`] has how it is made, [`frame`] the frame.

mod draws;
mod frame;
mod inspect;
mod make;
mod memory;
mod results;
mod self_test;
mod work;

pub use draws::{DrawSource, IndirectDraws};
pub use frame::{Follower, Frame, PassRecorder, PlainPasses, RecordedPasses};
pub use work::CullerWork;

use crate::cull::{
    Compaction, CullingTier, Tuning,
    choose::Choice,
    far_first::FarFirst,
    gpu::{draw_counts::DrawCounts, on_demand::OnDemand},
    occlusion::occluder::Occluder,
    plan::planner::Planner,
    run::{Runner, frame_number::FrameNumber, rows::RowFiller, tables::FrameTables},
    store::InstanceStore,
};
use std::sync::Arc;
use wgpu::Device;

/// How a [`Culler`] is made.
#[derive(Clone, Debug)]
pub struct CullerOptions {
    /// The tier; `None` takes the best that the adapter supports.
    pub tier: Option<CullingTier>,
    /// Keeps the bounds checks of the kernels (for tests; off by default).
    pub shader_checks: bool,
    /// Number of survivor ids (4 bytes each) that the arena of a new batch holds, if as many can
    /// survive. An arena that is too small grows a few frames later. The default is 16,777,216.
    pub survivor_capacity: u32,
    /// How survivors become lists; the default is [`Compaction::Auto`].
    pub compaction: Compaction,
    /// What [`Compaction::Auto`] follows; `None` is the rule of the tier.
    pub tuning: Option<Tuning>,
}

impl Default for CullerOptions {
    fn default() -> Self {
        Self {
            tier: None,
            shader_checks: false,
            survivor_capacity: 1 << 24,
            compaction: Compaction::default(),
            tuning: None,
        }
    }
}

/// Culls sets of instances in views, on the GPU.
///
/// It has seven parts, each of which owns its fields: the *store* has the sets, the *planner* turns
/// a frame's requests into tables, the *choice* picks the compaction, the *runner* has the batches
/// and their passes, *tables* upload what changes from frame to frame, *far first* sorts what the
/// passes write, the *occluder* leaves out what is hidden. Only [`Culler`] sees all seven.
pub struct Culler {
    tier: CullingTier,
    /// [`Self::has_fallen_back`].
    has_fallen_back: bool,
    store: InstanceStore,
    planner: Planner,
    choice: Choice,
    runner: Runner,
    tables: FrameTables,
    far_first: FarFirst,
    occluder: Occluder,
    /// Fills the rows of large plans; empty before the first.
    filler: OnDemand<Arc<RowFiller>>,
    /// Whether kernels keep their bounds checks.
    checks: bool,
    draw_counts: DrawCounts,
    frame: FrameNumber,
    /// Number of rows of the frame, as far as they are in one region each.
    row_count: usize,
    /// A frame is prepared, and not recorded.
    is_prepared: bool,
}

impl Culler {
    /// Whether rows that share views can be filled.
    fn can_fill_rows(&mut self, device: &Device) -> bool {
        if self.runner.pipelines().is_none() {
            return false;
        }
        let build = || RowFiller::new(device, self.checks).map(Arc::new);
        self.filler.get_or_make(self.frame.now, build).is_ok()
    }

    /// Number of the frame that was prepared last; its [`FrameCounts`](crate::cull::FrameCounts)
    /// have the same.
    #[must_use]
    pub fn frame_number(&self) -> u64 {
        self.frame.now
    }

    /// The tier in use.
    #[must_use]
    pub fn tier(&self) -> CullingTier {
        self.tier
    }

    /// Whether a better tier was given up: a kernel of it could not be built, or culls wrongly.
    #[must_use]
    pub fn has_fallen_back(&self) -> bool {
        self.has_fallen_back
    }

    /// The compaction in use: the one in the options, or what [`Compaction::Auto`] took for the
    /// frame that was prepared last. On the `Cpu` tier always [`Compaction::VoteScanCompact`],
    /// whose twins run there.
    #[must_use]
    pub fn compaction(&self) -> Compaction {
        self.runner.compaction()
    }

    /// The sets on the GPU.
    #[must_use]
    pub fn store(&self) -> &InstanceStore {
        &self.store
    }

    /// The sets on the GPU, to upload, change and remove them. Changes between
    /// [`prepare`](Self::prepare) and the recording of a frame concern the next frame.
    #[must_use]
    pub fn store_mut(&mut self) -> &mut InstanceStore {
        &mut self.store
    }

    /// Drops every set and limits new pages to `instances`, rounded up to a block (a test makes
    /// many small ones).
    #[cfg(feature = "testing")]
    pub fn limit_pages(&mut self, instances: u32, counts_per_batch: u32, few_counts: u32) {
        let limit = instances.next_multiple_of(crate::cull::layout::BLOCK);
        self.store.clear(limit.min(self.store.page_limit()));
        self.planner.limit(counts_per_batch, few_counts);
    }

    /// Lets the rows of plans with more than this many rows share views. A test reaches both
    /// ways with few requests.
    #[cfg(feature = "testing")]
    pub fn limit_own_planes(&mut self, rows: usize) {
        self.planner.limit_own_planes(rows);
    }

    /// Sorts batches with more than this many visibility words by blocks. A test reaches both ways
    /// with few instances.
    #[cfg(feature = "testing")]
    pub fn limit_fine_words(&mut self, fine_words: u32) {
        self.planner.limit_fine_words(fine_words);
    }
}
