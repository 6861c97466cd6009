//! The kernels of the meshlet stages, as tables: sources, bindings, dispatches.

use crate::cull::{
    CullingTier,
    shaders::{Composed, kernels},
};

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

    pub(super) fn kernels(self) -> &'static [Kernel] {
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
pub(super) enum Resource {
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
pub(super) struct Kernel {
    pub composed: &'static Composed,
    pub entry: &'static str,
    /// The batches that it is for; `None` for all.
    pub form: Option<Form>,
    pub reads: &'static [Resource],
    pub writes: &'static [Resource],
    pub dispatch: Dispatch,
}

/// Workgroups of a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dispatch {
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
    reads: &[Resource::Sizes, Resource::Rows, Resource::BatchArgs],
    writes: &[Resource::Spans],
    dispatch: Dispatch::One,
};
const CLEAR: Kernel = Kernel {
    composed: &kernels::MESHLET_CLEAR,
    entry: "clear",
    form: Some(Form::Items),
    reads: &[Resource::Spans],
    writes: &[Resource::Words, Resource::SourceCount],
    dispatch: Dispatch::Stride,
};
const VOTE: Kernel = Kernel {
    composed: &kernels::MESHLET_VOTE,
    entry: "vote",
    form: Some(Form::Division),
    reads: &[
        Resource::Sizes,
        Resource::Rows,
        Resource::Instances,
        Resource::Scales,
        Resource::Survivors,
        Resource::Meshlets,
    ],
    writes: &[Resource::Spans, Resource::Words],
    dispatch: Dispatch::Stride,
};
const VOTE_LATE: Kernel = Kernel {
    composed: &kernels::MESHLET_VOTE_LATE,
    form: Some(Form::LateDivision),
    reads: &[
        Resource::Sizes,
        Resource::Rows,
        Resource::Instances,
        Resource::Scales,
        Resource::Survivors,
        Resource::Meshlets,
        Resource::Pyramid,
        Resource::PyramidShape,
    ],
    ..VOTE
};
const SCAN: Kernel = Kernel {
    composed: &kernels::MESHLET_SCAN,
    entry: "scan",
    form: None,
    reads: &[Resource::Spans, Resource::Words],
    writes: &[Resource::Counts, Resource::Partials],
    dispatch: Dispatch::Stride,
};
const SPINE: Kernel = Kernel {
    composed: &kernels::MESHLET_SCAN,
    entry: "spine",
    form: None,
    reads: &[Resource::Spans],
    writes: &[Resource::Counts, Resource::Partials],
    dispatch: Dispatch::One,
};
const COMPACT: Kernel = Kernel {
    composed: &kernels::MESHLET_COMPACT,
    entry: "compact",
    form: None,
    reads: &[
        Resource::Sizes,
        Resource::Rows,
        Resource::Survivors,
        Resource::Spans,
        Resource::Words,
        Resource::Counts,
        Resource::Partials,
    ],
    writes: &[Resource::MeshletSurvivors],
    dispatch: Dispatch::Stride,
};
const ARGS: Kernel = Kernel {
    composed: &kernels::MESHLET_ARGS,
    entry: "write_args",
    form: None,
    reads: &[
        Resource::Sizes,
        Resource::Rows,
        Resource::BatchArgs,
        Resource::Spans,
        Resource::Meshlets,
        Resource::Counts,
        Resource::Partials,
    ],
    writes: &[Resource::Draws, Resource::Results],
    dispatch: Dispatch::Rows,
};
