//! From the main world: which entities use which sets, and what changed in the sets.

use super::{
    bounds::SetSphere,
    buffers::InstanceBuffers,
    clock::{CpuClock, CpuStage},
    components::{GpuInstances, InstanceMeshUniforms},
    names::AssetNames,
    pipeline::can_draw_sets,
    plugin::GpuCullingSettings,
    record::Recorded,
    tuning::Tunings,
    upload::{KnownSet, KnownSets, Reserved, UploadInbox, Uploads},
    verify::Verifier,
};
use crate::{
    cull::{BoundingSphere, Compaction, CullError, Culler, CullerOptions, CullingTier, SetId},
    instance::InstanceSet,
};

use bevy::{
    asset::RenderAssetUsages,
    camera::visibility::NoFrustumCulling,
    log::{error, info, warn},
    math::Affine3A,
    pbr::Lightmap,
    platform::collections::HashSet,
    prelude::*,
    render::{
        Extract,
        renderer::{RenderDevice, RenderQueue},
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
    has_started: bool,
    /// It has started since the last extraction.
    is_fresh: bool,
    /// Storage buffers that a vertex stage may have on it.
    pub vertex_buffers: u32,
    /// Sets whose instances the GPU wrote on a device that was lost.
    lost: HashSet<AssetId<InstanceSet>>,
    settings: GpuCullingSettings,
    /// Tunings of the device.
    tunings: Tunings,
    /// Increases with every culler that is made.
    pub made: u64,
    known: KnownSets,
    /// Sets of which a warning was logged.
    told: HashSet<AssetId<InstanceSet>>,
    /// Bytes of new sets that the last frame brought.
    streamed: u64,
    next_id: u64,
    /// Counts extractions.
    frame: u64,
    /// Entities with [`GpuInstances`], also those whose set or mesh is not loaded yet or was refused: Bevy must not
    /// draw them as single meshes.
    pub entities: Vec<MainEntity>,
    /// Those that ask for a `MeshUniform` for each survivor.
    pub by_uniforms: MainEntityHashSet,
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

/// What extraction reads of an entity with a set.
type SetEntity = (
    Entity,
    &'static GpuInstances,
    Option<&'static SetSphere>,
    &'static GlobalTransform,
    Has<NoFrustumCulling>,
    Has<InstanceMeshUniforms>,
    Has<Lightmap>,
);

/// Makes the culler for the device: when the renderer starts, and when it starts again after a lost device.
pub(super) fn init_culler(
    mut gpu: ResMut<GpuCuller>,
    mut buffers: ResMut<InstanceBuffers>,
    settings: Res<GpuCullingSettings>,
    (device, queue): (Res<RenderDevice>, Res<RenderQueue>),
) {
    gpu.leave_device(&mut buffers);
    gpu.settings = settings.clone();
    gpu.culler = make_culler((&device, &queue), &settings, &mut gpu.tunings);
    (gpu.has_started, gpu.is_fresh) = (true, true);
    gpu.vertex_buffers = device.limits().max_storage_buffers_per_shader_stage;
}

impl GpuCuller {
    /// Forgets all that lies on the device. Sets are then uploaded again, as far as the CPU has them.
    fn leave_device(&mut self, buffers: &mut InstanceBuffers) {
        self.has_started = false;
        self.lost.extend(buffers.ids());
        self.culler = None;
        self.tunings = Tunings::default();
        self.made += 1;
        self.known.clear();
        self.sets.clear();
        self.streamed = 0;
        self.recorded = Recorded::default();
        buffers.clear();
    }
}

/// A culler as asked for, or the best that the device can do, with a line that says why.
fn make_culler(
    (device, queue): (&RenderDevice, &RenderQueue),
    settings: &GpuCullingSettings,
    tunings: &mut Tunings,
) -> Option<Culler> {
    let on: (_, &wgpu::Queue) = (device.wgpu_device(), queue);
    let device = on.0;
    if let Err(missing) = can_draw_sets(&device.limits()) {
        error!("GPU culling is off, no GpuInstances are drawn: {missing}");
        return None;
    }
    let mut options = settings.options();
    let mut make = |options: &CullerOptions| {
        let tuning = tunings.find(settings.tuning, on, options);
        let options = options.clone();
        Culler::new(device, CullerOptions { tuning, ..options })
    };
    let mut made = make(&options);
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
        made = make(&options);
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

/// Notes the entities with sets and uploads what changed of their sets, straight from the assets' memory.
pub(super) fn extract_sets(
    mut gpu: ResMut<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    entities: Extract<Query<SetEntity>>,
    assets: Extract<Res<Assets<InstanceSet>>>,
    (device, queue): (Res<RenderDevice>, Res<RenderQueue>),
    (verifier, server): (Res<Verifier>, Option<Res<AssetServer>>),
    (mut buffers, clock, inbox): (ResMut<InstanceBuffers>, Res<CpuClock>, Res<UploadInbox>),
) {
    let _running = clock.start(CpuStage::Extract);
    let gpu = &mut *gpu;
    let names = AssetNames(server.as_deref());
    let is_fresh = core::mem::take(&mut gpu.is_fresh);
    if device.is_changed() && !is_fresh {
        // Between two devices: the renderer has not started on the new one.
        gpu.leave_device(&mut buffers);
    }
    if gpu.settings != *settings && gpu.has_started {
        if !gpu.settings.same_culler(&settings) {
            let mut old = gpu.culler.take();
            gpu.made += 1;
            gpu.culler = make_culler((&device, &queue), &settings, &mut gpu.tunings);
            let adopted = match (&mut gpu.culler, &mut old) {
                (Some(culler), Some(old)) => culler.adopt_sets(old),
                _ => false,
            };
            if !adopted {
                gpu.known.clear();
                buffers.clear();
            }
        }
        gpu.settings = settings.clone();
    }
    gpu.frame += 1;
    gpu.sets.clear();
    gpu.entities.clear();
    gpu.unculled.clear();
    gpu.by_uniforms.clear();
    gpu.lightmapped.clear();
    let asking = entities.iter().filter(|entity| entity.5);
    gpu.by_uniforms
        .extend(asking.map(|(entity, ..)| MainEntity::from(entity)));
    let lightmapped = entities.iter().filter(|entity| entity.6);
    gpu.lightmapped
        .extend(lightmapped.map(|(entity, ..)| MainEntity::from(entity)));
    let Some(culler) = &mut gpu.culler else {
        gpu.entities
            .extend(entities.iter().map(|(entity, ..)| MainEntity::from(entity)));
        return;
    };
    // Their room is free for what comes. An unused set keeps its place as long as its asset lives.
    gpu.known.retain(|asset, known| {
        let lives = assets.contains(*asset);
        if !lives {
            culler.remove_set(known.id);
            buffers.remove(*asset);
        }
        lives
    });
    let copies = verifier.is_requested();
    let budget = settings.upload_bytes();
    let on: (_, &wgpu::Queue) = (device.wgpu_device(), &queue);
    let mut uploads = Uploads::new(culler, on, budget, (gpu.streamed, gpu.frame));
    for (entity, instances, sphere, transform, keep_all, ..) in &entities {
        let entity = MainEntity::from(entity);
        gpu.entities.push(entity);
        let asset = instances.id();
        let (Some(set), Some(sphere)) = (assets.get(asset), sphere) else {
            continue;
        };
        if !set.asset_usage.contains(RenderAssetUsages::RENDER_WORLD) {
            if gpu.told.insert(asset) {
                warn!(
                    "GpuInstances on {}: {} is not drawn, because its asset_usage lacks RENDER_WORLD: add it",
                    entity.id(),
                    names.of(asset)
                );
            }
            continue;
        }
        let known = gpu.known.entry(asset).or_insert_with(|| {
            gpu.next_id += 1;
            KnownSet::new(SetId(gpu.next_id))
        });
        if known.used_in != gpu.frame {
            known.used_in = gpu.frame;
            known.user = Some(entity);
            if set.written().is_some() {
                match uploads.reserve_written(asset, known, set) {
                    Reserved::Moved(regions) => {
                        if gpu.lost.remove(&asset) {
                            warn!(
                                "{}: the device was lost, and with it what the GPU wrote: the set is empty until it is \
                                 written again",
                                names.of(asset)
                            );
                        }
                        buffers.insert(asset, regions);
                    }
                    Reserved::Kept => {}
                    Reserved::Refused => buffers.remove(asset),
                }
                buffers.set_live(asset, set.len() as u32);
            } else {
                buffers.remove(asset);
                uploads.catch_up(asset, known, set);
            }
        }
        if keep_all {
            gpu.unculled.insert(entity);
        }
        gpu.sets.push(ExtractedSet {
            entity,
            set: known.id,
            sphere: sphere.0,
            world_from_local: transform.affine(),
            keep_all,
        });
    }
    uploads.advance(&mut gpu.known, &assets);
    gpu.streamed = uploads.streamed;
    for (asset, problem) in core::mem::take(&mut uploads.problems) {
        let entity = gpu.known.get(&asset).and_then(|known| known.user);
        let entity = entity.map_or_else(String::new, |user| {
            format!("GpuInstances on {}: ", user.id())
        });
        error!("{entity}{} is not drawn: {problem}", names.of(asset));
    }
    uploads.send(&inbox);
    if copies {
        let used = gpu
            .known
            .iter()
            .filter(|(_, known)| known.used_in == gpu.frame);
        for (asset, known) in used {
            if let Some(set) = assets.get(*asset) {
                verifier.keep(known.id, set, known.arrived);
            }
        }
    }
}

impl GpuCuller {
    /// The tier in use.
    pub fn tier(&self) -> Option<CullingTier> {
        self.culler.as_ref().map(Culler::tier)
    }
}
