//! What expanders of one kind share: the compiled passes, and the slices of pass 2.

use crate::cull::{
    CullError, CullingTier,
    expand::{
        ExpandDispatch, ExpanderOptions, Expansion,
        passes::{ExpandPass, Groups, WgslSources},
    },
    gpu::{
        binding::{Access, layout_entry, strided},
        buffer::filled,
        guard::guarded,
        kernel::{KernelJob, compile_kernel},
    },
    layout::expand::{EXPAND_BUCKETS, ExpandSlice},
    shaders,
};
use wgpu::{BindGroupLayout, Buffer, BufferUsages, ComputePipeline, Device};

/// A compiled pass.
pub(super) struct Kernel {
    pub pass: &'static ExpandPass,
    pub pipeline: ComputePipeline,
    pub layout: BindGroupLayout,
}

/// The compiled passes of an expansion.
pub(super) struct Kernels {
    pub expansion: Expansion,
    /// Why it is not the one that was asked for.
    pub fallback: Option<String>,
    pub dispatch: ExpandDispatch,
    pub is_merged: bool,
    pub has_counts: bool,
    pub passes: Vec<Kernel>,
    /// Pass 1 for few sources; may be empty.
    pub few: Vec<Kernel>,
    pub items: Kernel,
    /// An [`ExpandSlice`] for all buckets, then one for each, [`strided`].
    pub slices: Buffer,
}

impl Kernels {
    /// Compiles the passes; `edit` may change the WGSL of a pass.
    pub fn build(
        device: &Device,
        options: &ExpanderOptions<'_>,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let (tier, features) = (options.tier, device.features());
        tier.check(features, &device.limits())?;
        tier.check_subgroup_size(device.adapter_info().subgroup_min_size)?;
        if tier == CullingTier::Cpu {
            let missing = "compute: an expander has no CPU form".into();
            return Err(CullError::TierUnsupported { tier, missing });
        }
        let (expansion, fallback) = options.expansion.supported(features);
        let strategy = expansion.strategy();
        let sources = WgslSources {
            tier,
            counting: options
                .counting
                .map_or(shaders::EXPAND_COUNTS, |code| code.wgsl),
            body: options.body.wgsl,
        };
        let build = |pass: &'static ExpandPass| {
            let job = KernelJob {
                tier,
                label: pass.name,
                source: edit(pass.name, pass.source(&sources)),
                entry: pass.entry,
                checks: options.shader_checks,
            };
            let second = pass.groups == Groups::Items;
            let mut binds = vec![
                layout_entry(0, Access::Uniform),
                layout_entry(3, if second { Access::Read } else { Access::Write }),
                layout_entry(4, if second { Access::Read } else { Access::Write }),
            ];
            if options.counting.is_none() {
                binds.push(layout_entry(2, Access::Read));
            }
            if second {
                binds.push(layout_entry(5, Access::Uniform));
            } else {
                binds.push(layout_entry(1, Access::Read));
                if strategy.is_packed() {
                    binds.push(layout_entry(5, Access::Write));
                }
            }
            let callers = match second {
                true => options.body.layout,
                false => options.counting.and_then(|code| code.layout),
            };
            let (pipeline, layout) = compile_kernel(device, &job, &binds, callers)?;
            Ok(Kernel {
                pass,
                pipeline,
                layout,
            })
        };
        let build_all = |passes: &'static [ExpandPass]| passes.iter().map(build).collect();
        let passes: Result<_, _> = build_all(strategy.passes);
        let few: Result<_, _> = build_all(strategy.few);
        Ok(Self {
            expansion,
            fallback,
            dispatch: options.dispatch,
            is_merged: options.merged || !strategy.has_buckets,
            has_counts: options.counting.is_none(),
            passes: passes?,
            few: few?,
            items: build(&strategy.items)?,
            slices: slices(device)?,
        })
    }
}

/// The slices: all buckets, then each.
fn slices(device: &Device) -> Result<Buffer, CullError> {
    let bytes = strided((0..=EXPAND_BUCKETS).map(|index| ExpandSlice {
        bucket: index.checked_sub(1).unwrap_or(EXPAND_BUCKETS),
        ..ExpandSlice::default()
    }));
    let label = "gpu_culling expansion slices";
    guarded(device, label, || {
        filled(device, label, BufferUsages::UNIFORM, &bytes)
    })
}
