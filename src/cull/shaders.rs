//! The shipped WGSL, and how a kernel is put together: helpers first, the stage, then the tier's entry points.

use crate::cull::{CullingTier, strategies::Sources};

/// A source file of the `shaders` folder.
macro_rules! wgsl {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/shaders/",
            $name,
            ".wgsl"
        ))
    };
}

pub(crate) use wgsl;

/// Shapes and constants that the host shares.
pub const LAYOUT: &str = wgsl!("layout");
/// Decoding of an instance.
pub const INSTANCE: &str = wgsl!("instance");
/// Encoding of an instance, for kernels that write instances; to be joined with [`INSTANCE`], which decodes. In a Bevy
/// app both are the module `bevy_gpu_culling::instance`.
pub const INSTANCE_PACK: &str = wgsl!("instance_pack");
/// Reading of an instance of 16 bytes. Another file with the same declarations makes the kernels read another
/// encoding ([`Compactor`](crate::cull::Compactor)).
pub const INSTANCE_PACKED: &str = wgsl!("instance_packed");
/// Shapes and constants of the expansions.
pub const EXPAND_LAYOUT: &str = wgsl!("expand_layout");
/// The items of a source, from a buffer. A caller may bring other WGSL with the same function
/// ([`ExpanderOptions`](crate::cull::expand::ExpanderOptions)).
pub const EXPAND_COUNTS: &str = wgsl!("expand_counts");
pub(crate) const FRUSTUM: &str = wgsl!("frustum");
pub(crate) const BLOCKS: &str = wgsl!("blocks");

/// A kernel of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Instances to visibility words.
    Vote,
    /// Survivors of blocks and rows to prefixes, where they are many.
    Scan,
    /// Words to survivor ids, and their numbers to indirect commands.
    Compact,
}

impl Kernel {
    /// All kernels, in the order of the frame.
    pub const ALL: [Self; 3] = [Self::Vote, Self::Scan, Self::Compact];

    /// The whole WGSL of the kernel on `tier` (the `Cpu` tier has none and gets that of `Workgroup`).
    #[must_use]
    pub fn source(self, tier: CullingTier) -> String {
        self.source_with(&Sources::new(tier))
    }

    pub(crate) fn source_with(self, sources: &Sources<'_>) -> String {
        match self {
            Self::Vote => vote(sources, &[wgsl!("lists"), wgsl!("vote_counts")]),
            Self::Scan => join(&[
                wgsl!("lists"),
                wgsl!("scan"),
                sources.pick(wgsl!("scan_subgroup"), wgsl!("scan_workgroup")),
            ]),
            Self::Compact => join(&[
                wgsl!("block_tables"),
                wgsl!("survivors"),
                wgsl!("lists"),
                wgsl!("draw"),
                wgsl!("row_draw"),
                wgsl!("compact"),
                sources.pick(wgsl!("compact_subgroup"), wgsl!("compact_workgroup")),
            ]),
        }
    }
}

/// The vote on every block; `counting` says what becomes of the words' numbers.
pub(crate) fn vote(sources: &Sources<'_>, counting: &[&str]) -> String {
    let mut parts = inputs(sources.encoding).to_vec();
    parts.extend(counting);
    parts.extend([
        wgsl!("words"),
        wgsl!("vote"),
        sources.pick(wgsl!("ballot_component"), ""),
        sources.pick(wgsl!("pairs"), ""),
        sources.pick(wgsl!("vote_row_subgroup"), ""),
        sources.pick(wgsl!("vote_subgroup"), wgsl!("vote_workgroup")),
    ]);
    join(&parts)
}

/// What a kernel that tests instances starts with; `encoding` reads an instance.
pub(crate) fn inputs(encoding: &str) -> [&str; 5] {
    [INSTANCE, encoding, FRUSTUM, wgsl!("visible"), BLOCKS]
}

/// Helpers and stages in one module; every kernel starts with the layout.
pub(crate) fn join(parts: &[&str]) -> String {
    join_after(LAYOUT, parts)
}

/// Helpers and stages in one module, after another layout.
pub(crate) fn join_after(layout: &str, parts: &[&str]) -> String {
    let mut source = String::from(layout);
    for part in parts {
        source.push('\n');
        source.push_str(part);
    }
    source
}
