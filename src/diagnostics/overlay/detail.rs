//! How much the overlay shows, and its windows.

use bevy::prelude::*;

/// How much the overlay of [`CullingOverlayPlugin`](super::CullingOverlayPlugin) shows.
#[derive(Resource, Reflect, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[reflect(Resource, Clone, Debug, Default, PartialEq, Hash)]
pub enum OverlayDetail {
    /// Nothing.
    Hidden,
    /// At most seven rows: frames, instances in cameras and in shadow views, triangles, and the
    /// whole GPU time and CPU time of the culling.
    #[default]
    Summary,
    /// All counters, and a second window with the time of each stage.
    ///
    /// Behind the number of triangles ([`TRIANGLES`](crate::diagnostics::TRIANGLES)), it lists the
    /// levels of detail that cameras draw, the full meshes first. Each has its number of instances
    /// and of their triangles: `1.2k:3.2M`, or `-` if there are none.
    Full,
}

impl OverlayDetail {
    /// The next in a cycle: hidden, summary, full.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Hidden => Self::Summary,
            Self::Summary => Self::Full,
            Self::Full => Self::Hidden,
        }
    }
}

/// A window of the overlay of [`CullingOverlayPlugin`](super::CullingOverlayPlugin).
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq, Eq)]
#[reflect(Component, Clone, Debug, PartialEq)]
pub enum CullingOverlay {
    /// Frames, counters and whole times.
    Counters,
    /// The time of each stage, on the GPU and on the CPU.
    Stages,
}

impl CullingOverlay {
    /// Whether the window is shown.
    pub(super) fn is_shown(self, detail: OverlayDetail) -> bool {
        match detail {
            OverlayDetail::Hidden => false,
            OverlayDetail::Summary => self == Self::Counters,
            OverlayDetail::Full => true,
        }
    }
}
