//! The compute passes of the frame.

use super::{
    batch_sets::BatchSets,
    cpu_times::{CpuClock, CpuStage},
    culler::GpuCuller,
    expanded::ExpandedUniforms,
    gpu_written::InstanceBuffers,
    meshlets::GpuMeshlets,
};
use crate::cull::{Follower, Gpu, PassRecorder};
use bevy::{
    prelude::*,
    render::{
        diagnostic::{DiagnosticsRecorder, RecordDiagnostics},
        renderer::{RenderContext, RenderDevice, RenderQueue},
    },
};
use wgpu::{CommandEncoder, ComputePass, ComputePassDescriptor};

/// Compute passes with time spans: `render/<label>/elapsed_gpu` in the diagnostics, if the app has
/// Bevy's `RenderDiagnosticsPlugin`.
pub(super) struct TimedPasses<'a> {
    pub recorder: Option<&'a DiagnosticsRecorder>,
}

impl PassRecorder for TimedPasses<'_> {
    fn pass(
        &mut self,
        encoder: &mut CommandEncoder,
        label: &'static str,
        record: &mut dyn FnMut(&mut ComputePass<'_>),
    ) {
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor {
            label: Some(label),
            timestamp_writes: None,
        });
        let span = self.recorder.time_span(&mut pass, label);
        record(&mut pass);
        span.end(&mut pass);
    }

    fn separates_stages(&self) -> bool {
        self.recorder.is_some()
    }
}

/// Records the stages of all sets and views, and what follows them: once per frame, before any
/// camera.
pub(super) fn record_culling(
    mut culling: ResMut<GpuCuller>,
    mut expanded: ResMut<ExpandedUniforms>,
    mut meshlets: ResMut<GpuMeshlets>,
    (batch_sets, mut buffers): (Res<BatchSets>, ResMut<InstanceBuffers>),
    (device, queue): (Res<RenderDevice>, Res<RenderQueue>),
    mut context: RenderContext,
    clock: Res<CpuClock>,
) {
    let _running = clock.start(CpuStage::Record);
    // Without a culler, nobody has a use for them.
    let noted = buffers.take_noted();
    let GpuCuller {
        culler: Some(culler),
        recorded,
        extraction,
        ..
    } = &mut *culling
    else {
        return;
    };
    for (asset, range) in noted {
        if let Some(known) = extraction.known.get(&asset) {
            culler.store_mut().note_written(known.current.id, range);
        }
    }
    let recorder = context.diagnostic_recorder();
    let mut passes = TimedPasses {
        recorder: recorder.as_deref(),
    };
    let on = Gpu::new(device.wgpu_device(), &queue);
    let encoder = context.command_encoder();
    let Some(frame) = culler.prepared() else {
        return;
    };
    // No list on the heap: this runs in every frame.
    let expanded: &mut dyn Follower = &mut *expanded;
    *recorded = match (&mut meshlets.culler, &mut batch_sets.multi_draws()) {
        (Some(meshlets), Some(draws)) => {
            frame.record_with(on, encoder, &mut passes, &mut [expanded, meshlets, draws])
        }
        (Some(meshlets), None) => {
            frame.record_with(on, encoder, &mut passes, &mut [expanded, meshlets])
        }
        (None, Some(draws)) => frame.record_with(on, encoder, &mut passes, &mut [expanded, draws]),
        (None, None) => frame.record_with(on, encoder, &mut passes, &mut [expanded]),
    };
}
