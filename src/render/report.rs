//! The report of what the culling did, on its way from the GPU to the main world.

use super::{
    cpu_times::{CpuClock, CpuStage, CpuTimes},
    culler::GpuCuller,
    expanded::ExpandedUniforms,
    meshlets::GpuMeshlets,
    set_draws::SetDraws,
    views::{FrameView, ViewKind, view_at},
};
use crate::cull::{
    Compaction, CullingTier, DrawList, FrameCounts, Refusal, RowCount,
    meshlets::{MeshletCounts, MeshletCuller, MeshletExpansion},
    policy::RETRY_AFTER,
};
use bevy::{
    log::{warn, warn_once},
    platform::collections::{HashMap, HashSet},
    prelude::*,
    render::{renderer::RenderDevice, sync_world::MainEntity, view::RetainedViewEntity},
};
use std::sync::{Arc, Mutex};

/// What the culling did some frames ago.
///
/// The counters are read back from the GPU without waiting for it: in every fourth frame while sets
/// and views stay the same ([`Culler::wants_counts`](crate::cull::Culler::wants_counts)).
#[derive(Resource, Reflect, Clone, Debug, Default)]
#[reflect(Resource, Clone, Debug, Default)]
pub struct CullingReport {
    /// The tier in use; `None` before the renderer has started, and if the device cannot cull.
    pub tier: Option<CullingTier>,
    /// The compaction in use; never [`Compaction::Auto`].
    pub compaction: Compaction,
    /// Number of instances of all sets that some view sees. Instances that several
    /// entities test together count once.
    pub instances: u64,
    /// The counters of each view.
    pub views: Vec<ViewReport>,
    /// Bytes uploaded in the last frame: instances, channels and tables.
    pub uploaded_bytes: u64,
    /// Bytes that the culling holds on the GPU: instances, visibility words, survivors.
    pub gpu_bytes: u64,
    /// Number of survivors that did not fit in the counters' frame, and were not drawn.
    pub overflow: u64,
    /// CPU time of the plugin's systems in the last frame.
    pub cpu: CpuTimes,
    /// Number of compute passes of the culling in the last frame, without the passes of meshlets: 0
    /// without a set, one per stage, and one per camera that hides instances.
    pub passes: u32,
    /// Number of dispatches in those passes.
    pub dispatches: u32,
    /// How instances are expanded to meshlets; never [`MeshletExpansion::Auto`]. If that differs
    /// between sets, the one that is not the division. `None` without sets drawn by meshlets.
    pub expansion: Option<MeshletExpansion>,
    /// Meshlets in the views of cameras.
    pub meshlets: MeshletReport,
    /// Meshlets in shadow views.
    pub shadow_meshlets: MeshletReport,
}

/// Counters of the sets that are drawn by meshlets
/// ([`MeshletMesh3d`](crate::render::MeshletMesh3d)).
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct MeshletReport {
    /// Number of meshlets of visible instances that were tested.
    pub tested: u64,
    /// Number of meshlets rejected by the frustum, or by a light's range.
    pub culled_by_frustum: u64,
    /// Number of meshlets rejected because all their triangles face away.
    pub culled_by_cone: u64,
    /// Number of meshlets drawn.
    pub drawn: u64,
    /// Number of triangles of the meshlets drawn.
    pub triangles: u64,
    /// Number of triangles of the visible instances.
    pub whole_triangles: u64,
    /// Number of rows (a view of a chunk of a set) that were drawn whole, because their meshlets
    /// did not fit. The buffers grow.
    pub rows_drawn_whole: u64,
}

/// Counters of one view.
#[derive(Reflect, Clone, Debug)]
#[reflect(Clone, Debug)]
pub struct ViewReport {
    /// The camera or light in the main world.
    pub entity: MainEntity,
    /// The kind of the view.
    pub kind: ViewKind,
    /// `camera`, or the shadow pass's name.
    pub name: String,
    /// Number of instances tested. Entities that share a set and a transform are tested together:
    /// their instances count once.
    pub tested: u64,
    /// Number of instances drawn in the main pass. One that fades between two levels of detail
    /// counts twice; one that several entities draw together counts once.
    pub visible: u64,
    /// The lists of a camera that hides instances
    /// ([`InstanceOcclusion`](crate::render::InstanceOcclusion)); `None` in other views, and until
    /// the counters have arrived.
    pub occlusion: Option<OcclusionReport>,
    /// What was kept at each level of detail, the full mesh first. Sets without levels are drawn at
    /// the first.
    pub levels: Vec<LevelReport>,
}

/// Counters of a camera that hides instances.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct OcclusionReport {
    /// Number of instances drawn first: those that the camera saw in the frame before, and those
    /// that are large.
    pub early: u64,
    /// Number of instances that were visible but not drawn first.
    pub late: u64,
}

/// Counters of one level of detail of a view.
#[derive(Reflect, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[reflect(Clone, Debug, Default, PartialEq)]
pub struct LevelReport {
    /// Number of instances kept.
    pub visible: u64,
    /// Number of their triangles, of all entities that draw them, if meshes are lists of
    /// triangles. Instances that are drawn by meshlets count whole; [`MeshletReport`] says what is
    /// drawn of them.
    pub triangles: u64,
}

impl ViewReport {
    /// Number of triangles of all instances kept.
    #[must_use]
    pub fn triangles(&self) -> u64 {
        self.levels.iter().map(|level| level.triangles).sum()
    }
}

impl CullingReport {
    /// Numbers of instances tested and kept, summed over cameras.
    #[must_use]
    pub fn cameras(&self) -> (u64, u64) {
        self.sum(|kind| kind == ViewKind::Camera)
    }

    /// Numbers of instances tested and kept, summed over shadow views.
    #[must_use]
    pub fn shadows(&self) -> (u64, u64) {
        self.sum(|kind| kind != ViewKind::Camera)
    }

    fn sum(&self, which: impl Fn(ViewKind) -> bool) -> (u64, u64) {
        let views = self.views.iter().filter(|view| which(view.kind));
        views.fold((0, 0), |(tested, visible), view| {
            (tested + view.tested, visible + view.visible)
        })
    }

    /// Takes the counters of an earlier frame with these views.
    fn take_counts(&mut self, counts: &FrameCounts, late: &LateCounts, views: &[FrameView]) {
        self.overflow = counts.overflow;
        self.instances = 0;
        /// Instances of a view.
        #[derive(Clone, Default)]
        struct Sum {
            tested: u64,
            visible: u64,
            occlusion: Option<OcclusionReport>,
            levels: Vec<LevelReport>,
        }
        // `None` for a view that tested no set. A view that comes once more, for sets without
        // frustum culling, is the same view.
        let mut sums: Vec<Option<Sum>> = vec![None; views.len()];
        // A set's instances count once, however many views test them: in the rows of the first.
        let mut first_view: HashMap<u64, u32> = HashMap::new();
        for row in &counts.rows {
            if *first_view.entry(row.request).or_insert(row.view) == row.view {
                self.instances += u64::from(row.tested);
            }
        }
        // Counters of a camera that no longer hides are stale.
        let early = counts.rows.iter().filter(|row| row.list == DrawList::Early);
        let hiding: HashSet<u32> = early.map(|row| row.view).collect();
        let mut late_rows = late.rows(views);
        late_rows.retain(|row| hiding.contains(&row.view));
        for row in counts.rows.iter().chain(&late_rows) {
            if !views.is_empty() {
                let sum = sums[row.view as usize % views.len()].get_or_insert_default();
                sum.tested += u64::from(row.tested);
                let kept = u64::from(row.visible);
                match row.list {
                    DrawList::Early => sum.occlusion.get_or_insert_default().early += kept,
                    DrawList::Late => sum.occlusion.get_or_insert_default().late += kept,
                    DrawList::Kept | DrawList::Visible => sum.visible += kept,
                }
                if [DrawList::Early, DrawList::Late].contains(&row.list) {
                    continue;
                }
                let level = row.level as usize;
                if sum.levels.len() <= level {
                    sum.levels.resize(level + 1, LevelReport::default());
                }
                sum.levels[level].visible += u64::from(row.visible);
                sum.levels[level].triangles +=
                    u64::from(row.visible) * u64::from(row.element_count / 3);
            }
        }
        self.views.clear();
        for (view, sum) in views.iter().zip(sums) {
            let Some(Sum {
                tested,
                visible,
                occlusion,
                levels,
            }) = sum
            else {
                continue;
            };
            self.views.push(ViewReport {
                entity: view.key.main_entity,
                kind: view.kind,
                name: view.display_name(),
                tested,
                visible,
                occlusion,
                levels,
            });
        }
    }

    /// Takes the counters of meshlets of an earlier frame with these views.
    fn take_meshlet_counts(&mut self, counts: &MeshletCounts, views: &[FrameView]) {
        self.clear_meshlets();
        // A view that hides draws what is early and late, unless it draws what is visible.
        let visible = counts
            .rows
            .iter()
            .filter(|row| row.list == DrawList::Visible);
        let visible: HashSet<u32> = visible.map(|row| row.view).collect();
        for row in &counts.rows {
            let is_twice = [DrawList::Early, DrawList::Late].contains(&row.list);
            if is_twice && visible.contains(&row.view) {
                continue;
            }
            let Some(view) = view_at(views, row.view) else {
                continue;
            };
            let sum = if view.kind == ViewKind::Camera {
                &mut self.meshlets
            } else {
                &mut self.shadow_meshlets
            };
            sum.tested += row.tested;
            sum.culled_by_frustum += row.outside;
            sum.culled_by_cone += row.facing_away;
            sum.drawn += row.visible;
            sum.triangles += row.triangles;
            sum.whole_triangles += row.whole_triangles;
            sum.rows_drawn_whole += u64::from(row.whole);
        }
    }

    fn clear_meshlets(&mut self) {
        self.meshlets = MeshletReport::default();
        self.shadow_meshlets = MeshletReport::default();
    }
}

/// The newest counters of the late lists of each camera: they arrive by themselves.
#[derive(Default)]
pub(super) struct LateCounts(HashMap<RetainedViewEntity, Vec<RowCount>>);

impl LateCounts {
    /// Takes the counters of an earlier frame with these views.
    fn take(&mut self, counts: FrameCounts, views: &[FrameView]) {
        let view = counts.rows.first().and_then(|row| view_at(views, row.view));
        if let Some(view) = view {
            self.0.insert(view.key, counts.rows);
        }
    }

    /// The rows of these views, with their indices.
    fn rows(&self, views: &[FrameView]) -> Vec<RowCount> {
        let all = (0..).zip(views);
        let late = all.filter_map(|(view, of)| Some((view, self.0.get(&of.key)?)));
        late.flat_map(|(view, rows)| rows.iter().map(move |row| RowCount { view, ..*row }))
            .collect()
    }
}

/// The newest report, on its way between the worlds.
#[derive(Resource, Clone, Default)]
pub(super) struct ReportInbox(Arc<Mutex<Option<CullingReport>>>);

/// After the submit: asks for this frame's counters, and sends a report with the newest that have
/// arrived.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(super) fn finish_culling(
    mut gpu: ResMut<GpuCuller>,
    mut meshlets: ResMut<GpuMeshlets>,
    draws: Res<SetDraws>,
    device: Res<RenderDevice>,
    inbox: Res<ReportInbox>,
    mut expanded: ResMut<ExpandedUniforms>,
    (mut report, mut late): (Local<CullingReport>, Local<LateCounts>),
    clock: Res<CpuClock>,
    mut told_overflow: Local<u64>,
) {
    let timer = clock.start(CpuStage::Finish);
    let (tier, recorded) = (gpu.tier(), core::mem::take(&mut gpu.recorded));
    let (passes, dispatches) = (recorded.passes, recorded.dispatches);
    let Some(culler) = &mut gpu.culler else {
        return;
    };
    culler.finish(recorded);
    for refusal in culler.take_refusals() {
        log_refusal(refusal, &draws);
    }
    let mut late_overflow = 0;
    for counts in culler.take_late_counts(device.wgpu_device()) {
        late_overflow += counts.overflow;
        if counts.overflow > *told_overflow {
            *told_overflow = counts.overflow;
            log_overflow(&counts);
        }
        if let Some(views) = draws.history.views(counts.frame) {
            late.take(counts, views);
        }
    }
    if draws.occlusion.is_empty() {
        late.0.clear();
    }
    if let Some(counts) = culler.take_counts(device.wgpu_device()) {
        // Once, and again if more is lost.
        if counts.overflow > *told_overflow {
            *told_overflow = counts.overflow;
            log_overflow(&counts);
        }
        // Their frame may have had other views than this one.
        if let Some(views) = draws.history.views(counts.frame) {
            expanded.learn(&counts, views);
            report.take_counts(&counts, &late, views);
            report.overflow += late_overflow;
        }
    } else if draws.frame.requests.is_empty() {
        report.views.clear();
        report.instances = 0;
    }
    report.tier = tier;
    report.compaction = culler.compaction();
    report.uploaded_bytes = culler.take_uploaded();
    report.gpu_bytes = culler.gpu_bytes();
    report.passes = passes;
    report.dispatches = dispatches;
    match &mut meshlets.culler {
        Some(parts) => finish_meshlets(parts, &draws, &mut report),
        None => {
            report.expansion = None;
            report.clear_meshlets();
        }
    }
    drop(timer);
    report.cpu = clock.take();
    match inbox.0.lock() {
        Ok(mut inbox) => *inbox = Some(report.clone()),
        Err(_) => warn_once!("the culling report is lost: a thread panicked while it held it"),
    }
}

/// As [`finish_culling`], for the stages of meshlets.
fn finish_meshlets(parts: &mut MeshletCuller, draws: &SetDraws, report: &mut CullingReport) {
    parts.finish();
    for error in parts.take_errors() {
        warn!("meshes of meshlets are drawn whole: {error}");
    }
    for note in parts.take_notes() {
        match parts.asked_expansion() {
            MeshletExpansion::By(_) => warn!("GpuCullingPlugin::expansion: {note}"),
            _ => info!("{note}"),
        }
    }
    report.expansion = parts.expansion();
    if let Some(counts) = parts.take_counts() {
        if let Some(views) = draws.history.views(counts.frame) {
            report.take_meshlet_counts(&counts, views);
        }
    } else if !parts.has_gpu_work() {
        report.clear_meshlets();
    }
    report.gpu_bytes += parts.gpu_bytes();
    report.uploaded_bytes += parts.take_uploaded();
}

/// Number of entities that a message names: a page may have a hundred thousand small sets.
const NAMED: usize = 8;

/// Logs what the engine could not do, with the entities that are not drawn for it.
fn log_refusal(Refusal { error, requests }: Refusal, draws: &SetDraws) {
    let requests = requests.into_iter().collect();
    let entities: Vec<_> = draws
        .entities_of(&requests)
        .map(|entity| entity.id())
        .collect();
    if entities.is_empty() {
        warn!("GPU culling: {error}");
        return;
    }
    let named: Vec<_> = entities.iter().take(NAMED).map(Entity::to_string).collect();
    let more = match entities.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    error!(
        "GpuInstances on {}{more} are not drawn: {error}. They are tried again every {RETRY_AFTER} frames",
        named.join(", ")
    );
}

/// Warns of survivors that did not fit.
fn log_overflow(counts: &FrameCounts) {
    let needed = counts.needed.iter().map(|(_, needed)| *needed).max();
    warn!(
        "{} visible instances did not fit into the lists of survivors and are not drawn until the \
         lists have grown, within some frames; they grow to what one binding of the device holds. \
         Set GpuCullingPlugin::survivor_capacity to at least {} to have room from the start",
        counts.overflow,
        needed.unwrap_or(0)
    );
}

/// Publishes the newest report in the main world.
pub(super) fn receive_report(
    inbox: Res<ReportInbox>,
    mut report: ResMut<CullingReport>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    if let Ok(mut inbox) = inbox.0.lock()
        && let Some(newest) = inbox.take()
    {
        *report = newest;
    }
}
