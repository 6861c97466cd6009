//! The compute passes of the frame.

use super::{
    cpu_times::{CpuClock, CpuStage},
    culler::{GpuCuller, Recorded},
    expanded::ExpandedUniforms,
    meshlets::GpuMeshlets,
};
use crate::cull::meshlets::MeshletStage;
use bevy::{
    prelude::*,
    render::{
        diagnostic::RecordDiagnostics,
        renderer::{RenderContext, RenderDevice, RenderQueue},
    },
};

/// Names of the stages' spans: `render/gpu_culling/<stage>/elapsed_gpu` in the diagnostics.
const SPANS: [&str; 5] = [
    "gpu_culling/classify",
    "gpu_culling/vote",
    "gpu_culling/scan",
    "gpu_culling/compact",
    "gpu_culling/args",
];

/// The same of the stages of meshlets.
const MESHLET_SPANS: [&str; 5] = [
    "gpu_culling/meshlet_expand",
    "gpu_culling/meshlet_vote",
    "gpu_culling/meshlet_scan",
    "gpu_culling/meshlet_compact",
    "gpu_culling/meshlet_args",
];

/// Records the stages of all sets and views: once a frame, before any camera.
pub(super) fn record_culling(
    mut gpu: ResMut<GpuCuller>,
    uniforms: Res<ExpandedUniforms>,
    mut meshlets: ResMut<GpuMeshlets>,
    (device, queue): (Res<RenderDevice>, Res<RenderQueue>),
    mut context: RenderContext,
    clock: Res<CpuClock>,
) {
    let _running = clock.start(CpuStage::Record);
    let GpuCuller {
        culler: Some(culler),
        recorded,
        ..
    } = &mut *gpu
    else {
        return;
    };
    *recorded = Recorded::default();
    if culler.has_written_sets() {
        let queue: &wgpu::Queue = &queue;
        culler.record_written((device.wgpu_device(), queue), context.command_encoder());
    }
    if !culler.has_gpu_work() {
        return;
    }
    let recorder = context.diagnostic_recorder();
    let recorder = recorder.as_deref();
    let encoder = context.command_encoder();
    for stage in culler.compaction().stages() {
        let name = SPANS[stage as usize];
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some(name),
            timestamp_writes: None,
        });
        let span = recorder.time_span(&mut pass, name);
        recorded.passes += 1;
        recorded.dispatches += culler.record_stage(stage, &mut pass);
        span.end(&mut pass);
    }
    if uniforms.has_work() {
        let name = "gpu_culling/mesh_uniforms";
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some(name),
            timestamp_writes: None,
        });
        let span = recorder.time_span(&mut pass, name);
        let limit = device.limits().max_compute_workgroups_per_dimension;
        uniforms.record(culler, &mut pass, limit);
        span.end(&mut pass);
    }
    // Rooms for uniforms grow by the counters.
    if culler.wants_counts() || uniforms.has_work() {
        culler.record_readback(device.wgpu_device(), encoder);
    }
    let Some(parts) = meshlets
        .culler
        .as_mut()
        .filter(|parts| parts.has_gpu_work())
    else {
        return;
    };
    for (stage, name) in MeshletStage::ALL.into_iter().zip(MESHLET_SPANS) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some(name),
            timestamp_writes: None,
        });
        let span = recorder.time_span(&mut pass, name);
        parts.record_stage(stage, &mut pass);
        span.end(&mut pass);
    }
    parts.record_readback(device.wgpu_device(), encoder);
}
