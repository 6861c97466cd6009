//! The render world: fills the tiles that are not as they should be.

use super::{
    component::Scatter,
    layer::layer_of,
    plan::{ScatterPlan, ScatterPlans},
};
use crate::{
    cull::{
        CullError, Gpu, WrittenRegion,
        layout::{BLOCK, ScatterLayer, ScatterTile, ScatterTurn},
        scatter::{
            ScatterFill, ScatterKernel, ScatterPass, ScatterTextures, counts_buffer, scatter_turns,
        },
    },
    instance::InstanceSet,
    render::{
        gpu::RenderGpu,
        gpu_written::{InstanceBuffer, InstanceBuffers},
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
use wgpu::{Buffer, ComputePassDescriptor};

/// The span of the passes in the diagnostics.
const SPAN: &str = "gpu_culling scatter";

/// From this many kernels on, those whose rules are not used any more are dropped.
const MAX_KERNELS: usize = 8;

/// What the render world has filled. It belongs to a device.
#[derive(Resource, Default)]
pub(in crate::render) struct ScatterFills {
    /// A kernel per rule, or why the device refused it.
    kernels: Vec<(Option<Arc<str>>, Result<ScatterKernel, CullError>)>,
    filled: HashMap<AssetId<InstanceSet>, Filled>,
    /// What is recorded in the frame, and by which kernel.
    passes: Vec<(usize, ScatterPass)>,
    noted: Vec<(AssetId<InstanceSet>, Range<u32>)>,
    /// Number of tiles that were filled since the last report.
    tiles: u64,
    /// Errors that were logged.
    told: Told<(Entity, String)>,
}

impl ScatterFills {
    /// Number of tiles that were filled since the last call.
    pub fn take_tiles(&mut self) -> u64 {
        core::mem::take(&mut self.tiles)
    }
}

/// What a set is filled with.
struct Filled {
    /// The version of its buffers.
    version: u64,
    scatter: Arc<Scatter>,
    rule: Option<Arc<str>>,
    layer: ScatterLayer,
    turns: Vec<ScatterTurn>,
    maps_revision: u32,
    /// The tile that each slot has.
    slots: Vec<Option<IVec2>>,
    /// The number of instances in each slot, which only the GPU knows.
    live: Buffer,
    /// Whether a map may have had its old texels, because Bevy limits the bytes of a frame.
    is_unsure: bool,
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
    if plans.0.is_empty() && fills.filled.is_empty() {
        return;
    }
    let is_planned = |set: &AssetId<InstanceSet>| plans.0.iter().any(|plan| plan.set == *set);
    fills.filled.retain(|set, _| is_planned(set));
    if fills.passes.is_empty() && fills.kernels.len() > MAX_KERNELS {
        // Rules that were edited, most of them.
        let is_used = |rule| plans.0.iter().any(|plan| plan.rule == *rule);
        fills.kernels.retain(|(rule, _)| is_used(rule));
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
        let Some(maps) = Textures::find(&plan.scatter, &images) else {
            continue;
        };
        let device = gpu.wgpu().device;
        let known = fills
            .kernels
            .iter()
            .position(|(rule, _)| *rule == plan.rule);
        let index = known.unwrap_or_else(|| {
            let rule = plan.rule.as_deref();
            let made = ScatterKernel::new(device, rule, settings.shader_checks);
            fills.kernels.push((plan.rule.clone(), made));
            fills.kernels.len() - 1
        });
        let done = match &fills.kernels[index].1 {
            Ok(kernel) => {
                let fill = Fill {
                    plan,
                    buffer,
                    maps,
                    is_late,
                };
                fill.prepare(gpu.wgpu(), kernel, &mut fills.filled)
            }
            Err(error) => Err(error.clone()),
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
                // It is tried again in the next frame, and told once.
                let text = error.to_string();
                if fills.told.is_new((plan.entity, text.clone())) {
                    error!("Scatter on {} is not filled: {text}", plan.entity);
                }
            }
        }
    }
}

/// The maps of a scatter on the GPU.
struct Textures<'a> {
    density: Option<&'a GpuImage>,
    height: Option<&'a GpuImage>,
    exclusion: Option<&'a GpuImage>,
}

impl<'a> Textures<'a> {
    /// `None` if one is not there.
    fn find(scatter: &Scatter, images: &'a RenderAssets<GpuImage>) -> Option<Self> {
        let find = |map: &Option<Handle<Image>>| match map {
            Some(map) => images.get(map).map(Some),
            None => Some(None),
        };
        Some(Self {
            density: find(&scatter.density_map)?,
            height: find(&scatter.height_map)?,
            exclusion: find(&scatter.exclusion_map)?,
        })
    }
}

/// A set that may have tiles to fill.
struct Fill<'a> {
    plan: &'a ScatterPlan,
    buffer: &'a InstanceBuffer,
    maps: Textures<'a>,
    is_late: bool,
}

/// What is to be recorded for a set.
struct Work {
    passes: Vec<ScatterPass>,
    tiles: u64,
    /// The instances that are written.
    noted: Vec<Range<u32>>,
}

impl Fill<'_> {
    fn prepare(
        &self,
        gpu: Gpu<'_>,
        kernel: &ScatterKernel,
        all: &mut HashMap<AssetId<InstanceSet>, Filled>,
    ) -> Result<Option<Work>, CullError> {
        let plan = self.plan;
        let known = all.get(&plan.set).filter(|known| {
            // Other buffers are empty.
            known.version == self.buffer.version() && known.slots.len() == plan.slots.len()
        });
        let layer = match known {
            Some(known)
                if Arc::ptr_eq(&known.scatter, &plan.scatter) && !self.maps_changed(known) =>
            {
                known.layer
            }
            _ => self.layer(),
        };
        let is_same = known.is_some_and(|known| {
            known.layer == layer
                && known.scatter.turn == plan.scatter.turn
                && !self.maps_changed(known)
        });
        if is_same && known.is_some_and(|known| known.slots[..] == plan.slots[..]) {
            return Ok(None);
        }
        if known.is_none() {
            let filled = Filled {
                version: self.buffer.version(),
                scatter: plan.scatter.clone(),
                rule: plan.rule.clone(),
                layer,
                turns: Vec::new(),
                maps_revision: plan.maps_revision,
                slots: vec![None; plan.slots.len()],
                live: counts_buffer(gpu.device, plan.slots.len() as u32)?,
                is_unsure: false,
            };
            all.insert(plan.set, filled);
        }
        let Some(known) = all.get_mut(&plan.set) else {
            return Ok(None);
        };
        let is_stale = |slot: usize| match is_same {
            true => known.slots[slot] != plan.slots[slot],
            false => known.slots[slot].is_some() || plan.slots[slot].is_some(),
        };
        let stale: Vec<_> = (0..plan.slots.len())
            .filter(|slot| is_stale(*slot))
            .collect();
        if known.turns.is_empty() || known.scatter.turn != plan.scatter.turn {
            known.turns = scatter_turns(plan.scatter.turn);
        }
        let mut passes = Vec::new();
        for region in self.buffer.regions() {
            let tiles = tiles_of(region, &stale, &plan.slots);
            let maps = ScatterTextures {
                density: self.maps.density.map(|map| &*map.texture_view),
                height: self.maps.height.map(|map| &*map.texture_view),
                exclusion: self.maps.exclusion.map(|map| &*map.texture_view),
            };
            let fill = ScatterFill {
                layer: &layer,
                turns: &known.turns,
                maps,
                region,
                live: &known.live,
                tiles: &tiles,
            };
            passes.extend(kernel.prepare(gpu, fill)?);
        }
        known.scatter = plan.scatter.clone();
        known.rule = plan.rule.clone();
        known.layer = layer;
        known.maps_revision = plan.maps_revision;
        known.slots.copy_from_slice(&plan.slots);
        known.is_unsure = self.is_late;
        Ok(Some(Work {
            passes,
            tiles: stale.len() as u64,
            noted: runs_of(&stale),
        }))
    }

    fn maps_changed(&self, known: &Filled) -> bool {
        known.maps_revision != self.plan.maps_revision
            || known.rule != self.plan.rule
            || known.is_unsure
    }

    fn layer(&self) -> ScatterLayer {
        let size = self.maps.height.map_or(UVec2::ONE, GpuImage::size_2d);
        layer_of(&self.plan.scatter, size)
    }
}

/// The stale slots of a region.
fn tiles_of(region: &WrittenRegion, stale: &[usize], slots: &[Option<IVec2>]) -> Vec<ScatterTile> {
    let first = region.first / BLOCK;
    let of_region = first..first + region.capacity / BLOCK;
    let stale = stale.iter().map(|slot| *slot as u32);
    let tile = |live: u32| {
        let tile = slots[live as usize];
        let IVec2 { x, y: z } = tile.unwrap_or_default();
        ScatterTile {
            x,
            z,
            slot: live - first,
            live,
            is_wanted: u32::from(tile.is_some()),
        }
    };
    stale
        .filter(|slot| of_region.contains(slot))
        .map(tile)
        .collect()
}

/// The instances of slots in ascending order, in as few ranges as possible.
fn runs_of(slots: &[usize]) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for slot in slots {
        let first = *slot as u32 * BLOCK;
        match runs.last_mut() {
            Some(run) if run.end == first => run.end += BLOCK,
            _ => runs.push(first..first + BLOCK),
        }
    }
    runs
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
        if let Ok(kernel) = &fills.kernels[kernel].1 {
            kernel.record(&mut pass, &fill);
        }
    }
    span.end(&mut pass);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighboring_slots_are_one_range() {
        let block = BLOCK;
        assert_eq!(runs_of(&[]), []);
        let runs = [0..2 * block, 3 * block..4 * block, 9 * block..11 * block];
        assert_eq!(runs_of(&[0, 1, 3, 9, 10]), runs);
    }
}
