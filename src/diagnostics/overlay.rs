//! The counters in Bevy's diagnostics overlay.

use super::{
    CPU_TOTAL, CULLED, DISPATCHES, GPU_BYTES, INSTANCES, MESHLET_TRIANGLES, MESHLETS,
    MESHLETS_CULLED_BY_CONE, MESHLETS_CULLED_BY_FRUSTUM, PASSES, SHADOW_VISIBLE, STAGE_CPU,
    STAGE_GPU, TRIANGLES, UPLOADED_BYTES, VIEWS, VISIBLE,
};
use crate::render::{CullingReport, GpuCullingSystems, LevelReport, ViewKind};
use bevy::{
    dev_tools::diagnostics_overlay::{
        DiagnosticsOverlay, DiagnosticsOverlayItem, DiagnosticsOverlayPlugin,
        DiagnosticsOverlayStatistic,
    },
    diagnostic::{DiagnosticsStore, FrameTimeDiagnosticsPlugin},
    prelude::*,
    render::diagnostic::RenderDiagnosticsPlugin,
};

/// Shows the culling's counters, CPU times and GPU times in a window of Bevy's diagnostics overlay.
///
/// Behind the number of triangles ([`TRIANGLES`]), it lists the levels of detail that cameras draw,
/// the full meshes first. Each has its number of instances and of their triangles: `1.2k:3.2M`, or
/// `-` if there are none.
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
        })
        .add_systems(
            PreUpdate,
            list_levels
                .after(GpuCullingSystems::Report)
                .run_if(resource_exists_and_changed::<CullingReport>),
        );
    }
}

/// Shows the levels of detail of all cameras behind the number of triangles.
fn list_levels(report: Res<CullingReport>, mut store: ResMut<DiagnosticsStore>) {
    let mut levels: Vec<LevelReport> = Vec::new();
    let cameras = report.views.iter();
    for view in cameras.filter(|view| view.kind == ViewKind::Camera) {
        if levels.len() < view.levels.len() {
            levels.resize(view.levels.len(), LevelReport::default());
        }
        for (sum, level) in levels.iter_mut().zip(&view.levels) {
            sum.visible += level.visible;
            sum.triangles += level.triangles;
        }
    }
    if let Some(diagnostic) = store.get_mut(&TRIANGLES) {
        diagnostic.suffix = listed(&levels).into();
    }
}

/// The levels' instances and triangles; nothing if there is only the full mesh.
fn listed(levels: &[LevelReport]) -> String {
    if levels.len() < 2 {
        return String::new();
    }
    let level = |level: &LevelReport| {
        if level.visible == 0 {
            return " -".to_owned();
        }
        let [instances, triangles] = [level.visible, level.triangles].map(short);
        format!(" {instances}:{triangles}")
    };
    format!(" ={}", levels.iter().map(level).collect::<String>())
}

/// A number with two or three digits and its unit: `999`, `1.2k`, `35k`, `4.0M`.
fn short(number: u64) -> String {
    if number < 1000 {
        return number.to_string();
    }
    let mut value = number as f64;
    let mut unit = "";
    for next in ["k", "M", "G", "T"] {
        // What is rounded to 1000 has the next unit.
        if value >= 999.5 {
            value /= 1000.0;
            unit = next;
        }
    }
    if value < 9.95 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
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
        TRIANGLES,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (9_949, "9.9k"),
            (9_950, "10k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (35_123_456, "35M"),
            (2_500_000_000, "2.5G"),
            (123_000_000_000_000, "123T"),
        ] {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn each_level_has_its_instances_and_triangles() {
        let level = |visible, triangles| LevelReport { visible, triangles };
        assert_eq!(listed(&[]), "");
        assert_eq!(listed(&[level(5, 50)]), "");
        assert_eq!(
            listed(&[level(5, 50), level(0, 0), level(1200, 4_000_000)]),
            " = 5:50 - 1.2k:4.0M"
        );
    }
}
