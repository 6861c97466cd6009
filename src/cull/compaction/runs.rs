//! The passes of a compaction without a device, for tests that run kernels themselves.

use super::{Compaction, DispatchLimits, Resource};
use crate::cull::{CullingTier, plan::BatchPlan, shaders::Sources};

/// A pass over one batch, as a device runs it.
#[derive(Clone, Debug)]
pub struct PassRun {
    /// Label, and name in errors.
    pub name: &'static str,
    /// The whole WGSL.
    pub source: String,
    /// Entry point.
    pub entry: &'static str,
    /// Workgroups in x and y.
    pub workgroups: (u32, u32),
}

impl Compaction {
    /// The passes over a batch, in order. `subgroups_of_32` if every subgroup of the device has 32
    /// lanes: some kernels run only there.
    #[must_use]
    pub fn runs(self, tier: CullingTier, subgroups_of_32: bool, plan: &BatchPlan) -> Vec<PassRun> {
        let limits = DispatchLimits {
            workgroups: 65_535,
            subgroups_of_32: subgroups_of_32 && tier == CullingTier::Subgroup,
            batches: 1,
        };
        let passes = self.strategy().passes.iter();
        let passes = passes.filter(|pass| pass.runs_with(limits.subgroups_of_32));
        let runs = passes.map(|pass| PassRun {
            name: pass.name,
            source: (pass.source)(&Sources::new(tier)),
            entry: pass.entry,
            workgroups: pass.dispatch.workgroups(plan, limits),
        });
        runs.filter(|run| run.workgroups.0 * run.workgroups.1 > 0)
            .collect()
    }

    /// Binding and bytes of each buffer that passes leave for later passes.
    pub fn scratch(plan: &BatchPlan) -> impl Iterator<Item = (u32, u64)> {
        let slots = Resource::SCRATCH.into_iter();
        slots.map(|slot| (slot as u32, slot.scratch_bytes(plan)))
    }
}
