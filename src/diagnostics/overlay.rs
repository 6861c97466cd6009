//! The counters in Bevy's diagnostics overlay.
//!
//! 1. `detail`: how much is shown.
//! 2. `rows`: which rows there are.
//! 3. `place`: the camera that shows the overlay, and its place there.

mod detail;
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
pub use detail::{CullingOverlay, OverlayDetail};

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
