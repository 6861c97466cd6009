//! The render world: fills the tiles that are not as they should be.

use super::{
    plan::ScatterPlans,
    work::{FilledSet, SetFill, Textures},
};
use crate::{
    cull::{
        CullError, OnDemand,
        scatter::{ScatterKernel, ScatterPass},
    },
    instance::InstanceSet,
    render::{
        gpu::RenderGpu,
        gpu_written::InstanceBuffers,
        settings::{GpuCullingSettings, GpuCullingSystems},
        told::Told,
    },
};
use bevy::{
    log::error,
    platform::collections::HashMap,
    prelude::*,
    render::{
        Extract, ExtractSchedule, GpuResourceAppExt, Render, RenderSystems,
        diagnostic::RecordDiagnostics,
        render_asset::{RenderAssetBytesPerFrameLimiter, RenderAssets},
        renderer::{RenderContext, RenderGraph},
        texture::GpuImage,
    },
};
use core::{ops::Range, sync::atomic::Ordering};
use std::sync::Arc;
use wgpu::ComputePassDescriptor;

/// The span of the passes in the diagnostics.
const SPAN: &str = "gpu_culling scatter";

/// From this many kernels on, those whose rules are not used any more are dropped.
const MAX_KERNELS: usize = 8;

/// What the render world has filled. It belongs to a device.
#[derive(Resource, Default)]
pub(in crate::render) struct ScatterFills {
    /// A kernel per rule.
    kernels: Vec<RuleKernel>,
    filled: HashMap<AssetId<InstanceSet>, FilledSet>,
    /// What is recorded in the frame, and by which kernel.
    passes: Vec<(usize, ScatterPass)>,
    noted: Vec<(AssetId<InstanceSet>, Range<u32>)>,
    /// Number of tiles that were filled since the last report.
    tiles: u64,
    /// Errors that were logged.
    told: Told<(Entity, String)>,
    /// Number of frames so far.
    frame: u64,
}

/// The kernel of a rule.
struct RuleKernel {
    rule: Option<Arc<str>>,
    kernel: OnDemand<ScatterKernel>,
}

impl ScatterFills {
    /// Number of tiles that were filled since the last call.
    pub fn take_tiles(&mut self) -> u64 {
        core::mem::take(&mut self.tiles)
    }
}

/// Adds the render world's part.
pub(in crate::render) fn build_render(render_app: &mut SubApp) {
    render_app
        .init_resource::<ScatterPlans>()
        .init_gpu_resource::<ScatterFills>()
        .add_systems(ExtractSchedule, extract_scatters)
        .add_systems(
            Render,
            prepare_scatters.in_set(RenderSystems::PrepareBindGroups),
        )
        .add_systems(
            RenderGraph,
            record_scatters.in_set(GpuCullingSystems::WriteInstances),
        );
}

fn extract_scatters(plans: Extract<Res<ScatterPlans>>, mut ours: ResMut<ScatterPlans>) {
    if !Arc::ptr_eq(&plans.0, &ours.0) {
        ours.0 = plans.0.clone();
    }
}

/// Finds the tiles that are to be filled, and uploads their list. Nothing if all is as it was.
fn prepare_scatters(
    plans: Res<ScatterPlans>,
    mut fills: ResMut<ScatterFills>,
    buffers: Res<InstanceBuffers>,
    images: Res<RenderAssets<GpuImage>>,
    limiter: Option<Res<RenderAssetBytesPerFrameLimiter>>,
    settings: Res<GpuCullingSettings>,
    gpu: RenderGpu,
) {
    let fills = &mut *fills;
    fills.frame += 1;
    if plans.0.is_empty() && fills.filled.is_empty() {
        return;
    }
    let is_planned = |set: &AssetId<InstanceSet>| plans.0.iter().any(|plan| plan.set == *set);
    fills.filled.retain(|set, _| is_planned(set));
    if fills.passes.is_empty() && fills.kernels.len() > MAX_KERNELS {
        // Rules that were edited, most of them.
        let is_used = |rule: &Option<Arc<str>>| plans.0.iter().any(|plan| plan.rule == *rule);
        fills.kernels.retain(|kernel| is_used(&kernel.rule));
    }
    let is_late = limiter.is_some_and(|limiter| {
        let written = limiter.bytes_written.load(Ordering::Relaxed);
        limiter.max_bytes.is_some_and(|max| written >= max)
    });
    for plan in plans.0.iter() {
        let Some(buffer) = buffers.get(plan.set) else {
            // Not on the GPU yet, or refused, or on the tier `Cpu`. The log says so.
            fills.filled.remove(&plan.set);
            continue;
        };
        let Some(maps) = Textures::find(plan, &images) else {
            continue;
        };
        let device = gpu.wgpu().device;
        let mut kernels = fills.kernels.iter();
        let known = kernels.position(|kernel| kernel.rule == plan.rule);
        let index = known.unwrap_or_else(|| {
            fills.kernels.push(RuleKernel {
                rule: plan.rule.clone(),
                kernel: OnDemand::default(),
            });
            fills.kernels.len() - 1
        });
        let make = || ScatterKernel::new(device, plan.rule.as_deref(), settings.shader_checks);
        let kernel = &mut fills.kernels[index].kernel;
        let done = match kernel.get_or_make(fills.frame, make) {
            Ok(kernel) => {
                let fill = SetFill {
                    plan,
                    buffer,
                    maps,
                    is_late,
                };
                fill.prepare(gpu.wgpu(), kernel, &mut fills.filled)
            }
            Err(error) => Err(error),
        };
        match done {
            Ok(Some(work)) => {
                fills.tiles += work.tiles;
                let passes = work.passes.into_iter().map(|pass| (index, pass));
                fills.passes.extend(passes);
                let noted = work.noted.into_iter().map(|range| (plan.set, range));
                fills.noted.extend(noted);
            }
            Ok(None) => {}
            Err(error) => {
                // It is tried again, and told once.
                let text = match (&error, &plan.rule) {
                    (CullError::Pipeline { message, .. }, Some(_)) => {
                        format!("its rule does not compile: {}", message.trim_end())
                    }
                    _ => error.to_string(),
                };
                if fills.told.is_new((plan.entity, text.clone())) {
                    error!("Scatter on {} is not filled: {text}", plan.entity);
                }
            }
        }
    }
}

/// Records what was prepared.
fn record_scatters(
    mut fills: ResMut<ScatterFills>,
    mut buffers: ResMut<InstanceBuffers>,
    mut context: RenderContext,
) {
    let fills = &mut *fills;
    if fills.passes.is_empty() {
        return;
    }
    for (set, range) in fills.noted.drain(..) {
        buffers.note_refilled(set);
        buffers.note_written(set, range);
    }
    let recorder = context.diagnostic_recorder();
    let recorder = recorder.as_deref();
    let encoder = context.command_encoder();
    let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor {
        label: Some(SPAN),
        timestamp_writes: None,
    });
    let span = recorder.time_span(&mut pass, SPAN);
    for (kernel, fill) in fills.passes.drain(..) {
        if let Some(kernel) = fills.kernels[kernel].kernel.get() {
            kernel.record(&mut pass, &fill);
        }
    }
    span.end(&mut pass);
}
