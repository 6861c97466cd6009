//! The tiles of a set that are not as they should be, and the passes that fill them.

use super::{component::Scatter, layer::layer_of, planned::ScatterPlan};
use crate::{
    cull::{
        CullError, Gpu, WrittenRegion,
        layout::{BLOCK, ScatterLayer, ScatterTile, ScatterTurn},
        scatter::{
            ScatterFill, ScatterKernel, ScatterPass, ScatterTextures, counts_buffer, scatter_turns,
        },
    },
    instance::InstanceSet,
    render::gpu_written::InstanceBuffer,
};
use bevy::{
    platform::collections::HashMap,
    prelude::*,
    render::{render_asset::RenderAssets, texture::GpuImage},
};
use core::ops::Range;
use std::sync::Arc;
use wgpu::Buffer;

/// What a set is filled with.
pub(super) struct FilledSet {
    /// The version of its buffers.
    version: u64,
    scatter: Arc<Scatter>,
    rule: Option<Arc<str>>,
    layer: ScatterLayer,
    turns: Vec<ScatterTurn>,
    maps_revision: u32,
    /// The tile that each slot has.
    slots: Arc<[Option<IVec2>]>,
    /// The number of instances in each slot, which only the GPU knows.
    live: Buffer,
    /// Whether a map may have had its old texels, because Bevy limits the bytes of a frame.
    is_unsure: bool,
}

/// The maps of a scatter on the GPU.
#[derive(Default)]
pub(super) struct Textures<'a> {
    density: Option<&'a GpuImage>,
    height: Option<&'a GpuImage>,
    exclusion: Option<&'a GpuImage>,
}

impl<'a> Textures<'a> {
    /// `None` if one is not there, unless the plan only empties tiles.
    pub fn find(plan: &ScatterPlan, images: &'a RenderAssets<GpuImage>) -> Option<Self> {
        let found = Self::of(&plan.scatter, images);
        found.or_else(|| plan.slots.iter().all(Option::is_none).then(Self::default))
    }

    fn of(scatter: &Scatter, images: &'a RenderAssets<GpuImage>) -> Option<Self> {
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
pub(super) struct SetFill<'a> {
    pub plan: &'a ScatterPlan,
    pub buffer: &'a InstanceBuffer,
    pub maps: Textures<'a>,
    /// Whether Bevy may write a map in a later frame.
    pub is_late: bool,
}

/// What is to be recorded for a set.
pub(super) struct FillWork {
    pub passes: Vec<ScatterPass>,
    pub tiles: u64,
    /// The instances that are written.
    pub noted: Vec<Range<u32>>,
}

impl SetFill<'_> {
    pub fn prepare(
        &self,
        gpu: Gpu<'_>,
        kernel: &ScatterKernel,
        all: &mut HashMap<AssetId<InstanceSet>, FilledSet>,
    ) -> Result<Option<FillWork>, CullError> {
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
        if is_same && known.is_some_and(|known| is_same_list(&known.slots, &plan.slots)) {
            return Ok(None);
        }
        if known.is_none() {
            let filled = FilledSet {
                version: self.buffer.version(),
                scatter: plan.scatter.clone(),
                rule: plan.rule.clone(),
                layer,
                turns: Vec::new(),
                maps_revision: plan.maps_revision,
                slots: vec![None; plan.slots.len()].into(),
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
        known.slots = plan.slots.clone();
        known.is_unsure = self.is_late;
        Ok(Some(FillWork {
            passes,
            tiles: stale.len() as u64,
            noted: runs_of(&stale),
        }))
    }

    fn maps_changed(&self, known: &FilledSet) -> bool {
        known.maps_revision != self.plan.maps_revision
            || known.rule != self.plan.rule
            || known.is_unsure
    }

    fn layer(&self) -> ScatterLayer {
        let size = self.maps.height.map_or(UVec2::ONE, GpuImage::size_2d);
        layer_of(&self.plan.scatter, size)
    }
}

/// Most frames compare a list with itself.
fn is_same_list(one: &Arc<[Option<IVec2>]>, other: &Arc<[Option<IVec2>]>) -> bool {
    Arc::ptr_eq(one, other) || one == other
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
