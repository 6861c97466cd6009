//! The compute passes of the frame.

use super::{
    cpu_times::{CpuClock, CpuStage},
    culler::{GpuCuller, Recorded},
    expanded::ExpandedUniforms,
    gpu::Gpu,
    meshlets::GpuMeshlets,
};
use crate::cull::{Stage, meshlets::MeshletStage};
use bevy::{
    prelude::*,
    render::{diagnostic::RecordDiagnostics, renderer::RenderContext},
};

/// Label and span of a stage's pass: Bevy's diagnostics have its time as
/// `render/gpu_culling/<stage>/elapsed_gpu`.
const fn span(stage: Stage) -> &'static str {
    match stage {
        Stage::Classify => "gpu_culling/classify",
        Stage::Vote => "gpu_culling/vote",
        Stage::Scan => "gpu_culling/scan",
        Stage::Compact => "gpu_culling/compact",
        Stage::Args => "gpu_culling/args",
    }
}

/// As [`span`], of the stages of meshlets.
const fn meshlet_span(stage: MeshletStage) -> &'static str {
    match stage {
        MeshletStage::Expand => "gpu_culling/meshlet_expand",
        MeshletStage::Vote => "gpu_culling/meshlet_vote",
        MeshletStage::Scan => "gpu_culling/meshlet_scan",
        MeshletStage::Compact => "gpu_culling/meshlet_compact",
        MeshletStage::Args => "gpu_culling/meshlet_args",
    }
}

/// As [`span`], of the pass of [`ExpandedUniforms`].
const EXPANDED_SPAN: &str = "gpu_culling/mesh_uniforms";

/// Records the stages of all sets and views: once per frame, before any camera draws.
pub(super) fn record_culling(
    mut sets: ResMut<GpuCuller>,
    expanded: Res<ExpandedUniforms>,
    mut meshlets: ResMut<GpuMeshlets>,
    gpu: Gpu,
    mut context: RenderContext,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Record);
    let GpuCuller {
        culler: Some(culler),
        recorded,
        ..
    } = &mut *sets
    else {
        return;
    };
    *recorded = Recorded::default();
    if culler.has_written_sets() {
        culler.record_written(gpu.wgpu(), context.command_encoder());
    }
    if !culler.has_gpu_work() {
        return;
    }
    let (device, _) = gpu.wgpu();
    let recorder = context.diagnostic_recorder();
    let recorder = recorder.as_deref();
    let encoder = context.command_encoder();
    for stage in culler.compaction().stages() {
        let mut pass = begin_pass(encoder, span(stage));
        let time = recorder.time_span(&mut pass, span(stage));
        recorded.passes += 1;
        recorded.dispatches += culler.record_stage(stage, &mut pass);
        time.end(&mut pass);
    }
    if expanded.has_work() {
        let mut pass = begin_pass(encoder, EXPANDED_SPAN);
        let time = recorder.time_span(&mut pass, EXPANDED_SPAN);
        let limit = device.limits().max_compute_workgroups_per_dimension;
        expanded.record(culler, &mut pass, limit);
        time.end(&mut pass);
    }
    // The room for uniforms follows the counters.
    if culler.wants_counts() || expanded.has_work() {
        culler.record_readback(device, encoder);
    }
    let parts = meshlets.culler.as_mut();
    let Some(parts) = parts.filter(|parts| parts.has_gpu_work()) else {
        return;
    };
    for stage in MeshletStage::ALL {
        let mut pass = begin_pass(encoder, meshlet_span(stage));
        let time = recorder.time_span(&mut pass, meshlet_span(stage));
        parts.record_stage(stage, &mut pass);
        time.end(&mut pass);
    }
    parts.record_readback(device, encoder);
}

fn begin_pass<'a>(
    encoder: &'a mut wgpu::CommandEncoder,
    name: &'static str,
) -> wgpu::ComputePass<'a> {
    encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
        label: Some(name),
        timestamp_writes: None,
    })
}
