//! How a culler is made: the tier, and what it compiles.

use super::{Culler, CullerOptions};
#[cfg(feature = "testing")]
use crate::cull::gpu::faults::{Fault, has};
use crate::cull::{
    CullError, CullingTier, Gpu,
    choose::Choice,
    far_first::FarFirst,
    gpu::{draw_counts::DrawCounts, guard::guarded, limits::binding_limit, on_demand::OnDemand},
    occlusion::occluder::{Occluder, OccluderOptions},
    pipelines::{BuildOptions, Pipelines},
    plan::{PlanLimits, planner::Planner},
    run::{Runner, frame_number::FrameNumber, tables::FrameTables},
    shaders::{self, Sources},
    store::{InstanceStore, StoreOptions, bounds::BoundsBuilder, page_limit},
};
use std::sync::Arc;
use wgpu::{Device, Queue};

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
        Self::best(device, None, options, &|_, source| source)
    }

    /// Same as [`Self::new`], but a tier whose kernels cull a small scene wrongly is not taken. It
    /// waits for the GPU, and is for a start: not in a browser, which cannot wait.
    ///
    /// The test covers each compaction that frames may take, with and without scales and levels of
    /// detail, and the bounds of blocks; not what is compiled later: occlusion, meshlets, the
    /// far-first sort, scatters, rows that share views, and the joining of commands.
    ///
    /// # Errors
    /// Same as [`Self::new`], and [`CullError::Readback`].
    pub fn new_tested(
        gpu: Gpu<'_>,
        options: CullerOptions,
    ) -> Result<(Self, Option<String>), CullError> {
        Self::best(gpu.device, Some(gpu.queue), options, &|_, source| source)
    }

    /// Same as [`Self::new_tested`] with kernels that `edit` changes: a test breaks them.
    ///
    /// # Errors
    /// Same as [`Self::new_tested`].
    #[cfg(feature = "testing")]
    pub fn new_tested_with(
        gpu: Gpu<'_>,
        options: CullerOptions,
        edit: impl Fn(&str, String) -> String,
    ) -> Result<(Self, Option<String>), CullError> {
        Self::best(gpu.device, Some(gpu.queue), options, &edit)
    }

    /// A culler of the best tier that works. With a queue, its kernels are tested.
    fn best(
        device: &Device,
        queue: Option<&Queue>,
        options: CullerOptions,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<(Self, Option<String>), CullError> {
        let (tier, reason) = first_tier(device, options.tier)?;
        let (tier, kernels, failure) = best_tier(tier, |tier| {
            #[cfg(feature = "testing")]
            let edit = match queue.is_some() && has(Fault::CullsWrongly, "kernels of a tier") {
                true => &without_near as &dyn Fn(&str, String) -> String,
                false => edit,
            };
            let kernels = Kernels::build(device, tier, &options, edit)?;
            if let Some(queue) = queue {
                Self::test(Gpu::new(device, queue), tier, &kernels, &options)?;
            }
            Ok(kernels)
        })?;
        let mut culler = Self::of(device, tier, options, kernels)?;
        culler.has_fallen_back = failure.is_some();
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

    pub(super) fn of(
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
            has_fallen_back: false,
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
            filler: OnDemand::default(),
            checks: options.shader_checks,
            draw_counts: DrawCounts::new(device)?,
            frame: FrameNumber::default(),
            row_count: 0,
            is_prepared: false,
        })
    }
}

/// The text of a kernel without the test of the near plane.
#[cfg(feature = "testing")]
fn without_near(_: &str, source: String) -> String {
    source.replace("plane_keeps(planes.near, sphere)", "true")
}

/// What a tier compiles: nothing on [`CullingTier::Cpu`].
pub(super) struct Kernels {
    pub pipelines: Vec<Arc<Pipelines>>,
    pub bounds: Option<Arc<BoundsBuilder>>,
    pub choice: Choice,
}

impl Kernels {
    /// The pipelines of every compaction that may run, and of the bounds. `edit` changes the WGSL
    /// of the former.
    pub fn build(
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
            bounds: Some(Arc::new(BoundsBuilder::new(device, encoding, checks)?)),
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
            (
                Err(
                    error @ (CullError::Pipeline { .. }
                    | CullError::Gpu { .. }
                    | CullError::WrongResult { .. }),
                ),
                Some(lower),
            ) => {
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
