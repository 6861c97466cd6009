//! The kernels of the meshlet stages: sources, bindings, pipelines.

use super::options::MeshletOptions;
use crate::cull::{
    CullError, CullingTier,
    gpu::{
        binding::{Access, Bind},
        kernel::KernelJob,
        program::Program,
    },
    shaders::{Composed, kernels},
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

    /// The whole WGSL of the stage's kernels on `tier` (the `Cpu` tier has none and gets the one of
    /// `Workgroup`), without the kernels of an expansion.
    #[must_use]
    pub fn sources(self, tier: CullingTier) -> Vec<&'static str> {
        let mut sources: Vec<_> = self
            .kernels()
            .iter()
            .map(|kernel| kernel.composed.on(tier))
            .collect();
        sources.dedup();
        sources
    }

    fn kernels(self) -> &'static [Kernel] {
        match self {
            Self::Expand => &[EXPAND, CLEAR],
            Self::Vote => &[VOTE, VOTE_LATE],
            Self::Scan => &[SCAN, SPINE],
            Self::Compact => &[COMPACT],
            Self::Args => &[ARGS],
        }
    }
}

/// A change of a stage's WGSL: a test breaks it.
pub(super) type StageEdit = dyn Fn(MeshletStage, String) -> String + Send + Sync;

/// How the meshlets of a batch are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A division expands the survivors.
    Division,
    /// The same, of late lists: meshlets are also compared with a depth pyramid.
    LateDivision,
    /// An [`Expander`](crate::cull::Expander) expands the survivors.
    Items,
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
    SourceCount = 14,
    Pyramid = 18,
    PyramidShape = 19,
}

/// An entry point: what it is for, what it reads, what it writes, how it is dispatched.
struct Kernel {
    composed: &'static Composed,
    entry: &'static str,
    /// The batches that it is for; `None` for all.
    form: Option<Form>,
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
    composed: &kernels::MESHLET_EXPAND,
    entry: "expand",
    form: None,
    reads: &[Slot::Sizes, Slot::Rows, Slot::BatchArgs],
    writes: &[Slot::Spans],
    dispatch: Dispatch::One,
};
const CLEAR: Kernel = Kernel {
    composed: &kernels::MESHLET_CLEAR,
    entry: "clear",
    form: Some(Form::Items),
    reads: &[Slot::Spans],
    writes: &[Slot::Words, Slot::SourceCount],
    dispatch: Dispatch::Stride,
};
const VOTE: Kernel = Kernel {
    composed: &kernels::MESHLET_VOTE,
    entry: "vote",
    form: Some(Form::Division),
    reads: &[
        Slot::Sizes,
        Slot::Rows,
        Slot::Instances,
        Slot::Scales,
        Slot::Survivors,
        Slot::Meshlets,
    ],
    writes: &[Slot::Spans, Slot::Words],
    dispatch: Dispatch::Stride,
};
const VOTE_LATE: Kernel = Kernel {
    composed: &kernels::MESHLET_VOTE_LATE,
    form: Some(Form::LateDivision),
    reads: &[
        Slot::Sizes,
        Slot::Rows,
        Slot::Instances,
        Slot::Scales,
        Slot::Survivors,
        Slot::Meshlets,
        Slot::Pyramid,
        Slot::PyramidShape,
    ],
    ..VOTE
};
const SCAN: Kernel = Kernel {
    composed: &kernels::MESHLET_SCAN,
    entry: "scan",
    form: None,
    reads: &[Slot::Spans, Slot::Words],
    writes: &[Slot::Counts, Slot::Partials],
    dispatch: Dispatch::Stride,
};
const SPINE: Kernel = Kernel {
    composed: &kernels::MESHLET_SCAN,
    entry: "spine",
    form: None,
    reads: &[Slot::Spans],
    writes: &[Slot::Counts, Slot::Partials],
    dispatch: Dispatch::One,
};
const COMPACT: Kernel = Kernel {
    composed: &kernels::MESHLET_COMPACT,
    entry: "compact",
    form: None,
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
    composed: &kernels::MESHLET_ARGS,
    entry: "write_args",
    form: None,
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

/// A batch, as the dispatches of its kernels see it.
#[derive(Clone, Copy)]
pub(super) struct BatchWork<'a> {
    pub rows: u32,
    /// Number of work items if every instance survived.
    pub max_items: u64,
    /// Of [`Pipelines::bind`].
    pub bind_groups: &'a [Option<BindGroup>],
}

/// The kernels on one tier.
pub(super) struct Pipelines {
    tier: CullingTier,
    checks: bool,
    built: Vec<Built>,
    /// The forms whose kernels were compiled, and whether they could be.
    forms: Vec<(Form, bool)>,
    /// Workgroups of a dispatch at most.
    workgroups: u32,
    /// Workgroups of [`Dispatch::Stride`] at most.
    stride: u32,
}

impl Pipelines {
    /// Compiles the kernels that all batches need, and the ones of [`Form::Division`]; `edit`
    /// may change the WGSL of a stage.
    pub fn build(
        device: &Device,
        tier: CullingTier,
        options: &MeshletOptions,
        edit: &StageEdit,
    ) -> Result<Self, CullError> {
        let workgroups = device.limits().max_compute_workgroups_per_dimension;
        let mut pipelines = Self {
            tier,
            checks: options.shader_checks,
            built: Vec::new(),
            forms: vec![(Form::Division, true)],
            workgroups,
            stride: options.workgroups.clamp(1, workgroups),
        };
        pipelines.add(device, None, edit)?;
        pipelines.add(device, Some(Form::Division), edit)?;
        Ok(pipelines)
    }

    fn add(
        &mut self,
        device: &Device,
        form: Option<Form>,
        edit: &StageEdit,
    ) -> Result<(), CullError> {
        for stage in MeshletStage::ALL {
            let kernels = stage.kernels().iter();
            for kernel in kernels.filter(|kernel| kernel.form == form) {
                let how = (self.tier, self.checks);
                self.built.push(build(device, (stage, kernel), how, edit)?);
            }
        }
        Ok(())
    }

    /// Compiles the kernels of a form, unless they are there. Returns whether they are.
    ///
    /// # Errors
    /// [`CullError::Pipeline`], the first time.
    pub fn ready(
        &mut self,
        device: &Device,
        form: Form,
        edit: &StageEdit,
    ) -> Result<bool, CullError> {
        if let Some((_, is_built)) = self.forms.iter().find(|(known, _)| *known == form) {
            return Ok(*is_built);
        }
        let added = self.add(device, Some(form), edit);
        self.forms.push((form, added.is_ok()));
        added.map(|()| true)
    }

    /// Bind groups of the kernels that a batch of this form needs.
    pub fn bind<'a>(
        &self,
        device: &Device,
        form: Form,
        buffer: impl Fn(Slot) -> &'a Buffer,
    ) -> Vec<Option<BindGroup>> {
        let resource = |slot| buffer(slot).as_entire_binding();
        let groups = self.built.iter().map(|built| {
            let is_for = built.kernel.form.is_none_or(|of| of == form);
            is_for.then(|| built.program.bind(device, resource))
        });
        groups.collect()
    }

    /// Records a stage of all batches.
    pub fn record<'a>(
        &self,
        stage: MeshletStage,
        batches: impl Iterator<Item = BatchWork<'a>> + Clone,
        pass: &mut wgpu::ComputePass<'_>,
    ) {
        let kernels = self.built.iter().enumerate();
        for (index, built) in kernels.filter(|(_, built)| built.stage == stage) {
            pass.set_pipeline(built.program.pipeline());
            for batch in batches.clone() {
                let Some(Some(group)) = batch.bind_groups.get(index) else {
                    continue;
                };
                let workgroups = match built.kernel.dispatch {
                    Dispatch::One => 1,
                    Dispatch::Stride => batch.max_items.clamp(1, u64::from(self.stride)) as u32,
                    Dispatch::Rows => batch.rows,
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
    edit: &StageEdit,
) -> Result<Built, CullError> {
    let label = stage.name();
    let job = KernelJob {
        tier,
        label,
        source: edit(stage, kernel.composed.on(tier).to_owned()),
        entry: kernel.entry,
        checks,
    };
    let bind = |slot: &Slot, access| Bind {
        number: *slot as u32,
        slot: *slot,
        access: match slot {
            Slot::Sizes | Slot::PyramidShape => Access::Uniform,
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
