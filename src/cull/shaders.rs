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
    /// Words to counts to exclusive prefixes (entry points `scan` and `spine`).
    Scan,
    /// Words to survivor ids.
    Compact,
    /// Prefixes to indirect commands.
    Args,
}

impl Kernel {
    /// All kernels, in the order of the frame.
    pub const ALL: [Self; 4] = [Self::Vote, Self::Scan, Self::Compact, Self::Args];

    /// The whole WGSL of the kernel on `tier` (the `Cpu` tier has none and gets that of `Workgroup`).
    #[must_use]
    pub fn source(self, tier: CullingTier) -> String {
        self.source_with(&Sources::new(tier))
    }

    pub(crate) fn source_with(self, sources: &Sources<'_>) -> String {
        match self {
            Self::Vote => {
                let mut parts = inputs(sources.encoding).to_vec();
                parts.extend([
                    wgsl!("vote"),
                    sources.pick(wgsl!("vote_row_subgroup"), ""),
                    sources.pick(wgsl!("vote_subgroup"), wgsl!("vote_workgroup")),
                ]);
                join(&parts)
            }
            Self::Scan => join(&[
                wgsl!("scan"),
                wgsl!("scan_words"),
                sources.pick(wgsl!("scan_subgroup"), wgsl!("scan_workgroup")),
            ]),
            Self::Compact => join(&[
                wgsl!("block_tables"),
                BLOCKS,
                wgsl!("survivors"),
                wgsl!("write_words"),
                wgsl!("compact"),
                sources.pick(wgsl!("words_subgroup"), wgsl!("words_workgroup")),
                sources.pick(wgsl!("compact_subgroup"), wgsl!("compact_workgroup")),
            ]),
            Self::Args => join(&[wgsl!("draw"), wgsl!("args_prefix"), wgsl!("args")]),
        }
    }
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
