//! The shipped WGSL, and how a kernel is put together: helpers first, the stage, then the tier's entry points.

use crate::cull::CullingTier;

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

/// Shapes and constants that the host shares.
pub const LAYOUT: &str = wgsl!("layout");
/// Decoding of an instance.
pub const INSTANCE: &str = wgsl!("instance");
const FRUSTUM: &str = wgsl!("frustum");
const BLOCKS: &str = wgsl!("blocks");

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
        let subgroup = tier == CullingTier::Subgroup;
        let pick =
            |with: &'static str, without: &'static str| if subgroup { with } else { without };
        let parts: &[&str] = match self {
            Self::Vote => &[
                INSTANCE,
                FRUSTUM,
                BLOCKS,
                wgsl!("vote"),
                pick(wgsl!("vote_subgroup"), wgsl!("vote_workgroup")),
            ],
            Self::Scan => &[
                wgsl!("scan"),
                pick(wgsl!("scan_subgroup"), wgsl!("scan_workgroup")),
            ],
            Self::Compact => &[
                BLOCKS,
                wgsl!("compact"),
                pick(wgsl!("compact_subgroup"), wgsl!("compact_workgroup")),
            ],
            Self::Args => &[wgsl!("args")],
        };
        join(parts)
    }
}

/// Helpers and stages in one module; every kernel starts with the layout.
fn join(parts: &[&str]) -> String {
    let mut source = String::from(LAYOUT);
    for part in parts {
        source.push('\n');
        source.push_str(part);
    }
    source
}
