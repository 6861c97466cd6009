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

use crate::render::{
    CpuStage, CullingReport, GpuCullingSystems, OcclusionReport, ViewKind, ViewReport,
};
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
/// them. `recall` and `occlude` (with the depth pyramid and the late lists of one view) run in
/// frames in which a view hides instances, `far_first` in frames in which a blended or transmissive
/// set is sorted.
pub const STAGE_GPU: [(&str, DiagnosticPath); 8] = [
    (
        "classify",
        DiagnosticPath::const_new("render/gpu_culling/classify/elapsed_gpu"),
    ),
    (
        "vote",
        DiagnosticPath::const_new("render/gpu_culling/vote/elapsed_gpu"),
    ),
    (
        "recall",
        DiagnosticPath::const_new("render/gpu_culling/recall/elapsed_gpu"),
    ),
    (
        "scan",
        DiagnosticPath::const_new("render/gpu_culling/scan/elapsed_gpu"),
    ),
    (
        "compact",
        DiagnosticPath::const_new("render/gpu_culling/compact/elapsed_gpu"),
    ),
    (
        "args",
        DiagnosticPath::const_new("render/gpu_culling/args/elapsed_gpu"),
    ),
    (
        "far_first",
        DiagnosticPath::const_new("render/gpu_culling/far_first/elapsed_gpu"),
    ),
    (
        "occlude",
        DiagnosticPath::const_new("render/gpu_culling/occlude/elapsed_gpu"),
    ),
];

/// GPU time of all stages of the culling in a frame, in milliseconds: the sum of [`STAGE_GPU`] and
/// [`MESHLET_STAGE_GPU`], of all cameras.
pub const GPU_TOTAL: DiagnosticPath = DiagnosticPath::const_new("gpu_culling/gpu/total");

/// Number of frames over which a diagnostic is averaged.
const HISTORY: usize = 60;

/// A counter of [`CullingReport`] as a diagnostic, and as a row of the overlay.
struct Counter {
    path: DiagnosticPath,
    suffix: &'static str,
    value: fn(&CullingReport) -> f64,
    /// Frames that have it.
    #[cfg_attr(not(feature = "overlay"), allow(dead_code, reason = "for the overlay"))]
    applies: Applies,
    /// Whether only the full overlay shows it.
    #[cfg_attr(not(feature = "overlay"), allow(dead_code, reason = "for the overlay"))]
    is_detail: bool,
}

/// Frames in which the overlay shows a counter.
#[derive(Clone, Copy, PartialEq)]
enum Applies {
    Always,
    Never,
    InCameras,
    InShadows,
    IfHiding,
    ByMeshlets,
    ByMeshletsIfHiding,
    IfUploading,
    IfCulling,
}

const fn counter(
    path: DiagnosticPath,
    suffix: &'static str,
    applies: Applies,
    is_detail: bool,
    value: fn(&CullingReport) -> f64,
) -> Counter {
    Counter {
        path,
        suffix,
        value,
        applies,
        is_detail,
    }
}

/// All counters, in the order of the overlay. A new one is a field of the report and a line here.
#[rustfmt::skip]
static COUNTERS: [Counter; 21] = [
    counter(INSTANCES, "", Applies::Always, true, |report| report.instances as f64),
    counter(VIEWS, "", Applies::Always, true, |report| report.views.len() as f64),
    counter(VISIBLE, "", Applies::InCameras, false, |report| report.cameras().1 as f64),
    counter(CULLED, "", Applies::Never, true, |report| {
        let (tested, visible) = report.cameras();
        tested.saturating_sub(visible) as f64
    }),
    counter(EARLY, "", Applies::IfHiding, true, |report| of_lists(report, |lists| lists.early)),
    counter(LATE, "", Applies::IfHiding, true, |report| of_lists(report, |lists| lists.late)),
    counter(HIDDEN, "", Applies::IfHiding, true, |report| of_lists(report, |lists| lists.hidden)),
    counter(TOO_SMALL, "", Applies::IfHiding, true, |report| of_lists(report, |lists| lists.too_small)),
    counter(TRIANGLES, "", Applies::InCameras, false, |report| triangles(report, true)),
    counter(SHADOW_VISIBLE, "", Applies::InShadows, false, |report| report.shadows().1 as f64),
    counter(SHADOW_TRIANGLES, "", Applies::InShadows, true, |report| triangles(report, false)),
    counter(MESHLETS, "", Applies::ByMeshlets, true, |report| report.meshlets.tested as f64),
    counter(MESHLETS_CULLED_BY_FRUSTUM, "", Applies::ByMeshlets, true, |report| report.meshlets.culled_by_frustum as f64),
    counter(MESHLETS_CULLED_BY_CONE, "", Applies::ByMeshlets, true, |report| report.meshlets.culled_by_cone as f64),
    counter(MESHLETS_CULLED_BY_OCCLUSION, "", Applies::ByMeshletsIfHiding, true, |report| report.meshlets.culled_by_occlusion as f64),
    counter(MESHLET_TRIANGLES, "", Applies::ByMeshlets, true, |report| report.meshlets.triangles as f64),
    counter(UPLOADED_BYTES, " B", Applies::IfUploading, true, |report| report.uploaded_bytes as f64),
    counter(GPU_BYTES, " B", Applies::Always, true, |report| report.gpu_bytes as f64),
    counter(PASSES, "", Applies::IfCulling, true, |report| f64::from(report.passes)),
    counter(DISPATCHES, "", Applies::IfCulling, true, |report| f64::from(report.dispatches)),
    counter(DRAW_CALLS, "", Applies::IfCulling, true, |report| f64::from(report.draw_calls)),
];

/// A sum over the cameras that hide instances.
fn of_lists(report: &CullingReport, count: fn(&OcclusionReport) -> u64) -> f64 {
    report.camera_occlusion().map_or(0, |lists| count(&lists)) as f64
}

/// Triangles in cameras, or in shadow views.
fn triangles(report: &CullingReport, in_cameras: bool) -> f64 {
    let views = report.views.iter();
    let wanted = views.filter(|view| (view.kind == ViewKind::Camera) == in_cameras);
    wanted.map(ViewReport::triangles).sum::<u64>() as f64
}

/// Registers the diagnostics, and measures them every frame.
pub(crate) fn register(app: &mut App) {
    let counters = COUNTERS.iter();
    let counters = counters.map(|counter| (counter.path.clone(), counter.suffix));
    let times = [CPU_TOTAL, GPU_TOTAL].into_iter();
    let times = times.chain(STAGE_CPU.map(|(_, path)| path));
    for (path, suffix) in counters.chain(times.map(|path| (path, " ms"))) {
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
    let hides = report.camera_occlusion().is_some();
    for counter in &COUNTERS {
        if hides || counter.applies != Applies::IfHiding {
            diagnostics.add_measurement(&counter.path, || (counter.value)(&report));
        }
    }
    diagnostics.add_measurement(&CPU_TOTAL, || report.cpu.total().as_secs_f64() * 1e3);
    for (stage, path) in &STAGE_CPU {
        diagnostics.add_measurement(path, || report.cpu.of(*stage).as_secs_f64() * 1e3);
    }
}
