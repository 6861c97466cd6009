//! The choice of the compaction for each frame.

pub(super) mod auto;
pub(super) mod tuning;

use crate::cull::{Compaction, CullingTier, FrameCounts, plan::Plan};
use auto::{Auto, FrameSize};
use tuning::Tuning;
use wgpu::Device;

/// The compaction that runs: a fixed one, or the one that [`Compaction::Auto`] takes.
pub(super) struct Choice {
    asked: Compaction,
    tuning: Tuning,
    auto: Auto,
}

impl Choice {
    /// The choice on a tier of a device. Without `tuning`, `Auto` follows the tier's rule.
    pub fn new(
        device: &Device,
        tier: CullingTier,
        asked: Compaction,
        tuning: Option<&Tuning>,
    ) -> Self {
        let tuning = tuning.cloned().unwrap_or_else(|| Tuning::rule(tier));
        Self {
            asked,
            tuning: tuning.supported(tier, device.features()),
            auto: Auto::default(),
        }
    }

    /// Every compaction that may run.
    pub fn compactions(&self) -> Vec<Compaction> {
        match self.asked {
            Compaction::Auto => {
                let mut all = self.tuning.compactions();
                if !all.contains(&Compaction::VoteScanCompact) {
                    all.push(Compaction::VoteScanCompact);
                }
                all
            }
            asked => vec![asked],
        }
    }

    /// The compaction for frame `frame` with this plan.
    /// `hides` if instances may be hidden in some view.
    pub fn pick(&mut self, plan: &Plan, hides: bool, frame: u64) -> Compaction {
        if self.asked != Compaction::Auto {
            return self.asked;
        }
        let tests = plan.batches.iter().map(|batch| batch.max_survivors).sum();
        let strips = plan.batches.iter().map(|batch| batch.batch.strip_count);
        let strips = strips.map(u64::from).sum();
        let has_levels = plan.batches.iter().any(|batch| batch.has_levels);
        let size = FrameSize {
            tests,
            strips,
            has_levels,
        };
        match self.auto.pick(&self.tuning, size, frame) {
            picked @ (Compaction::Classify | Compaction::VoteScanCompact) => picked,
            // The others have no `recall`.
            _ if hides => Compaction::VoteScanCompact,
            picked => picked,
        }
    }

    /// Reads the counters of an earlier frame.
    pub fn learn(&mut self, counts: &FrameCounts) {
        self.auto.learn(counts);
    }
}
