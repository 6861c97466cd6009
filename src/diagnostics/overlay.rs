//! The counters in Bevy's diagnostics overlay.

use super::{
    CPU_TOTAL, CULLED, DISPATCHES, GPU_BYTES, INSTANCES, MESHLET_TRIANGLES, MESHLETS,
    MESHLETS_CULLED_BY_CONE, MESHLETS_CULLED_BY_FRUSTUM, PASSES, SHADOW_VISIBLE, STAGE_CPU,
    STAGE_GPU, UPLOADED_BYTES, VIEWS, VISIBLE,
};
use bevy::{
    dev_tools::diagnostics_overlay::{
        DiagnosticsOverlay, DiagnosticsOverlayItem, DiagnosticsOverlayPlugin,
        DiagnosticsOverlayStatistic,
    },
    diagnostic::FrameTimeDiagnosticsPlugin,
    prelude::*,
    render::diagnostic::RenderDiagnosticsPlugin,
};

/// Shows the culling's counters, CPU times and GPU times in a window of Bevy's diagnostics overlay.
///
/// It adds the plugins that it needs ([`DiagnosticsOverlayPlugin`], [`RenderDiagnosticsPlugin`],
/// [`FrameTimeDiagnosticsPlugin`]) unless the app already has them.
///
/// ```no_run
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// App::new()
///     .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), CullingOverlayPlugin))
///     .run();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CullingOverlayPlugin;

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
        app.add_systems(Startup, |mut commands: Commands| {
            commands.spawn(culling_overlay());
        });
    }
}

/// The content of the window, to spawn without [`CullingOverlayPlugin`].
#[must_use]
pub fn culling_overlay() -> DiagnosticsOverlay {
    let item = |path, statistic, precision| DiagnosticsOverlayItem {
        path,
        statistic,
        precision,
    };
    let mut items = vec![
        item(
            FrameTimeDiagnosticsPlugin::FPS,
            DiagnosticsOverlayStatistic::Smoothed,
            1,
        ),
        item(
            FrameTimeDiagnosticsPlugin::FRAME_TIME,
            DiagnosticsOverlayStatistic::Smoothed,
            2,
        ),
    ];
    for path in [
        INSTANCES,
        VISIBLE,
        CULLED,
        SHADOW_VISIBLE,
        VIEWS,
        UPLOADED_BYTES,
        GPU_BYTES,
        PASSES,
        DISPATCHES,
        MESHLETS,
        MESHLETS_CULLED_BY_FRUSTUM,
        MESHLETS_CULLED_BY_CONE,
        MESHLET_TRIANGLES,
    ] {
        items.push(item(path, DiagnosticsOverlayStatistic::Value, 0));
    }
    let cpu = STAGE_CPU.map(|(_, path)| path);
    for path in [CPU_TOTAL].into_iter().chain(cpu) {
        items.push(item(path, DiagnosticsOverlayStatistic::Smoothed, 4));
    }
    for (_, path) in STAGE_GPU {
        items.push(item(path, DiagnosticsOverlayStatistic::Smoothed, 4));
    }
    DiagnosticsOverlay::new("GPU culling", items)
}
