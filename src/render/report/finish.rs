//! The report on its way to the main world, and what the log says of a frame.

use super::{
    content::{CullingReport, FrameWork},
    counts::LateCounts,
    sets::SetReport,
};
use crate::{
    cull::{
        FrameCounts, Missing, Refusal,
        meshlets::{MeshletCuller, MeshletExpansion},
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
pub(in crate::render) struct ReportInbox(Arc<Mutex<Option<Letter>>>);

/// A report without its sets.
struct Letter {
    report: CullingReport,
    /// The sets, if counters have arrived. A list of ten thousand sets is moved between the worlds,
    /// and never copied.
    sets: Option<Vec<SetReport>>,
}

impl ReportInbox {
    /// Replaces a letter that was not received. Its sets stay if there are no newer ones.
    fn send(&self, report: CullingReport, sets: Option<Vec<SetReport>>) {
        match self.0.lock() {
            Ok(mut inbox) => {
                let missed = inbox.take().and_then(|missed| missed.sets);
                let sets = sets.or(missed);
                *inbox = Some(Letter { report, sets });
            }
            Err(_) => warn_once!("the culling report is lost: a thread panicked while it held it"),
        }
    }
}

/// After the submit: asks for this frame's counters, and sends a report with the newest that have
/// arrived.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn finish_culling(
    mut gpu: ResMut<GpuCuller>,
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
    (mut report, mut late): (Local<CullingReport>, Local<LateCounts>),
    clock: Res<CpuClock>,
    mut told_overflow: Local<u64>,
) {
    let timer = clock.start(CpuStage::Finish);
    let (tier, recorded) = (gpu.tier(), core::mem::take(&mut gpu.recorded));
    let (passes, dispatches) = (recorded.passes, recorded.dispatches);
    let entities_read = gpu.lists.entities_read;
    let Some(culler) = &mut gpu.culler else {
        // The last report is of a device that is gone, or of settings that were refused.
        drop(timer);
        *report = CullingReport {
            cpu: clock.take(),
            ..default()
        };
        inbox.send(report.clone(), Some(Vec::new()));
        return;
    };
    culler.finish(recorded);
    for refusal in culler.take_refusals() {
        log_refusal(refusal, &draws);
    }
    let mut late_overflow = 0;
    let mut has_sets = false;
    for counts in culler.take_late_counts(device.wgpu_device()) {
        late_overflow += counts.overflow;
        if counts.overflow > *told_overflow {
            *told_overflow = counts.overflow;
            log_overflow(&counts);
        }
        if let Some(scene) = draws.history.scene(counts.frame) {
            late.take(counts, &scene.views, &mut pauses);
        }
    }
    if draws.occlusion.is_empty() {
        late.clear();
    }
    if let Some(counts) = culler.take_counts(device.wgpu_device()) {
        // Once, and again if more is lost.
        if counts.overflow > *told_overflow {
            *told_overflow = counts.overflow;
            log_overflow(&counts);
        }
        // Their frame may have had other views than this one.
        if let Some(scene) = draws.history.scene(counts.frame) {
            expanded.learn(&counts, &scene.views);
            report.take_counts(&counts, &late, scene);
            has_sets = true;
            report.overflow += late_overflow;
        }
    } else if draws.seen.is_empty() || draws.frame.requests.is_empty() {
        report.views.clear();
        report.instances = 0;
        has_sets = true;
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
        Some(parts) => finish_meshlets(parts, &draws, &mut report),
        None => {
            report.expansion = None;
            report.clear_meshlets();
        }
    }
    drop(timer);
    report.cpu = clock.take();
    let sets = core::mem::take(&mut report.sets);
    inbox.send(report.clone(), has_sets.then_some(sets));
}

/// As [`finish_culling`], for the stages of meshlets.
fn finish_meshlets(parts: &mut MeshletCuller, draws: &SetDraws, report: &mut CullingReport) {
    parts.finish();
    for error in parts.take_errors() {
        warn!("meshes of meshlets are drawn whole: {error}");
    }
    for note in parts.take_notes() {
        match parts.asked_expansion() {
            MeshletExpansion::By(_) => warn!("GpuCullingSettings::expansion: {note}"),
            _ => info!("{note}"),
        }
    }
    report.expansion = parts.expansion();
    if let Some(counts) = parts.take_counts() {
        if let Some(scene) = draws.history.scene(counts.frame) {
            report.take_meshlet_counts(&counts, &scene.views);
        }
    } else if !parts.has_gpu_work() {
        report.clear_meshlets();
    }
    report.gpu_bytes += parts.gpu_bytes();
    report.uploaded_bytes += parts.take_uploaded();
}

/// Logs what the engine could not do, with the entities that are not drawn for it.
fn log_refusal(Refusal { error, missing }: Refusal, draws: &SetDraws) {
    let Missing::Requests(requests) = missing else {
        warn!("GPU culling: {missing}: {error}. It is tried again");
        return;
    };
    let requests = requests.into_iter().collect();
    error!(
        "GpuInstances on {} are not drawn: {error}. They are tried again every {RETRY_AFTER} frames",
        entity_names(&draws.entities_of(&requests))
    );
}

/// Warns of survivors that did not fit.
fn log_overflow(counts: &FrameCounts) {
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
        && let Some(newest) = inbox.take()
    {
        let before = core::mem::take(&mut report.sets);
        *report = newest.report;
        report.sets = newest.sets.unwrap_or(before);
    }
}
