//! The engine in the render world, and what it holds of the sets.

use super::{
    bindings::can_draw_sets, gpu_written::InstanceBuffers, settings::GpuCullingSettings,
    upload::KnownSets,
};
use crate::{
    cull::{BoundingSphere, Compaction, CullError, Culler, CullingTier, Recorded, SetId},
    instance::InstanceSet,
};
use bevy::{
    log::{error, info, warn},
    math::Affine3A,
    platform::collections::HashSet,
    prelude::*,
    render::{
        renderer::RenderDevice,
        sync_world::{MainEntity, MainEntityHashSet},
    },
};

/// The engine in the render world, and what it holds of the sets.
#[derive(Resource, Default)]
pub(super) struct GpuCuller {
    /// `None` when the device cannot cull at all.
    pub culler: Option<Culler>,
    /// The renderer has started on the device at hand. Bevy makes another when it recovers from a lost one; devices of
    /// two instances of wgpu may compare as equal.
    pub has_started: bool,
    /// It has started since the last extraction.
    pub is_fresh: bool,
    /// Storage buffers that a vertex stage may have on it.
    pub vertex_buffers: u32,
    /// Sets whose instances the GPU wrote on a device that was lost.
    pub lost: HashSet<AssetId<InstanceSet>>,
    pub settings: GpuCullingSettings,
    /// Increases with every culler that is made.
    pub made: u64,
    pub known: KnownSets,
    /// Sets of which a warning was logged.
    pub told: HashSet<AssetId<InstanceSet>>,
    /// Bytes of new sets that the last frame brought.
    pub streamed: u64,
    pub next_id: u64,
    /// Counts extractions.
    pub frame: u64,
    /// Entities with [`GpuInstances`], also those whose set or mesh is not loaded yet or was refused: Bevy must not
    /// draw them as single meshes.
    pub entities: Vec<MainEntity>,
    /// Those that ask for a `MeshUniform` for each survivor.
    pub asks_expanded: MainEntityHashSet,
    /// Those with a [`Lightmap`], which are not drawn: Bevy's pipelines would bind it.
    pub lightmapped: MainEntityHashSet,
    /// Those with [`NoFrustumCulling`].
    pub unculled: MainEntityHashSet,
    /// Entities whose set can be culled this frame, in an order that stays while entities do.
    pub sets: Vec<ExtractedSet>,
    /// What was recorded of the frame.
    pub recorded: Recorded,
}

/// One entity's use of a set.
pub(super) struct ExtractedSet {
    pub entity: MainEntity,
    pub set: SetId,
    pub sphere: BoundingSphere,
    pub world_from_local: Affine3A,
    /// The entity has [`NoFrustumCulling`]: every view that sees it keeps every instance.
    pub keep_all: bool,
}

/// Makes the culler for the device: when the renderer starts, and when it starts again after a lost device.
pub(super) fn init_culler(
    mut gpu: ResMut<GpuCuller>,
    mut buffers: ResMut<InstanceBuffers>,
    settings: Res<GpuCullingSettings>,
    device: Res<RenderDevice>,
) {
    gpu.leave_device(&mut buffers);
    gpu.settings = settings.clone();
    gpu.culler = make_culler(&device, &settings);
    (gpu.has_started, gpu.is_fresh) = (true, true);
    gpu.vertex_buffers = device.limits().max_storage_buffers_per_shader_stage;
}

impl GpuCuller {
    /// Forgets all that lies on the device. Sets are then uploaded again, as far as the CPU has them.
    pub fn leave_device(&mut self, buffers: &mut InstanceBuffers) {
        self.has_started = false;
        self.lost.extend(buffers.ids());
        self.culler = None;
        self.made += 1;
        self.known.clear();
        self.sets.clear();
        self.streamed = 0;
        self.recorded = Recorded::default();
        buffers.clear();
    }

    /// The tier in use.
    pub fn tier(&self) -> Option<CullingTier> {
        self.culler.as_ref().map(Culler::tier)
    }
}

/// A culler as asked for, or the best that the device can do, with a line that says why.
pub(super) fn make_culler(device: &RenderDevice, settings: &GpuCullingSettings) -> Option<Culler> {
    let device = device.wgpu_device();
    if let Err(missing) = can_draw_sets(&device.limits()) {
        error!("GPU culling is off, no GpuInstances are drawn: {missing}");
        return None;
    }
    let mut options = settings.options();
    let mut made = Culler::new(device, options.clone());
    // What the device lacks gives way to what it has, one thing at a time.
    for _ in 0..2 {
        match &made {
            Err(error @ CullError::TierUnsupported { .. }) => {
                warn!("{error}; the best tier that it supports is used instead");
                options.tier = None;
            }
            Err(error @ CullError::CompactionUnsupported { .. }) => {
                warn!("{error}; \"auto\" is used instead");
                options.compaction = Compaction::default();
            }
            _ => break,
        }
        made = Culler::new(device, options.clone());
    }
    match made {
        Ok((culler, reason)) => {
            let (tier, compaction) = (culler.tier(), culler.compaction());
            match reason {
                Some(reason) => info!("GPU culling at tier \"{tier}\" ({compaction}): {reason}"),
                None => info!("GPU culling at tier \"{tier}\" ({compaction})"),
            }
            Some(culler)
        }
        Err(error) => {
            error!("GPU culling is off, no GpuInstances are drawn: {error}");
            None
        }
    }
}
