//! The kernels of the far-first sort, and the passes that they make.

use crate::cull::{
    CullError, CullingTier,
    gpu::{
        binding::{Access, Bind},
        kernel::KernelJob,
        program::Program,
    },
    shaders::{Composed, kernels},
};
use wgpu::{BindGroup, BindingResource, ComputePipeline, Device};

/// A buffer that a kernel binds; its number in the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Round = 0,
    Jobs = 1,
    Args = 2,
    Spans = 3,
    Survivors = 4,
    Instances = 5,
    Scales = 6,
    KeysIn = 7,
    IdsIn = 8,
    KeysOut = 9,
    IdsOut = 10,
    Counts = 11,
    Totals = 12,
}

/// An entry point of `shaders/cull/far_first.wesl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Spans,
    Keys,
    Count,
    Scan,
    Scatter,
}

struct KernelInfo {
    label: &'static str,
    composed: &'static Composed,
    entry: &'static str,
    /// What it binds besides [`Resource::Round`]. A tier asks for eight storage buffers.
    reads: &'static [Resource],
    writes: &'static [Resource],
}

/// In the order of [`Kernel`].
const KERNELS: [KernelInfo; 5] = [
    KernelInfo {
        label: "far_first_spans",
        composed: &kernels::FAR_FIRST_SPANS,
        entry: "make_spans",
        reads: &[Resource::Jobs, Resource::Args],
        writes: &[Resource::Spans],
    },
    KernelInfo {
        label: "far_first_keys",
        composed: &kernels::FAR_FIRST_KEYS,
        entry: "make_keys",
        reads: &[
            Resource::Jobs,
            Resource::Spans,
            Resource::Survivors,
            Resource::Instances,
            Resource::Scales,
        ],
        writes: &[Resource::KeysOut, Resource::IdsOut, Resource::Counts],
    },
    KernelInfo {
        label: "far_first_count",
        composed: &kernels::FAR_FIRST_COUNT,
        entry: "count_digits",
        reads: &[Resource::Spans, Resource::KeysIn],
        writes: &[Resource::Counts],
    },
    KernelInfo {
        label: "far_first_scan",
        composed: &kernels::FAR_FIRST_SCAN,
        entry: "scan_counts",
        reads: &[Resource::Spans],
        writes: &[Resource::Counts, Resource::Totals],
    },
    KernelInfo {
        label: "far_first_scatter",
        composed: &kernels::FAR_FIRST_SCATTER,
        entry: "scatter",
        reads: &[Resource::Spans, Resource::KeysIn, Resource::IdsIn],
        writes: &[
            Resource::KeysOut,
            Resource::IdsOut,
            Resource::Counts,
            Resource::Totals,
        ],
    },
];

/// Number of rounds, of 8 bits each.
pub(super) const ROUNDS: u32 = 4;

/// A dispatch of the sort.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortPass {
    pub kernel: Kernel,
    pub round: u32,
}

/// All dispatches, in order. The kernel that makes the keys also counts the digits of the first
/// round.
pub(super) const PASSES: [SortPass; 13] = {
    let mut passes = [SortPass {
        kernel: Kernel::Spans,
        round: 0,
    }; 13];
    let mut round = 0;
    while round < ROUNDS {
        let kernels = [
            if round == 0 {
                Kernel::Keys
            } else {
                Kernel::Count
            },
            Kernel::Scan,
            Kernel::Scatter,
        ];
        let mut k = 0;
        while k < kernels.len() {
            passes[1 + round as usize * kernels.len() + k] = SortPass {
                kernel: kernels[k],
                round,
            };
            k += 1;
        }
        round += 1;
    }
    passes
};

/// The compiled kernels.
pub(super) struct Kernels {
    /// In the order of [`Kernel`].
    programs: Vec<Program<Resource>>,
}

impl Kernels {
    /// Compiles the kernels; `edit` may change the WGSL of one.
    pub fn build(
        device: &Device,
        tier: CullingTier,
        checks: bool,
        edit: &dyn Fn(&str, String) -> String,
    ) -> Result<Self, CullError> {
        let build = |kernel: &KernelInfo| {
            let job = KernelJob {
                tier,
                label: kernel.label,
                source: edit(kernel.label, kernel.composed.on(tier).to_owned()),
                entry: kernel.entry,
                checks,
            };
            let round = (&Resource::Round, Access::Uniform);
            let reads = kernel.reads.iter().map(|read| (read, Access::Read));
            let writes = kernel.writes.iter().map(|write| (write, Access::Write));
            let binds = [round].into_iter().chain(reads).chain(writes);
            let binds =
                binds.map(|(&resource, access)| Bind::at(resource as u32, resource, access));
            Program::build(device, &job, binds)
        };
        let programs = KERNELS.iter().map(build).collect::<Result<_, _>>();
        Ok(Self {
            programs: programs?,
        })
    }

    /// Whether `edit` changes the WGSL of a kernel.
    #[cfg(feature = "testing")]
    pub fn are_edited(tier: CullingTier, edit: &dyn Fn(&str, String) -> String) -> bool {
        KERNELS.iter().any(|kernel| {
            let source = kernel.composed.on(tier);
            edit(kernel.label, source.to_owned()) != source
        })
    }

    fn program(&self, kernel: Kernel) -> &Program<Resource> {
        &self.programs[kernel as usize]
    }

    pub fn pipeline(&self, pass: &SortPass) -> &ComputePipeline {
        self.program(pass.kernel).pipeline()
    }

    /// The bind group of each pass, over what `binding` gives for a pass and a resource.
    pub fn bind<'a>(
        &self,
        device: &Device,
        binding: impl Fn(&SortPass, Resource) -> BindingResource<'a>,
    ) -> Vec<BindGroup> {
        let bind = |pass: &SortPass| {
            let program = self.program(pass.kernel);
            program.bind(device, |resource| binding(pass, resource))
        };
        PASSES.iter().map(bind).collect()
    }
}
