//! What the culling did, on its way from the GPU to the main world.

use super::{
    cpu_times::{CpuClock, CpuStage, CpuTimes},
    culler::GpuCuller,
    expanded::ExpandedUniforms,
    history::FrameView,
    meshlets::GpuMeshlets,
    set_draws::SetDraws,
    views::ViewKind,
};
use crate::cull::{Compaction, CullingTier, FrameCounts, Refusal, meshlets::MeshletCounts};
use bevy::{
    log::{warn, warn_once},
    platform::collections::HashMap,
    prelude::*,
    render::{renderer::RenderDevice, sync_world::MainEntity, view::RetainedViewEntity},
};
use std::sync::{Arc, Mutex};

/// What the culling did, some frames ago: read back from the GPU without waiting for it, in every fourth frame while sets and views
/// are the same ([`Culler::wants_counts`](crate::cull::Culler::wants_counts)).
#[derive(Resource, Clone, Debug, Default)]
pub struct CullingReport {
    /// The tier in use; `None` before the renderer has started, or when the device cannot cull.
    pub tier: Option<CullingTier>,
    /// The compaction in use; never [`Compaction::Auto`].
    pub compaction: Compaction,
    /// Instances of all sets that some view saw.
    pub instances: u64,
    /// Each view.
    pub views: Vec<ViewReport>,
    /// Bytes uploaded in the last frame: instances, channels, tables.
    pub uploaded_bytes: u64,
    /// Bytes that instances, words and survivors take on the GPU.
    pub gpu_bytes: u64,
    /// Survivors that found no room in that frame.
    pub overflow: u64,
    /// Time of the plugin's systems on the CPU in the last frame.
    pub cpu: CpuTimes,
    /// Compute passes of the culling in the last frame, those of meshlets apart: as many with one view as with a hundred,
    /// none without a set.
    pub passes: u32,
    /// Dispatches in those passes.
    pub dispatches: u32,
    /// Meshlets in the views of cameras.
    pub meshlets: MeshletReport,
    /// Meshlets in shadow views.
    pub shadow_meshlets: MeshletReport,
}

/// Counters of the sets that are drawn by meshlets ([`MeshletMesh3d`](crate::render::MeshletMesh3d)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshletReport {
    /// Meshlets of visible instances that were tested.
    pub tested: u64,
    /// Culled by the frustum, or a light's range.
    pub culled_by_frustum: u64,
    /// Culled because all their triangles face away.
    pub culled_by_cone: u64,
    /// Drawn.
    pub drawn: u64,
    /// Triangles drawn: exactly those of the meshlets drawn.
    pub triangles: u64,
    /// Triangles that the visible instances have.
    pub whole_triangles: u64,
    /// Rows (a view of a set) that were drawn whole for want of room; the room grows.
    pub rows_drawn_whole: u64,
}

/// Counters of one view.
#[derive(Clone, Debug)]
pub struct ViewReport {
    /// The camera or light in the main world.
    pub entity: MainEntity,
    /// What kind of view it is.
    pub kind: ViewKind,
    /// `camera`, or the shadow pass's name.
    pub name: String,
    /// Instances tested.
    pub tested: u64,
    /// Instances kept.
    pub visible: u64,
}

impl CullingReport {
    /// Instances tested and kept by cameras.
    #[must_use]
    pub fn cameras(&self) -> (u64, u64) {
        self.sum(|kind| kind == ViewKind::Camera)
    }

    /// Instances tested and kept by shadow views.
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
}

/// The newest report, on its way between the worlds.
#[derive(Resource, Clone, Default)]
pub(super) struct ReportInbox(Arc<Mutex<Option<CullingReport>>>);

/// After the submit: asks for this frame's counters and sends the newest that have arrived.
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
    mut uniforms: ResMut<ExpandedUniforms>,
    mut last: Local<CullingReport>,
    clock: Res<CpuClock>,
) {
    let running = clock.start(CpuStage::Finish);
    let (tier, recorded) = (gpu.tier(), core::mem::take(&mut gpu.recorded));
    let Some(culler) = &mut gpu.culler else {
        return;
    };
    let (passes, dispatches) = (recorded.passes, recorded.dispatches);
    culler.finish(recorded);
    for Refusal { error, requests } in culler.take_refusals() {
        let entities: Vec<_> = requests
            .into_iter()
            .filter_map(Entity::try_from_bits)
            .collect();
        match entities[..] {
            [] => warn!("GPU culling: {error}"),
            _ => {
                // A page may have a hundred thousand small sets.
                let named: Vec<_> = entities.iter().take(8).map(Entity::to_string).collect();
                let more = match entities.len() - named.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                error!(
                    "GpuInstances on {}{more} are not drawn: {error}. They are tried again every 120 frames",
                    named.join(", ")
                );
            }
        }
    }
    if let Some(counts) = culler.take_counts(device.wgpu_device()) {
        if counts.overflow > 0 {
            warn!(
                "{} visible instances did not fit and were not drawn for a few frames: the lists grow. Set \
                 GpuCullingPlugin::survivor_capacity to at least {} to have room from the start",
                counts.overflow,
                counts.overflow
                    + counts
                        .rows
                        .iter()
                        .map(|row| u64::from(row.visible))
                        .sum::<u64>()
            );
        }
        // They are of an earlier frame, which may have had other views.
        if let Some(views) = draws.history.views(counts.frame) {
            uniforms.learn(&counts, views);
            fill(&mut last, &counts, views);
        }
    } else if draws.frame.requests.is_empty() {
        last.views.clear();
        last.instances = 0;
    }
    if let Some(parts) = &mut meshlets.culler {
        parts.finish();
        for error in parts.take_errors() {
            warn!("meshes of meshlets are drawn whole: {error}");
        }
        if let Some(counts) = parts.take_counts() {
            if let Some(views) = draws.history.views(counts.frame) {
                fill_meshlets(&mut last, &counts, views);
            }
        } else if !parts.has_gpu_work() {
            (last.meshlets, last.shadow_meshlets) = Default::default();
        }
        last.gpu_bytes = parts.gpu_bytes();
        last.uploaded_bytes = parts.take_uploaded();
    } else {
        (last.gpu_bytes, last.uploaded_bytes) = (0, 0);
        (last.meshlets, last.shadow_meshlets) = Default::default();
    }
    last.tier = tier;
    last.compaction = culler.compaction();
    last.uploaded_bytes += culler.take_uploaded();
    last.gpu_bytes += culler.gpu_bytes();
    (last.passes, last.dispatches) = (passes, dispatches);
    drop(running);
    last.cpu = clock.take();
    match inbox.0.lock() {
        Ok(mut inbox) => *inbox = Some(last.clone()),
        Err(_) => warn_once!("the culling report is lost: a thread panicked while it held it"),
    }
}

/// Counters, with the names of the views of their frame.
fn fill(report: &mut CullingReport, counts: &FrameCounts, views: &[FrameView]) {
    report.overflow = counts.overflow;
    report.views.clear();
    // Tested and kept by each view; `None` where no row is of the view.
    let mut sums: Vec<Option<(u64, u64)>> = vec![None; views.len()];
    // Each set once, however many views tested it: a row for each of its chunks in the view that saw it first.
    let mut first_view: HashMap<u64, u32> = HashMap::new();
    report.instances = 0;
    for row in &counts.rows {
        if let Some(sum) = sums.get_mut(row.view as usize) {
            let (tested, visible) = sum.get_or_insert_default();
            *tested += u64::from(row.tested);
            *visible += u64::from(row.visible);
        }
        if *first_view.entry(row.request).or_insert(row.view) == row.view {
            report.instances += u64::from(row.tested);
        }
    }
    let mut keys: Vec<RetainedViewEntity> = Vec::new();
    for ((key, kind, name), sum) in views.iter().zip(sums) {
        let Some((tested, visible)) = sum else {
            continue;
        };
        // A view comes a second time for sets without frustum culling.
        let known = keys.iter().position(|known| known == key);
        if let Some(view) = known.and_then(|known| report.views.get_mut(known)) {
            view.tested += tested;
            view.visible += visible;
            continue;
        }
        keys.push(*key);
        let name = if *kind == ViewKind::Camera {
            "camera".to_owned()
        } else {
            name.clone()
        };
        report.views.push(ViewReport {
            entity: key.main_entity,
            kind: *kind,
            name,
            tested,
            visible,
        });
    }
}

/// Counters of meshlets, cameras and shadow views apart.
fn fill_meshlets(report: &mut CullingReport, counts: &MeshletCounts, views: &[FrameView]) {
    (report.meshlets, report.shadow_meshlets) = Default::default();
    for row in &counts.rows {
        let Some((_, kind, _)) = views.get(row.view as usize) else {
            continue;
        };
        let sum = if *kind == ViewKind::Camera {
            &mut report.meshlets
        } else {
            &mut report.shadow_meshlets
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

/// Puts the newest report where users find it.
pub(super) fn receive_report(
    inbox: Res<ReportInbox>,
    mut report: ResMut<CullingReport>,
    clock: Res<CpuClock>,
) {
    let _running = clock.start(CpuStage::Main);
    if let Ok(mut inbox) = inbox.0.lock()
        && let Some(newest) = inbox.take()
    {
        *report = newest;
    }
}
