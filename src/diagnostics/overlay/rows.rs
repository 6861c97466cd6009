//! Which rows the overlay has.

use super::detail::{CullingOverlay, OverlayDetail};
use crate::{
    diagnostics::{
        Applies, COUNTERS, CPU_TOTAL, GPU_TOTAL, MESHLET_STAGE_GPU, SHADOW_VISIBLE, STAGE_CPU,
        STAGE_GPU, TRIANGLES, UPLOADED_BYTES, VISIBLE, newest_gpu_times, time_in,
    },
    render::{CullingReport, LevelReport, ViewKind},
};
use DiagnosticsOverlayStatistic::{Smoothed, Value};
use bevy::{
    dev_tools::diagnostics_overlay::{
        DiagnosticsOverlay, DiagnosticsOverlayItem, DiagnosticsOverlayStatistic,
    },
    diagnostic::{Diagnostic, DiagnosticPath, DiagnosticsStore, FrameTimeDiagnosticsPlugin},
    prelude::*,
};

/// Gives each window the rows that apply now.
pub(super) fn choose_rows(
    detail: Res<OverlayDetail>,
    report: Res<CullingReport>,
    store: Res<DiagnosticsStore>,
    mut windows: Query<(&CullingOverlay, &mut DiagnosticsOverlay)>,
) {
    for (window, mut overlay) in &mut windows {
        let rows = match window {
            _ if !window.is_shown(*detail) => Vec::new(),
            CullingOverlay::Counters => counters(*detail, &report, &store),
            CullingOverlay::Stages => stages(&report, &store),
        };
        let paths = |rows: &[DiagnosticsOverlayItem]| -> Vec<DiagnosticPath> {
            rows.iter().map(|row| row.path.clone()).collect()
        };
        if paths(&rows) != paths(&overlay.items) {
            overlay.items = rows;
        }
    }
}

fn row(
    path: DiagnosticPath,
    statistic: DiagnosticsOverlayStatistic,
    precision: usize,
) -> DiagnosticsOverlayItem {
    DiagnosticsOverlayItem {
        path,
        statistic,
        precision,
    }
}

/// The rows of the first window.
fn counters(
    detail: OverlayDetail,
    report: &CullingReport,
    store: &DiagnosticsStore,
) -> Vec<DiagnosticsOverlayItem> {
    let mut rows = vec![
        row(FrameTimeDiagnosticsPlugin::FPS, Smoothed, 1),
        row(FrameTimeDiagnosticsPlugin::FRAME_TIME, Smoothed, 2),
    ];
    if report.tier.is_none() {
        return rows;
    }
    let is_full = detail == OverlayDetail::Full;
    let has = |cameras: bool| {
        let mut views = report.views.iter();
        views.any(|view| (view.kind == ViewKind::Camera) == cameras)
    };
    let hides = report.camera_occlusion().is_some();
    let has_meshlets = report.expansion.is_some();
    let uploads = store.get(&UPLOADED_BYTES);
    let uploads = uploads.is_some_and(|diagnostic| diagnostic.values().any(|bytes| *bytes > 0.0));
    let applies = |applies: Applies| match applies {
        Applies::Always => true,
        Applies::Never => false,
        Applies::InCameras => has(true),
        Applies::InShadows => has(false),
        Applies::IfHiding => hides,
        Applies::ByMeshlets => has_meshlets,
        Applies::ByMeshletsIfHiding => has_meshlets && hides,
        Applies::IfUploading => uploads,
        Applies::IfCulling => report.passes > 0,
    };
    for counter in &COUNTERS {
        if applies(counter.applies) && (is_full || !counter.is_detail) {
            rows.push(row(counter.path.clone(), Value, 0));
        }
    }
    if report.passes > 0 && newest_gpu_times(store).is_some() {
        rows.push(row(GPU_TOTAL, Smoothed, 3));
    }
    rows.push(row(CPU_TOTAL, Smoothed, 3));
    rows
}

/// The rows of the second window: the stages that ran.
fn stages(report: &CullingReport, store: &DiagnosticsStore) -> Vec<DiagnosticsOverlayItem> {
    let mut rows = Vec::new();
    if report.passes > 0
        && let Some(newest) = newest_gpu_times(store)
    {
        for (_, path) in STAGE_GPU.into_iter().chain(MESHLET_STAGE_GPU) {
            if time_in(store, &path, newest).is_some() {
                rows.push(row(path, Smoothed, 4));
            }
        }
    }
    for (_, path) in STAGE_CPU {
        let time = store.get(&path).and_then(Diagnostic::smoothed);
        if time.is_some_and(|time| time > 0.0) {
            rows.push(row(path, Smoothed, 4));
        }
    }
    rows
}

/// Notes behind the numbers of visible instances how many were tested, and behind the number of
/// triangles the levels of detail of all cameras, if there is room.
pub(super) fn note_totals(
    detail: Res<OverlayDetail>,
    report: Res<CullingReport>,
    mut store: ResMut<DiagnosticsStore>,
) {
    if !(report.is_changed() || detail.is_changed()) {
        return;
    }
    if *detail == OverlayDetail::Hidden {
        // Others show the same diagnostics.
        if detail.is_changed() {
            for path in [VISIBLE, SHADOW_VISIBLE, TRIANGLES] {
                note(&mut store, &path, String::new());
            }
        }
        return;
    }
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
    let levels = match *detail {
        OverlayDetail::Full => listed(&levels),
        _ => String::new(),
    };
    for (path, suffix) in [
        (VISIBLE, format!(" of {}", report.cameras().0)),
        (SHADOW_VISIBLE, format!(" of {}", report.shadows().0)),
        (TRIANGLES, levels),
    ] {
        note(&mut store, &path, suffix);
    }
}

/// Writes behind a number.
fn note(store: &mut DiagnosticsStore, path: &DiagnosticPath, suffix: String) {
    if let Some(diagnostic) = store.get_mut(path) {
        diagnostic.suffix = suffix.into();
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
