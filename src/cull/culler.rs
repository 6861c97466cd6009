//! The engine as a whole: what it holds, and how it is made.

use crate::cull::{
    Compaction, CullError, CullingTier, FrameCounts, Tuning,
    auto::Auto,
    batch::GpuBatch,
    bounds::BoundsBuilder,
    compaction::Sources,
    frame::Refusals,
    guard::guarded,
    layout::BLOCK,
    pages::{Pages, SetId, binding_limit, page_limit},
    pipelines::{BuildOptions, Pipelines},
    plan::{Plan, PlanLimits},
    planner::PlanInputs,
    previous::Previous,
    readback::{BatchRows, Readback},
    residents::ResidentSets,
    shaders,
    written::WrittenRoom,
};
use core::ops::Range;
use hashbrown::HashMap;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, Device};
/// How a [`Culler`] is made.
#[derive(Clone, Debug)]
pub struct CullerOptions {
    /// The tier; `None` takes the best that the adapter supports.
    pub tier: Option<CullingTier>,
    /// Keeps the bounds checks of the kernels (for tests; off by default).
    pub shader_checks: bool,
    /// Survivor ids (4 bytes each) that a batch has room for from the start, if so many can survive at all. An
    /// arena that proves too small grows a few frames later. The default is 16,777,216.
    pub survivor_capacity: u32,
    /// How survivors become lists; the default is [`Compaction::Auto`].
    pub compaction: Compaction,
    /// What [`Compaction::Auto`] goes by; `None` is the rule for the tier.
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

/// Key of a batch from frame to frame: page, and ordinal among the page's batches.
pub(super) type BatchKey = (usize, usize);

/// The engine: instance pages, pipelines of one tier, and the batches of the current frame.
pub struct Culler {
    pub(super) tier: CullingTier,
    pub(super) options: CullerOptions,
    pub(super) page_limit: u32,
    pub(super) plan_limits: PlanLimits,
    pub(super) most_survivors: u64,
    /// Those of the compaction, or of each that `Auto` may take; none on the `Cpu` tier.
    pub(super) pipelines: Vec<Pipelines>,
    /// The ones of the current frame.
    pub(super) active: usize,
    pub(super) tuning: Tuning,
    /// What [`Compaction::Auto`] has seen.
    pub(super) auto: Auto,
    pub(super) pages: Pages,
    pub(super) sets: ResidentSets,
    /// Those of them that the GPU writes.
    pub(super) written: HashMap<SetId, WrittenRoom>,
    pub(super) previous: Previous,
    /// Bound where a page has no scales.
    pub(super) no_channel: Buffer,
    pub(super) plan: Plan,
    /// What it was made from; `None` before the first.
    pub(super) plan_inputs: Option<PlanInputs>,
    /// Keys of the plan's batches.
    pub(super) keys: Vec<BatchKey>,
    pub(super) rows: Vec<BatchRows>,
    pub(super) batches: HashMap<BatchKey, GpuBatch>,
    pub(super) readback: Readback,
    /// None on the `Cpu` tier.
    pub(super) bounds: Option<BoundsBuilder>,
    /// Instances whose blocks' bounds are out of date.
    pub(super) stale: Vec<(SetId, Range<usize>)>,
    /// Counters of the `Cpu` tier, known at once.
    pub(super) cpu_counts: Option<FrameCounts>,
    pub(super) frame: u64,
    /// The last frame with another plan or compaction than the one before.
    pub(super) changed_in: u64,
    /// By the newest counters, some arena may soon be too small.
    pub(super) may_overflow: bool,
    pub(super) uploaded: u64,
    /// Batches that the device has no room for, and the frame in which it said so.
    pub(super) refused: HashMap<BatchKey, u64>,
    pub(super) refusals: Refusals,
}

impl Culler {
    /// A culler on `device`. A tier whose pipelines do not build gives way to the next; the reason is the second value.
    ///
    /// # Errors
    /// [`CullError::TierUnsupported`] when `options.tier` asks for what the device lacks,
    /// [`CullError::CompactionUnsupported`] when `options.compaction` does,
    /// [`CullError::BindingTooSmall`] when it cannot bind a block of instances.
    pub fn new(
        device: &Device,
        options: CullerOptions,
    ) -> Result<(Self, Option<String>), CullError> {
        let (features, limits) = (device.features(), device.limits());
        let (mut tier, mut reason) = match options.tier {
            Some(tier) => {
                tier.check(features, &limits)?;
                (tier, None)
            }
            None => CullingTier::supported(features, &limits),
        };
        if tier == CullingTier::Subgroup
            && let Err(error) = tier.check_subgroup_size(device.adapter_info().subgroup_min_size)
        {
            if options.tier.is_some() {
                return Err(error);
            }
            (tier, reason) = (CullingTier::Workgroup, Some(error.to_string()));
        }
        let page_limit = page_limit(&limits)?;
        let (tier, kernels, failure) = best_tier(tier, |tier| {
            options.compaction.check(tier, features)?;
            Kernels::build(device, tier, &options)
        })?;
        reason = failure.or(reason);
        let Kernels {
            pipelines,
            bounds,
            tuning,
        } = kernels;
        let no_channel = guarded(device, "gpu_culling no channel", || {
            device.create_buffer(&BufferDescriptor {
                label: Some("gpu_culling no channel"),
                size: 256,
                usage: BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        })?;
        let culler = Self {
            tier,
            page_limit,
            plan_limits: PlanLimits::new(
                binding_limit(&limits),
                limits.max_compute_workgroups_per_dimension,
            ),
            most_survivors: binding_limit(&limits) / 4,
            pipelines,
            active: 0,
            tuning,
            auto: Auto::default(),
            pages: Pages::new(device, page_limit, tier == CullingTier::Cpu),
            sets: ResidentSets::default(),
            written: HashMap::new(),
            previous: Previous::default(),
            no_channel,
            plan: Plan::default(),
            plan_inputs: None,
            keys: Vec::new(),
            rows: Vec::new(),
            batches: HashMap::new(),
            readback: Readback::new(),
            bounds,
            stale: Vec::new(),
            cpu_counts: None,
            frame: 0,
            changed_in: 0,
            may_overflow: false,
            uploaded: 0,
            refused: HashMap::new(),
            refusals: Refusals::default(),
            options,
        };
        Ok((culler, reason))
    }

    /// A culler whose kernels `edit` changes, given a pass's name and WGSL: a test breaks them on purpose.
    ///
    /// # Errors
    /// As [`Self::new`], and [`CullError::Pipeline`] when a kernel does not build.
    #[doc(hidden)]
    pub fn with_sources(
        device: &Device,
        options: CullerOptions,
        edit: impl Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let (mut culler, _) = Self::new(device, options)?;
        let options = CullerOptions {
            shader_checks: true,
            ..culler.options.clone()
        };
        culler.pipelines = build(device, culler.tier, &options, &culler.tuning, &edit)?;
        Ok(culler)
    }

    /// Number of the frame that was prepared last; its [`FrameCounts`] have the same.
    #[must_use]
    pub fn frame(&self) -> u64 {
        self.frame
    }

    /// The tier in use.
    #[must_use]
    pub fn tier(&self) -> CullingTier {
        self.tier
    }

    /// The compaction in use: that of the options, or what [`Compaction::Auto`] took for the frame that was
    /// prepared last. On the `Cpu` tier the default, whose twins run there.
    #[must_use]
    pub fn compaction(&self) -> Compaction {
        self.pipelines
            .get(self.active)
            .map_or(Compaction::VoteScanCompact, |pipelines| {
                pipelines.compaction
            })
    }

    /// Instances that one page holds.
    #[must_use]
    pub fn page_limit(&self) -> u32 {
        self.page_limit
    }

    /// Pages of at most `instances` from now on, rounded up to a block (a test makes many small ones).
    #[doc(hidden)]
    pub fn limit_pages(&mut self, instances: u32, counts_per_batch: u32, few_counts: u32) {
        self.plan_limits.few_counts = few_counts;
        self.page_limit = instances.next_multiple_of(BLOCK).min(self.page_limit);
        self.plan_limits.counts = counts_per_batch.min(self.plan_limits.counts);
        self.pages.clear(self.page_limit);
        self.plan_inputs = None;
        (self.plan, self.keys, self.rows) = Default::default();
        self.sets = ResidentSets::default();
        self.written.clear();
    }
}

/// What a tier compiles: nothing on [`CullingTier::Cpu`].
struct Kernels {
    pipelines: Vec<Pipelines>,
    bounds: Option<BoundsBuilder>,
    tuning: Tuning,
}

impl Kernels {
    fn build(
        device: &Device,
        tier: CullingTier,
        options: &CullerOptions,
    ) -> Result<Self, CullError> {
        let tuning = options
            .tuning
            .clone()
            .unwrap_or_else(|| rule(device, tier))
            .supported(tier, device.features());
        if tier == CullingTier::Cpu {
            return Ok(Self {
                pipelines: Vec::new(),
                bounds: None,
                tuning,
            });
        }
        let (encoding, checks) = (shaders::INSTANCE_PACKED, options.shader_checks);
        Ok(Self {
            pipelines: build(device, tier, options, &tuning, &|_, source| source)?,
            bounds: Some(BoundsBuilder::new(device, encoding, checks)?),
            tuning,
        })
    }
}

/// What `build` makes of the first tier, from `first` downwards, that the device does not refuse. The last value says why it
/// is not `first`.
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

/// What `Auto` goes by without a measurement.
fn rule(device: &Device, tier: CullingTier) -> Tuning {
    // wgpu 29 translates atomic loads to plain ones for DX12 (wgpu issue 9242): strips would wait for what they cannot see,
    // and count it themselves. Right, but slow.
    match device.adapter_info().backend {
        wgpu::Backend::Dx12 => Tuning::rule(CullingTier::Workgroup),
        _ => Tuning::rule(tier),
    }
}

/// Pipelines of the compaction, or of each that `Auto` may take.
fn build(
    device: &Device,
    tier: CullingTier,
    options: &CullerOptions,
    tuning: &Tuning,
    edit: &dyn Fn(&str, String) -> String,
) -> Result<Vec<Pipelines>, CullError> {
    let fixed = [options.compaction];
    let compactions = if options.compaction == Compaction::Auto {
        tuning.compactions()
    } else {
        fixed.to_vec()
    };
    let build = |compaction| {
        let checks = options.shader_checks;
        Pipelines::build(
            device,
            &BuildOptions {
                sources: Sources::new(tier),
                compaction,
                checks,
                edit,
            },
        )
    };
    compactions.into_iter().map(build).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::guard::refused;

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
        // What no lower tier would mend is an error.
        let asked = best_tier(Subgroup, |_| -> Result<(), _> {
            Err(CullError::UnknownSet(1))
        });
        assert_eq!(asked, Err(CullError::UnknownSet(1)));
    }
}
