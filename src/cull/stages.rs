//! The stages of a frame.

/// A step of the frame, in order; each has its own time in the diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Blocks of instances to what a view keeps, drops or crosses.
    Classify,
    /// Instances to votes: visibility words, or whatever the compaction keeps.
    Vote,
    /// Of what rows that may be hidden keep, what is drawn early. In frames with such rows.
    Recall,
    /// Votes to places.
    Scan,
    /// Survivors to their places. A compaction without votes tests the instances here.
    Compact,
    /// Rows to indirect commands.
    Args,
    /// Survivors of far-first rows to their order. It follows every compaction, in frames with such
    /// rows.
    FarFirst,
    /// Of what the frustum keeps, what is not hidden behind the depth that the early draws left. It
    /// runs between the draws of a view, with the stages that make lists of it.
    Occlude,
}

impl Stage {
    /// All stages, in the order of the frame.
    pub const ALL: [Self; 8] = [
        Self::Classify,
        Self::Vote,
        Self::Recall,
        Self::Scan,
        Self::Compact,
        Self::Args,
        Self::FarFirst,
        Self::Occlude,
    ];

    /// The stem that names the stage in shaders, labels and diagnostics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classify => "classify",
            Self::Vote => "vote",
            Self::Recall => "recall",
            Self::Scan => "scan",
            Self::Compact => "compact",
            Self::Args => "args",
            Self::FarFirst => "far_first",
            Self::Occlude => "occlude",
        }
    }

    /// The label of its compute pass, and the name of its time span.
    #[must_use]
    pub const fn span(self) -> &'static str {
        match self {
            Self::Classify => "gpu_culling/classify",
            Self::Vote => "gpu_culling/vote",
            Self::Recall => "gpu_culling/recall",
            Self::Scan => "gpu_culling/scan",
            Self::Compact => "gpu_culling/compact",
            Self::Args => "gpu_culling/args",
            Self::FarFirst => "gpu_culling/far_first",
            Self::Occlude => "gpu_culling/occlude",
        }
    }
}
