//! The engine: what it holds, and how it is made. [`frame`] has the frame.

mod draws;
mod frame;
#[cfg(feature = "testing")]
mod inspect;
mod memory;
mod work;

pub use draws::{DrawSource, IndirectDraws};
pub use frame::{Follower, Frame, PassRecorder, PlainPasses, Recorded};
pub use work::CullerWork;

use crate::cull::{
    Compaction, CullError, CullingTier, Tuning,
    choose::Choice,
    far_first::FarFirst,
    gpu::{draw_counts::DrawCounts, guard::guarded, limits::binding_limit},
    occlusion::occluder::{Occluder, OccluderOptions},
    pipelines::{BuildOptions, Pipelines},
    plan::{PlanLimits, planner::Planner},
    run::{FrameNumber, Runner, rows::RowFiller, tables::FrameTables},
    shaders::{self, Sources},
    store::{InstanceStore, StoreOptions, bounds::BoundsBuilder, page_limit},
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
    store: InstanceStore,
    planner: Planner,
    choice: Choice,
    runner: Runner,
    tables: FrameTables,
    far_first: FarFirst,
    occluder: Occluder,
    /// Fills the rows of large plans; `None` before the first.
    filler: Option<Result<Arc<RowFiller>, CullError>>,
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
    /// A culler on `device`. If the pipelines of a tier do not build, the next lower tier is taken;
    /// the second value then says why.
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`] if the device lacks what `options.tier` needs,
    /// [`CullError::CompactionUnsupported`] if it lacks what `options.compaction` needs,
    /// [`CullError::BindingTooSmall`] if it cannot bind a block of instances.
    pub fn new(
        device: &Device,
        options: CullerOptions,
    ) -> Result<(Self, Option<String>), CullError> {
        let (tier, reason) = first_tier(device, options.tier)?;
        let (tier, kernels, failure) = best_tier(tier, |tier| {
            Kernels::build(device, tier, &options, &|_, source| source)
        })?;
        let culler = Self::of(device, tier, options, kernels)?;
        Ok((culler, failure.or(reason)))
    }

    /// A culler whose kernels `edit` changes, given a pass's name and WGSL: a test breaks them.
    ///
    /// # Errors
    /// Same as [`Self::new`], and [`CullError::Pipeline`] if a kernel does not build.
    #[cfg(feature = "testing")]
    pub fn with_sources(
        device: &Device,
        options: CullerOptions,
        edit: impl Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let options = CullerOptions {
            shader_checks: true,
            ..options
        };
        let (tier, _) = first_tier(device, options.tier)?;
        let kernels = Kernels::build(device, tier, &options, &edit)?;
        let mut culler = Self::of(device, tier, options, kernels)?;
        if tier != CullingTier::Cpu {
            culler.far_first.edit_kernels(device, &edit)?;
            culler.occluder.edit_kernels(device, &edit)?;
        }
        Ok(culler)
    }

    fn of(
        device: &Device,
        tier: CullingTier,
        options: CullerOptions,
        kernels: Kernels,
    ) -> Result<Self, CullError> {
        let limits = device.limits();
        let store = StoreOptions {
            keeps_cpu_copy: tier == CullingTier::Cpu,
            page_limit: page_limit(&limits)?,
            bounds: kernels.bounds,
        };
        let plan_limits = PlanLimits::new(
            binding_limit(&limits),
            limits.max_compute_workgroups_per_dimension,
        );
        Ok(Self {
            tier,
            store: InstanceStore::new(device, store)?,
            planner: Planner::new(plan_limits),
            choice: kernels.choice,
            runner: Runner::new(device, kernels.pipelines, options.survivor_capacity),
            tables: guarded(device, "tables of the culling", || FrameTables::new(device))?,
            far_first: FarFirst::new(tier, options.shader_checks),
            occluder: Occluder::new(
                tier,
                OccluderOptions {
                    checks: options.shader_checks,
                    survivor_capacity: options.survivor_capacity,
                    compaction: options.compaction,
                },
            ),
            filler: None,
            checks: options.shader_checks,
            draw_counts: DrawCounts::new(device)?,
            frame: FrameNumber::default(),
            row_count: 0,
            is_prepared: false,
        })
    }

    /// Whether rows that share their planes can be filled.
    fn can_fill_rows(&mut self, device: &Device) -> bool {
        if self.runner.pipelines().is_none() {
            return false;
        }
        let build = || RowFiller::new(device, self.checks).map(Arc::new);
        self.filler.get_or_insert_with(build).is_ok()
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

    /// Lets the rows of plans with more than this many rows share their planes. A test reaches both
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

/// What a tier compiles: nothing on [`CullingTier::Cpu`].
struct Kernels {
    pipelines: Vec<Arc<Pipelines>>,
    bounds: Option<BoundsBuilder>,
    choice: Choice,
}

impl Kernels {
    /// The pipelines of every compaction that may run, and of the bounds. `edit` changes the WGSL
    /// of the former.
    fn build(
        device: &Device,
        tier: CullingTier,
        options: &CullerOptions,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        options.compaction.check(tier, device.features())?;
        let choice = Choice::new(device, tier, options.compaction, options.tuning.as_ref());
        if tier == CullingTier::Cpu {
            return Ok(Self {
                pipelines: Vec::new(),
                bounds: None,
                choice,
            });
        }
        let (encoding, checks) = (shaders::INSTANCE_PACKED, options.shader_checks);
        let pipelines = |compaction| {
            let options = BuildOptions {
                sources: Sources::new(tier),
                compaction,
                strategy: compaction.strategy(),
                checks,
                edit,
            };
            Pipelines::build(device, &options).map(Arc::new)
        };
        let compactions = choice.compactions().into_iter();
        Ok(Self {
            pipelines: compactions.map(pipelines).collect::<Result<_, _>>()?,
            bounds: Some(BoundsBuilder::new(device, encoding, checks)?),
            choice,
        })
    }
}

/// The tier to begin with, and why it is lower than the device's features suggest. `asked` is the
/// caller's choice.
fn first_tier(
    device: &Device,
    asked: Option<CullingTier>,
) -> Result<(CullingTier, Option<String>), CullError> {
    let (features, limits) = (device.features(), device.limits());
    let (tier, reason) = match asked {
        Some(tier) => {
            tier.check(features, &limits)?;
            (tier, None)
        }
        None => CullingTier::supported(features, &limits),
    };
    if tier != CullingTier::Subgroup {
        return Ok((tier, reason));
    }
    match tier.check_subgroup_size(device.adapter_info().subgroup_min_size) {
        Ok(()) => Ok((tier, reason)),
        Err(error) if asked.is_some() => Err(error),
        Err(error) => Ok((CullingTier::Workgroup, Some(error.to_string()))),
    }
}

/// What `build` makes of the best tier, from `first` down, that the device does not refuse. The
/// last value says why it is not `first`.
fn best_tier<T>(
    first: CullingTier,
    mut build: impl FnMut(CullingTier) -> Result<T, CullError>,
) -> Result<(CullingTier, T, Option<String>), CullError> {
    let (mut tier, mut reason) = (first, None);
    loop {
        let lower = match tier {
            CullingTier::Subgroup => Some(CullingTier::Workgroup),
            CullingTier::Workgroup => Some(CullingTier::Cpu),
            CullingTier::Cpu => None,
        };
        match (build(tier), lower) {
            (Ok(made), _) => return Ok((tier, made, reason)),
            (Err(error @ (CullError::Pipeline { .. } | CullError::Gpu { .. })), Some(lower)) => {
                reason = Some(error.to_string());
                tier = lower;
            }
            (Err(error), _) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::gpu::guard::refused;

    fn internal(tier: CullingTier) -> CullError {
        let error = wgpu::Error::Internal {
            source: "driver".into(),
            description: "driver".into(),
        };
        CullError::Pipeline {
            tier,
            label: "vote",
            message: refused("vote", &error).to_string(),
        }
    }

    #[test]
    fn a_refusal_of_any_kind_takes_the_tier_down() {
        use CullingTier::{Cpu, Subgroup, Workgroup};
        let supported = |best: CullingTier| {
            best_tier(Subgroup, |tier| {
                if tier > best {
                    Err(internal(tier))
                } else {
                    Ok(tier)
                }
            })
        };
        assert_eq!(supported(Subgroup), Ok((Subgroup, Subgroup, None)));
        for best in [Workgroup, Cpu] {
            let (tier, made, reason) = supported(best).unwrap_or((Subgroup, Subgroup, None));
            assert_eq!((tier, made), (best, best));
            assert!(reason.is_some_and(|reason| reason.contains("internal error")));
        }
        // An error that no lower tier would mend ends the search.
        let asked = best_tier(Subgroup, |_| -> Result<(), _> {
            Err(CullError::UnknownSet(1))
        });
        assert_eq!(asked, Err(CullError::UnknownSet(1)));
    }
}
