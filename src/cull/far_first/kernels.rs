//! The kernels of the far-first sort, and the passes that they make.

use crate::cull::{
    CullError, CullingTier,
    gpu::{
        binding::{Access, Bind},
        kernel::KernelJob,
        program::Program,
    },
    shaders::kernels,
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

impl Kernel {
    const ALL: [Self; 5] = [
        Self::Spans,
        Self::Keys,
        Self::Count,
        Self::Scan,
        Self::Scatter,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::Spans => "far_first_spans",
            Self::Keys => "far_first_keys",
            Self::Count => "far_first_count",
            Self::Scan => "far_first_scan",
            Self::Scatter => "far_first_scatter",
        }
    }

    const fn entry(self) -> &'static str {
        match self {
            Self::Spans => "make_spans",
            Self::Keys => "make_keys",
            Self::Count => "count_digits",
            Self::Scan => "scan_counts",
            Self::Scatter => "scatter",
        }
    }

    fn source(self, tier: CullingTier) -> String {
        let composed = match self {
            Self::Spans => &kernels::FAR_FIRST_SPANS,
            Self::Keys => &kernels::FAR_FIRST_KEYS,
            Self::Count => &kernels::FAR_FIRST_COUNT,
            Self::Scan => &kernels::FAR_FIRST_SCAN,
            Self::Scatter => &kernels::FAR_FIRST_SCATTER,
        };
        composed.on(tier).to_owned()
    }

    /// What it binds besides [`Resource::Round`]: what it reads, and what it writes. A tier asks
    /// for eight storage buffers.
    const fn binds(self) -> (&'static [Resource], &'static [Resource]) {
        match self {
            Self::Spans => (&[Resource::Jobs, Resource::Args], &[Resource::Spans]),
            Self::Keys => (
                &[
                    Resource::Jobs,
                    Resource::Spans,
                    Resource::Survivors,
                    Resource::Instances,
                    Resource::Scales,
                ],
                &[Resource::KeysOut, Resource::IdsOut, Resource::Counts],
            ),
            Self::Count => (&[Resource::Spans, Resource::KeysIn], &[Resource::Counts]),
            Self::Scan => (&[Resource::Spans], &[Resource::Counts, Resource::Totals]),
            Self::Scatter => (
                &[Resource::Spans, Resource::KeysIn, Resource::IdsIn],
                &[
                    Resource::KeysOut,
                    Resource::IdsOut,
                    Resource::Counts,
                    Resource::Totals,
                ],
            ),
        }
    }
}

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
    /// In the order of [`Kernel::ALL`].
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
        let build = |kernel: Kernel| {
            let job = KernelJob {
                tier,
                label: kernel.label(),
                source: edit(kernel.label(), kernel.source(tier)),
                entry: kernel.entry(),
                checks,
            };
            let bind = |resource: &Resource, access| Bind::at(*resource as u32, *resource, access);
            let (reads, writes) = kernel.binds();
            let reads = reads.iter().map(|resource| bind(resource, Access::Read));
            let writes = writes.iter().map(|resource| bind(resource, Access::Write));
            let round = bind(&Resource::Round, Access::Uniform);
            Program::build(device, &job, [round].into_iter().chain(reads).chain(writes))
        };
        let programs = Kernel::ALL.into_iter().map(build).collect::<Result<_, _>>();
        Ok(Self {
            programs: programs?,
        })
    }

    /// Whether `edit` changes the WGSL of a kernel.
    #[cfg(feature = "testing")]
    pub fn are_edited(tier: CullingTier, edit: &dyn Fn(&str, String) -> String) -> bool {
        Kernel::ALL.into_iter().any(|kernel| {
            let source = kernel.source(tier);
            edit(kernel.label(), source.clone()) != source
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
