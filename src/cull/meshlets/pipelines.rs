//! The kernels of the meshlet stages: sources, bindings, pipelines.

use super::options::MeshletOptions;
use crate::cull::{
    CullError, CullingTier,
    gpu::{
        binding::{Access, Bind},
        kernel::KernelJob,
        program::Program,
    },
    shaders::kernels,
};
use wgpu::{BindGroup, Buffer, Device};

/// A step from survivors to meshlet draws, in order; each has its own time in the diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeshletStage {
    /// What survivors expand to.
    Expand,
    /// Meshlets of survivors to bits.
    Vote,
    /// Counts to places.
    Scan,
    /// Bits to ids, meshlet by meshlet.
    Compact,
    /// Meshlets to indirect commands.
    Args,
}

impl MeshletStage {
    /// All stages, in order.
    pub const ALL: [Self; 5] = [
        Self::Expand,
        Self::Vote,
        Self::Scan,
        Self::Compact,
        Self::Args,
    ];

    /// The stem that names the stage in shaders, labels and diagnostics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expand => "meshlet_expand",
            Self::Vote => "meshlet_vote",
            Self::Scan => "meshlet_scan",
            Self::Compact => "meshlet_compact",
            Self::Args => "meshlet_args",
        }
    }

    /// The label of its compute pass, and the name of its time span.
    #[must_use]
    pub const fn span(self) -> &'static str {
        match self {
            Self::Expand => "gpu_culling/meshlet_expand",
            Self::Vote => "gpu_culling/meshlet_vote",
            Self::Scan => "gpu_culling/meshlet_scan",
            Self::Compact => "gpu_culling/meshlet_compact",
            Self::Args => "gpu_culling/meshlet_args",
        }
    }

    /// The whole WGSL of the stage on `tier` (the `Cpu` tier has none and gets the one of
    /// `Workgroup`).
    #[must_use]
    pub fn source(self, tier: CullingTier) -> String {
        let composed = match self {
            Self::Expand => &kernels::MESHLET_EXPAND,
            Self::Vote => &kernels::MESHLET_VOTE,
            Self::Scan => &kernels::MESHLET_SCAN,
            Self::Compact => &kernels::MESHLET_COMPACT,
            Self::Args => &kernels::MESHLET_ARGS,
        };
        composed.on(tier).to_owned()
    }

    fn kernels(self) -> &'static [Kernel] {
        match self {
            Self::Expand => &[EXPAND],
            Self::Vote => &[VOTE],
            Self::Scan => &[SCAN, SPINE],
            Self::Compact => &[COMPACT],
            Self::Args => &[ARGS],
        }
    }
}

/// A buffer that a kernel binds; its number in the shaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Sizes = 0,
    Rows = 1,
    BatchArgs = 2,
    Instances = 3,
    Scales = 4,
    Survivors = 5,
    Spans = 6,
    Meshlets = 7,
    Words = 8,
    Counts = 9,
    Partials = 10,
    MeshletSurvivors = 11,
    Draws = 12,
    Results = 13,
}

/// An entry point: what it reads, what it writes, how it is dispatched.
struct Kernel {
    entry: &'static str,
    reads: &'static [Slot],
    writes: &'static [Slot],
    dispatch: Dispatch,
}

/// Workgroups of a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dispatch {
    /// A single one.
    One,
    /// They stride over the work items or tiles, of which only the GPU knows how many there are.
    Stride,
    /// One for each row; they stride if there are more than a dispatch may have.
    Rows,
}

const EXPAND: Kernel = Kernel {
    entry: "expand",
    reads: &[Slot::Sizes, Slot::Rows, Slot::BatchArgs],
    writes: &[Slot::Spans],
    dispatch: Dispatch::One,
};
const VOTE: Kernel = Kernel {
    entry: "vote",
    reads: &[
        Slot::Sizes,
        Slot::Rows,
        Slot::Instances,
        Slot::Scales,
        Slot::Survivors,
        Slot::Meshlets,
    ],
    writes: &[Slot::Spans, Slot::Words, Slot::Counts],
    dispatch: Dispatch::Stride,
};
const SCAN: Kernel = Kernel {
    entry: "scan",
    reads: &[Slot::Spans],
    writes: &[Slot::Counts, Slot::Partials],
    dispatch: Dispatch::Stride,
};
const SPINE: Kernel = Kernel {
    entry: "spine",
    reads: &[Slot::Spans],
    writes: &[Slot::Counts, Slot::Partials],
    dispatch: Dispatch::One,
};
const COMPACT: Kernel = Kernel {
    entry: "compact",
    reads: &[
        Slot::Sizes,
        Slot::Rows,
        Slot::Survivors,
        Slot::Spans,
        Slot::Words,
        Slot::Counts,
        Slot::Partials,
    ],
    writes: &[Slot::MeshletSurvivors],
    dispatch: Dispatch::Stride,
};
const ARGS: Kernel = Kernel {
    entry: "write_args",
    reads: &[
        Slot::Sizes,
        Slot::Rows,
        Slot::BatchArgs,
        Slot::Spans,
        Slot::Meshlets,
        Slot::Counts,
        Slot::Partials,
    ],
    writes: &[Slot::Draws, Slot::Results],
    dispatch: Dispatch::Rows,
};

/// A compiled kernel.
struct Built {
    stage: MeshletStage,
    kernel: &'static Kernel,
    program: Program<Slot>,
}

/// All kernels of one tier.
pub(super) struct Pipelines {
    built: Vec<Built>,
    /// Workgroups of a dispatch at most.
    workgroups: u32,
    /// Workgroups of [`Dispatch::Stride`] at most.
    stride: u32,
}

impl Pipelines {
    /// Compiles the kernels; `edit` may change the WGSL of a stage (a test breaks it).
    pub fn build(
        device: &Device,
        tier: CullingTier,
        options: &MeshletOptions,
        edit: &dyn Fn(MeshletStage, String) -> String,
    ) -> Result<Self, CullError> {
        let mut built = Vec::new();
        for stage in MeshletStage::ALL {
            for kernel in stage.kernels() {
                built.push(build(
                    device,
                    (stage, kernel),
                    (tier, options.shader_checks),
                    edit,
                )?);
            }
        }
        let workgroups = device.limits().max_compute_workgroups_per_dimension;
        Ok(Self {
            built,
            workgroups,
            stride: options.workgroups.clamp(1, workgroups),
        })
    }

    /// Bind groups of every kernel.
    pub fn bind<'a>(&self, device: &Device, buffer: impl Fn(Slot) -> &'a Buffer) -> Vec<BindGroup> {
        let resource = |slot| buffer(slot).as_entire_binding();
        let programs = self.built.iter().map(|built| &built.program);
        programs
            .map(|program| program.bind(device, resource))
            .collect()
    }

    /// Records a stage of all batches: rows and most work items of each, and its bind groups.
    pub fn record<'a>(
        &self,
        stage: MeshletStage,
        batches: impl Iterator<Item = (u32, u64, &'a [BindGroup])> + Clone,
        pass: &mut wgpu::ComputePass<'_>,
    ) {
        let kernels = self.built.iter().enumerate();
        for (index, built) in kernels.filter(|(_, built)| built.stage == stage) {
            pass.set_pipeline(built.program.pipeline());
            for (rows, most_items, groups) in batches.clone() {
                let Some(group) = groups.get(index) else {
                    continue;
                };
                let workgroups = match built.kernel.dispatch {
                    Dispatch::One => 1,
                    Dispatch::Stride => most_items.clamp(1, u64::from(self.stride)) as u32,
                    Dispatch::Rows => rows,
                };
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(workgroups.min(self.workgroups), 1, 1);
            }
        }
    }
}

fn build(
    device: &Device,
    (stage, kernel): (MeshletStage, &'static Kernel),
    (tier, checks): (CullingTier, bool),
    edit: &dyn Fn(MeshletStage, String) -> String,
) -> Result<Built, CullError> {
    let label = stage.name();
    let job = KernelJob {
        tier,
        label,
        source: edit(stage, stage.source(tier)),
        entry: kernel.entry,
        checks,
    };
    let bind = |slot: &Slot, access| Bind {
        number: *slot as u32,
        slot: *slot,
        access: match slot {
            Slot::Sizes => Access::Uniform,
            _ => access,
        },
    };
    let reads = kernel.reads.iter().map(|slot| bind(slot, Access::Read));
    let writes = kernel.writes.iter().map(|slot| bind(slot, Access::Write));
    Ok(Built {
        stage,
        kernel,
        program: Program::build(device, &job, reads.chain(writes))?,
    })
}
