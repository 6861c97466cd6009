//! The counters in Bevy's diagnostics overlay.
//!
//! 1. `rows`: which rows there are.
//! 2. `place`: the camera that shows the overlay, and its place there.

mod place;
mod rows;

use crate::render::GpuCullingSystems;
use bevy::{
    dev_tools::diagnostics_overlay::{
        DiagnosticsOverlay, DiagnosticsOverlayPlugin, DiagnosticsOverlaySystems,
    },
    diagnostic::FrameTimeDiagnosticsPlugin,
    prelude::*,
    render::diagnostic::RenderDiagnosticsPlugin,
};

/// Shows the culling's counters, CPU times and GPU times in windows of Bevy's diagnostics overlay.
/// Rows that do not apply are absent, for example counters of shadows in a scene without
/// shadows. Bevy updates the rows once per second.
///
/// [`OverlayDetail`] says how much is shown. It can be changed at run time:
///
/// ```no_run
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// App::new()
///     .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), CullingOverlayPlugin::default()))
///     .add_systems(Update, toggle)
///     .run();
///
/// fn toggle(mut detail: ResMut<OverlayDetail>) {
///     *detail = detail.next();
/// }
/// ```
///
/// The camera with [`IsDefaultUiCamera`] shows the overlay. If there is none, this is the camera
/// with the largest viewport, and in a split screen the one at the top left.
///
/// The plugin adds the plugins that it needs ([`DiagnosticsOverlayPlugin`],
/// [`RenderDiagnosticsPlugin`], [`FrameTimeDiagnosticsPlugin`]) unless the app already has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct CullingOverlayPlugin {
    /// How much is shown at first.
    pub detail: OverlayDetail,
}

/// How much the overlay of [`CullingOverlayPlugin`] shows.
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
    /// Behind the number of triangles ([`TRIANGLES`](super::TRIANGLES)), it lists the levels of
    /// detail that cameras draw, the full meshes first. Each has its number of instances and of
    /// their triangles: `1.2k:3.2M`, or `-` if there are none.
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

/// A window of the overlay of [`CullingOverlayPlugin`].
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
    fn is_shown(self, detail: OverlayDetail) -> bool {
        match detail {
            OverlayDetail::Hidden => false,
            OverlayDetail::Summary => self == Self::Counters,
            OverlayDetail::Full => true,
        }
    }
}

impl Plugin for CullingOverlayPlugin {
    fn build(&self, app: &mut App) {
        if !app.is_plugin_added::<DiagnosticsOverlayPlugin>() {
            app.add_plugins(DiagnosticsOverlayPlugin);
        }
        if !app.is_plugin_added::<RenderDiagnosticsPlugin>() {
            app.add_plugins(RenderDiagnosticsPlugin);
        }
        if !app.is_plugin_added::<FrameTimeDiagnosticsPlugin>() {
            app.add_plugins(FrameTimeDiagnosticsPlugin::default());
        }
        app.insert_resource(self.detail)
            .register_type::<OverlayDetail>()
            .register_type::<CullingOverlay>()
            .add_systems(Startup, spawn)
            .add_systems(
                Update,
                (
                    place::choose_camera,
                    place::place,
                    (rows::note_totals, rows::choose_rows)
                        .chain()
                        .before(DiagnosticsOverlaySystems::Rebuild),
                )
                    .after(GpuCullingSystems::Report),
            );
    }
}

fn spawn(mut commands: Commands) {
    for (window, title) in [
        (CullingOverlay::Counters, "GPU culling"),
        (CullingOverlay::Stages, "GPU culling, by stage"),
    ] {
        commands.spawn((window, DiagnosticsOverlay::new(title, Vec::new())));
    }
}
