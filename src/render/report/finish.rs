//! The report on its way to the main world, and what the log says of a frame.

use super::{
    content::{CullingReport, FrameWork, ViewReport},
    counts::{CountSums, LateCounts},
    sets::SetReport,
};
use crate::{
    cull::{
        FrameCounts, Missing, Refusal,
        meshlets::{MeshletCounts, MeshletCuller, MeshletExpansion},
        policy::RETRY_AFTER,
    },
    render::{
        batch_sets::BatchSets,
        cpu_times::{CpuClock, CpuStage},
        culler::GpuCuller,
        draw_slots::DrawSlots,
        expanded::ExpandedUniforms,
        materials::MaterialAliases,
        meshlets::GpuMeshlets,
        names::entity_names,
        occlusion::OcclusionPauses,
        scatter::ScatterFills,
        set_draws::SetDraws,
        views::index_of_view,
    },
};
use bevy::{
    log::{warn, warn_once},
    prelude::*,
    render::renderer::RenderDevice,
};
use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// The newest report, on its way between the worlds.
#[derive(Resource, Clone, Default)]
pub(in crate::render) struct ReportInbox(Arc<Mutex<Inbox>>);

#[derive(Default)]
struct Inbox {
    sent: Option<SentReport>,
    /// Lists that the main world has replaced. The next report uses their memory.
    spare: ReportLists,
}

/// A report without its lists.
struct SentReport {
    report: CullingReport,
    /// The lists, if counters have arrived.
    lists: Option<ReportLists>,
}

/// The lists of a report. They may be of ten thousand sets, so they are moved between the worlds,
/// and never copied.
#[derive(Default)]
struct ReportLists {
    views: Vec<ViewReport>,
    sets: Vec<SetReport>,
}

impl ReportLists {
    fn swap(&mut self, report: &mut CullingReport) {
        core::mem::swap(&mut self.views, &mut report.views);
        core::mem::swap(&mut self.sets, &mut report.sets);
    }
}

impl ReportInbox {
    /// Replaces a report that was not received. Its lists stay if the report `has_lists` that are
    /// newer; other lists are left in the report for them.
    fn send(&self, report: &mut CullingReport, has_lists: bool) {
        match self.0.lock() {
            Ok(mut inbox) => {
                let missed = inbox.sent.take().and_then(|missed| missed.lists);
                let mut own = ReportLists::default();
                own.swap(report);
                let sent = report.clone();
                let (lists, left) = match (has_lists, missed) {
                    (true, missed) => {
                        let spare = || core::mem::take(&mut inbox.spare);
                        (Some(own), missed.unwrap_or_else(spare))
                    }
                    (false, missed) => (missed, own),
                };
                (report.views, report.sets) = (left.views, left.sets);
                inbox.sent = Some(SentReport {
                    report: sent,
                    lists,
                });
            }
            Err(_) => warn_once!("the culling report is lost: a thread panicked while it held it"),
        }
    }
}

/// What is kept from frame to frame, with lists that are used again.
#[derive(Default)]
pub(in crate::render) struct ReportState {
    report: CullingReport,
    counts: FrameCounts,
    late: LateCounts,
    meshlet_counts: MeshletCounts,
    sums: CountSums,
}

/// After the submit: asks for this frame's counters, and sends a report with the newest that have
/// arrived.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn finish_culling(
    mut culling: ResMut<GpuCuller>,
    mut meshlets: ResMut<GpuMeshlets>,
    draws: Res<SetDraws>,
    device: Res<RenderDevice>,
    inbox: Res<ReportInbox>,
    mut expanded: ResMut<ExpandedUniforms>,
    aliases: Res<MaterialAliases>,
    (mut slots, mut batch_sets, mut pauses): (
        ResMut<DrawSlots>,
        ResMut<BatchSets>,
        ResMut<OcclusionPauses>,
    ),
    mut scatters: ResMut<ScatterFills>,
    mut state: Local<ReportState>,
    clock: Res<CpuClock>,
    (mut told_overflow, mut waited): (Local<u64>, Local<bool>),
) {
    let timer = clock.start(CpuStage::Finish);
    let ReportState {
        report,
        counts,
        late,
        meshlet_counts,
        sums,
    } = &mut *state;
    let (tier, recorded) = (culling.tier(), core::mem::take(&mut culling.recorded));
    let (passes, dispatches) = (recorded.passes, recorded.dispatches);
    let entities_read = culling.extraction.lists.entities_read;
    let Some(culler) = &mut culling.culler else {
        // The last report is of a device that is gone, or of settings that were refused.
        drop(timer);
        *report = CullingReport {
            cpu: clock.take(),
            ..default()
        };
        inbox.send(report, true);
        return;
    };
    culler.finish(recorded);
    let refusals = culler.take_refusals();
    for (at, refusal) in refusals.iter().enumerate() {
        // Several batches or views may lack the same.
        if !refusals[..at].contains(refusal) {
            log_refusal(refusal, &draws);
        }
    }
    let mut late_overflow = 0;
    let mut has_lists = false;
    let arrived = culler.swap_counts(device.wgpu_device(), counts);
    // The counters of a frame are answered in this order, by any thread: the late lists' may follow
    // in the next frame.
    culler.take_late_counts(device.wgpu_device(), |counts| {
        late_overflow += counts.overflow;
        log_new_overflow(&mut told_overflow, counts);
        if let Some(scene) = draws.history.scene(counts.frame) {
            late.take(counts, &scene.views, &mut pauses);
        }
    });
    let hides = |index: u32| draws.occlusion.iter().any(|view| view.view == index);
    late.keep(|view| index_of_view(&draws.views, view).is_some_and(hides));
    // Their frame may have had other views than this one.
    let scene = draws.history.scene(counts.frame);
    let waits = arrived && scene.is_some_and(|scene| late.is_behind(counts, &scene.views));
    let has_waited = core::mem::replace(&mut *waited, waits);
    if has_waited || arrived && !waits {
        log_new_overflow(&mut told_overflow, counts);
        if let Some(scene) = scene {
            expanded.learn(counts, &scene.views);
            report.take_counts(counts, late, scene, sums);
            has_lists = true;
            report.overflow += late_overflow;
        }
    } else if draws.seen.is_empty() || draws.frame.requests.is_empty() {
        report.views.clear();
        report.sets.clear();
        report.instances = 0;
        has_lists = true;
    }
    report.tier = tier;
    report.compaction = culler.compaction();
    report.uploaded_bytes = culler.take_uploaded() + batch_sets.take_uploaded();
    let work = culler.take_work();
    report.work = FrameWork {
        entities: entities_read,
        requests: draws.requests_made,
        plans: work.plans,
        moved: work.mended,
        materials: aliases.visited.len() as u64,
        slot_bytes: slots.take_uploaded(),
        writes: work.writes,
        bound_jobs: work.bound_jobs,
        scatter_tiles: scatters.take_tiles(),
    };
    report.gpu_bytes = culler.gpu_bytes() + batch_sets.gpu_bytes() + slots.gpu_bytes();
    report.passes = passes;
    report.dispatches = dispatches;
    report.draw_calls = draws.calls.swap(0, Ordering::Relaxed);
    match &mut meshlets.culler {
        Some(parts) => {
            let lists = (meshlet_counts, sums);
            finish_meshlets(parts, &draws, lists, report);
        }
        None => {
            report.expansion = None;
            report.clear_meshlets();
        }
    }
    drop(timer);
    report.cpu = clock.take();
    inbox.send(report, has_lists);
}

/// As [`finish_culling`], for the stages of meshlets. The lists are used again.
fn finish_meshlets(
    parts: &mut MeshletCuller,
    draws: &SetDraws,
    (counts, sums): (&mut MeshletCounts, &mut CountSums),
    report: &mut CullingReport,
) {
    parts.finish();
    for error in parts.take_errors() {
        warn!("meshes of meshlets are drawn whole, which takes longer and looks the same: {error}");
    }
    for note in parts.take_notes() {
        match parts.asked_expansion() {
            MeshletExpansion::By(_) => warn!("GpuCullingSettings::expansion: {note}"),
            _ => info!("{note}"),
        }
    }
    report.expansion = parts.expansion();
    if parts.swap_counts(counts) {
        if let Some(scene) = draws.history.scene(counts.frame) {
            report.take_meshlet_counts(counts, &scene.views, sums);
        }
    } else if !parts.has_gpu_work() {
        report.clear_meshlets();
    }
    report.gpu_bytes += parts.gpu_bytes();
    report.uploaded_bytes += parts.take_uploaded();
}

/// Logs what the engine could not do, with the entities that are not drawn for it.
fn log_refusal(Refusal { error, missing }: &Refusal, draws: &SetDraws) {
    let Missing::Requests(requests) = missing else {
        warn!("GPU culling: {missing}: {error}. It is tried again");
        return;
    };
    let requests = requests.iter().copied().collect();
    error!(
        "GpuInstances on {} are not drawn: {error}. They are tried again every {RETRY_AFTER} frames",
        entity_names(&draws.entities_of(&requests))
    );
}

/// Warns of survivors that did not fit: once, and again if there are more.
fn log_new_overflow(told: &mut u64, counts: &FrameCounts) {
    if counts.overflow <= *told {
        return;
    }
    *told = counts.overflow;
    let needed = counts.needed.iter().map(|(_, needed)| *needed).max();
    warn!(
        "{} visible instances did not fit into the lists of survivors and are not drawn until the \
         lists have grown, within some frames; they grow to what one binding of the device holds. \
         Set GpuCullingSettings::survivor_capacity to at least {} to have room from the start",
        counts.overflow,
        needed.unwrap_or(0)
    );
}

/// Publishes the newest report in the main world.
pub(in crate::render) fn receive_report(
    inbox: Res<ReportInbox>,
    mut report: ResMut<CullingReport>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    if let Ok(mut inbox) = inbox.0.lock()
        && let Some(newest) = inbox.sent.take()
    {
        let mut before = ReportLists::default();
        before.swap(&mut report);
        *report = newest.report;
        match newest.lists {
            Some(mut lists) => {
                lists.swap(&mut report);
                inbox.spare = before;
            }
            None => before.swap(&mut report),
        }
    }
}
