//! The culling in Bevy's diagnostics: paths, measurements, and an overlay that shows them.
//!
//! The counters and the CPU times come from [`CullingReport`], some frames old. The GPU times
//! are measured by Bevy's
//! [`RenderDiagnosticsPlugin`](bevy::render::diagnostic::RenderDiagnosticsPlugin), which the app
//! adds.

#[cfg(feature = "overlay")]
mod overlay;

#[cfg(feature = "overlay")]
pub use overlay::{CullingOverlay, CullingOverlayPlugin, OverlayDetail};

use crate::render::{CpuStage, CullingReport, GpuCullingSystems, ViewKind, ViewReport};
use bevy::{
    diagnostic::{Diagnostic, DiagnosticPath, Diagnostics, DiagnosticsStore, RegisterDiagnostic},
    platform::time::Instant,
    prelude::*,
};

/// Number of instances of all sets that some view sees.
pub const INSTANCES: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/instances");
/// Number of instances that cameras keep, summed over cameras.
pub const VISIBLE: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/visible");
/// Number of instances that cameras reject, summed over cameras.
pub const CULLED: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/culled");
/// Number of instances that shadow views keep, summed over cascades, cube faces and spot lights.
pub const SHADOW_VISIBLE: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/shadow_visible");
/// Number of triangles of the instances that cameras keep, each at its level of detail, summed over
/// cameras. Instances that are drawn by meshlets count whole.
pub const TRIANGLES: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/triangles");
/// Same as [`TRIANGLES`], in shadow views.
pub const SHADOW_TRIANGLES: DiagnosticPath =
    DiagnosticPath::const_new("gpu_culling/shadow_triangles");
/// Number of instances that cameras draw first, summed over the cameras that hide instances.
/// Measured while there are such cameras, as are [`LATE`], [`HIDDEN`] and
/// [`TOO_SMALL`].
pub const EARLY: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/early");
/// Number of instances that these cameras draw once the depth of the first is known.
pub const LATE: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/late");
/// Number of instances in the frusta of these cameras that are hidden.
pub const HIDDEN: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/hidden");
/// Number of these that reach no sample of the picture.
pub const TOO_SMALL: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/too_small");
/// Number of views that test sets.
pub const VIEWS: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/views");
/// Number of bytes uploaded in a frame: instances, channels and tables.
pub const UPLOADED_BYTES: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/uploaded_bytes");
/// Number of bytes that the culling holds on the GPU.
pub const GPU_BYTES: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/gpu_bytes");
/// Number of compute passes of the culling in a frame. It does not depend on the number of views,
/// and is 0 without a set.
pub const PASSES: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/passes");
/// Number of dispatches in those passes.
pub const DISPATCHES: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/dispatches");
/// Number of draw calls of sets in a frame, in all views and passes.
pub const DRAW_CALLS: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/draw_calls");
/// CPU time of all systems of the plugin in a frame, in milliseconds.
pub const CPU_TOTAL: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/cpu/total");
/// CPU times of the stages of [`CPU_TOTAL`], in milliseconds.
pub const STAGE_CPU: [(CpuStage, DiagnosticPath); 7] = [
    (
        CpuStage::Main,
        DiagnosticPath::const_new("gpu_culling/cpu/main"),
    ),
    (
        CpuStage::Extract,
        DiagnosticPath::const_new("gpu_culling/cpu/extract"),
    ),
    (
        CpuStage::Materials,
        DiagnosticPath::const_new("gpu_culling/cpu/materials"),
    ),
    (
        CpuStage::Prepare,
        DiagnosticPath::const_new("gpu_culling/cpu/prepare"),
    ),
    (
        CpuStage::Record,
        DiagnosticPath::const_new("gpu_culling/cpu/record"),
    ),
    (
        CpuStage::Draw,
        DiagnosticPath::const_new("gpu_culling/cpu/draw"),
    ),
    (
        CpuStage::Finish,
        DiagnosticPath::const_new("gpu_culling/cpu/finish"),
    ),
];
/// GPU time of `classify`, in milliseconds.
pub const CLASSIFY_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/classify/elapsed_gpu");
/// GPU time of `vote`, in milliseconds.
pub const VOTE_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/vote/elapsed_gpu");
/// GPU time of `recall`, in milliseconds. It is measured in frames in which a view hides
/// instances.
pub const RECALL_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/recall/elapsed_gpu");
/// GPU time of `scan`, in milliseconds.
pub const SCAN_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/scan/elapsed_gpu");
/// GPU time of `compact`, in milliseconds.
pub const COMPACT_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/compact/elapsed_gpu");
/// GPU time of `args`, in milliseconds.
pub const ARGS_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/args/elapsed_gpu");
/// GPU time of `far_first`, in milliseconds. It is measured in frames in which a blended or
/// transmissive set is sorted.
pub const FAR_FIRST_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/far_first/elapsed_gpu");
/// GPU time of `occlude` in one view, with the depth pyramid and the late lists, in milliseconds.
/// It is measured in frames in which a view hides instances.
pub const OCCLUDE_GPU: DiagnosticPath =
    DiagnosticPath::const_new("render/gpu_culling/occlude/elapsed_gpu");
/// Number of meshlets of visible instances that cameras test.
pub const MESHLETS: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/meshlets");
/// Number of meshlets that cameras reject by the frustum.
pub const MESHLETS_CULLED_BY_FRUSTUM: DiagnosticPath =
    DiagnosticPath::const_new("gpu_culling/meshlets_culled_by_frustum");
/// Number of meshlets that cameras reject by the cone of their normals.
pub const MESHLETS_CULLED_BY_CONE: DiagnosticPath =
    DiagnosticPath::const_new("gpu_culling/meshlets_culled_by_cone");
/// Number of meshlets that cameras reject because what is drawn before them hides them.
pub const MESHLETS_CULLED_BY_OCCLUSION: DiagnosticPath =
    DiagnosticPath::const_new("gpu_culling/meshlets_culled_by_occlusion");
/// Number of triangles of the meshlets that cameras draw.
pub const MESHLET_TRIANGLES: DiagnosticPath =
    DiagnosticPath::const_new("gpu_culling/meshlet_triangles");
/// GPU times of the stages of meshlets, in milliseconds, with the stages' names. They are measured
/// in frames in which a set is drawn by meshlets.
pub const MESHLET_STAGE_GPU: [(&str, DiagnosticPath); 5] = [
    (
        "meshlet_expand",
        DiagnosticPath::const_new("render/gpu_culling/meshlet_expand/elapsed_gpu"),
    ),
    (
        "meshlet_vote",
        DiagnosticPath::const_new("render/gpu_culling/meshlet_vote/elapsed_gpu"),
    ),
    (
        "meshlet_scan",
        DiagnosticPath::const_new("render/gpu_culling/meshlet_scan/elapsed_gpu"),
    ),
    (
        "meshlet_compact",
        DiagnosticPath::const_new("render/gpu_culling/meshlet_compact/elapsed_gpu"),
    ),
    (
        "meshlet_args",
        DiagnosticPath::const_new("render/gpu_culling/meshlet_args/elapsed_gpu"),
    ),
];
/// GPU times of all stages, in milliseconds, with the stages' names. A compaction has only some of
/// them.
pub const STAGE_GPU: [(&str, DiagnosticPath); 8] = [
    ("classify", CLASSIFY_GPU),
    ("vote", VOTE_GPU),
    ("recall", RECALL_GPU),
    ("scan", SCAN_GPU),
    ("compact", COMPACT_GPU),
    ("args", ARGS_GPU),
    ("far_first", FAR_FIRST_GPU),
    ("occlude", OCCLUDE_GPU),
];

/// GPU time of all stages of the culling in a frame, in milliseconds: the sum of [`STAGE_GPU`] and
/// [`MESHLET_STAGE_GPU`], of all cameras.
pub const GPU_TOTAL: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/gpu/total");

/// Number of frames over which a diagnostic is averaged.
const HISTORY: usize = 60;

/// Registers the diagnostics, and measures them every frame.
pub(crate) fn register(app: &mut App) {
    for (path, suffix) in [
        (INSTANCES, ""),
        (VISIBLE, ""),
        (CULLED, ""),
        (SHADOW_VISIBLE, ""),
        (TRIANGLES, ""),
        (SHADOW_TRIANGLES, ""),
        (EARLY, ""),
        (LATE, ""),
        (HIDDEN, ""),
        (TOO_SMALL, ""),
        (VIEWS, ""),
        (UPLOADED_BYTES, " B"),
        (GPU_BYTES, " B"),
        (PASSES, ""),
        (DISPATCHES, ""),
        (DRAW_CALLS, ""),
        (CPU_TOTAL, " ms"),
        (GPU_TOTAL, " ms"),
        (MESHLETS, ""),
        (MESHLETS_CULLED_BY_FRUSTUM, ""),
        (MESHLETS_CULLED_BY_CONE, ""),
        (MESHLETS_CULLED_BY_OCCLUSION, ""),
        (MESHLET_TRIANGLES, ""),
    ]
    .into_iter()
    .chain(STAGE_CPU.map(|(_, path)| (path, " ms")))
    {
        app.register_diagnostic(
            Diagnostic::new(path)
                .with_suffix(suffix)
                .with_max_history_length(HISTORY),
        );
    }
    app.add_systems(PreUpdate, measure.after(GpuCullingSystems::Report));
}

/// When the newest GPU times of stages arrived; `None` without any. All times of a frame arrive
/// together.
fn newest_gpu_times(store: &DiagnosticsStore) -> Option<Instant> {
    let stages = STAGE_GPU.into_iter().chain(MESHLET_STAGE_GPU);
    let last = stages.filter_map(|(_, path)| Some(store.get(&path)?.measurement()?.time));
    last.max()
}

/// GPU time of a stage among those that arrived at a time, in milliseconds; `None` if the stage did
/// not run. A stage that ran for several cameras has several times.
fn time_in(store: &DiagnosticsStore, path: &DiagnosticPath, arrived: Instant) -> Option<f64> {
    let times = store.get(path)?.measurements();
    let times = times.filter(|one| one.time == arrived);
    times.map(|one| one.value).reduce(|sum, time| sum + time)
}

fn measure(
    report: Res<CullingReport>,
    store: Res<DiagnosticsStore>,
    mut diagnostics: Diagnostics,
    mut gpu_times: Local<Option<Instant>>,
) {
    let newest = newest_gpu_times(&store);
    if let Some(arrived) = newest
        && *gpu_times != newest
    {
        *gpu_times = newest;
        diagnostics.add_measurement(&GPU_TOTAL, || {
            let stages = STAGE_GPU.into_iter().chain(MESHLET_STAGE_GPU);
            let times = stages.filter_map(|(_, path)| time_in(&store, &path, arrived));
            times.sum()
        });
    }
    if report.tier.is_none() {
        return;
    }
    let (tested, visible) = report.cameras();
    diagnostics.add_measurement(&INSTANCES, || report.instances as f64);
    diagnostics.add_measurement(&VISIBLE, || visible as f64);
    diagnostics.add_measurement(&CULLED, || tested.saturating_sub(visible) as f64);
    diagnostics.add_measurement(&SHADOW_VISIBLE, || report.shadows().1 as f64);
    let triangles = |cameras: bool| {
        let views = report.views.iter();
        let wanted = views.filter(|view| (view.kind == ViewKind::Camera) == cameras);
        wanted.map(ViewReport::triangles).sum::<u64>() as f64
    };
    diagnostics.add_measurement(&TRIANGLES, || triangles(true));
    diagnostics.add_measurement(&SHADOW_TRIANGLES, || triangles(false));
    if let Some(lists) = report.camera_occlusion() {
        diagnostics.add_measurement(&EARLY, || lists.early as f64);
        diagnostics.add_measurement(&LATE, || lists.late as f64);
        diagnostics.add_measurement(&HIDDEN, || lists.hidden as f64);
        diagnostics.add_measurement(&TOO_SMALL, || lists.too_small as f64);
    }
    diagnostics.add_measurement(&VIEWS, || report.views.len() as f64);
    diagnostics.add_measurement(&UPLOADED_BYTES, || report.uploaded_bytes as f64);
    let meshlets = report.meshlets;
    diagnostics.add_measurement(&MESHLETS, || meshlets.tested as f64);
    diagnostics.add_measurement(&MESHLETS_CULLED_BY_FRUSTUM, || {
        meshlets.culled_by_frustum as f64
    });
    diagnostics.add_measurement(&MESHLETS_CULLED_BY_CONE, || meshlets.culled_by_cone as f64);
    diagnostics.add_measurement(&MESHLETS_CULLED_BY_OCCLUSION, || {
        meshlets.culled_by_occlusion as f64
    });
    diagnostics.add_measurement(&MESHLET_TRIANGLES, || meshlets.triangles as f64);
    diagnostics.add_measurement(&GPU_BYTES, || report.gpu_bytes as f64);
    diagnostics.add_measurement(&PASSES, || f64::from(report.passes));
    diagnostics.add_measurement(&DISPATCHES, || f64::from(report.dispatches));
    diagnostics.add_measurement(&DRAW_CALLS, || f64::from(report.draw_calls));
    diagnostics.add_measurement(&CPU_TOTAL, || report.cpu.total().as_secs_f64() * 1e3);
    for (stage, path) in &STAGE_CPU {
        diagnostics.add_measurement(path, || report.cpu.of(*stage).as_secs_f64() * 1e3);
    }
}
