//! From the main world: which entities use which sets, and what changed in the sets.

use super::{
    bounds::SetSphere,
    buffers::InstanceBuffers,
    clock::{CpuClock, CpuStage},
    components::{GpuInstances, InstanceMeshUniforms},
    plugin::GpuCullingSettings,
    record::Recorded,
    upload::{KnownSet, KnownSets, UploadInbox, Uploads},
    verify::Verifier,
};
use crate::{
    cull::{BoundingSphere, Compaction, CullError, Culler, CullingTier, SetId},
    instance::InstanceSet,
};

use bevy::{
    asset::RenderAssetUsages,
    camera::visibility::NoFrustumCulling,
    log::{error, info, warn},
    math::Affine3A,
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
    settings: GpuCullingSettings,
    /// Increases with every culler that is made.
    pub made: u64,
    known: KnownSets,
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
);

/// Makes the culler for the device.
pub(super) fn init_culler(
    mut gpu: ResMut<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    device: Res<RenderDevice>,
) {
    gpu.settings = settings.clone();
    gpu.culler = make_culler(&device, &settings);
    gpu.made += 1;
}

/// A culler as asked for, or the best that the device can do, with a line that says why.
fn make_culler(device: &RenderDevice, settings: &GpuCullingSettings) -> Option<Culler> {
    let device = device.wgpu_device();
    let mut options = settings.options();
    let mut made = Culler::new(device, options.clone());
    // What the device lacks gives way to what it has, one thing at a time.
    for _ in 0..2 {
        match &made {
            Err(error @ CullError::TierUnsupported { .. }) => {
                warn!("{error}");
                options.tier = None;
            }
            Err(error @ CullError::CompactionUnsupported { .. }) => {
                warn!("{error}");
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
            error!("GPU culling is off: {error}");
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
    verifier: Res<Verifier>,
    (mut buffers, clock, inbox): (ResMut<InstanceBuffers>, Res<CpuClock>, Res<UploadInbox>),
) {
    let _running = clock.start(CpuStage::Extract);
    let gpu = &mut *gpu;
    if gpu.settings != *settings {
        if !gpu.settings.same_culler(&settings) {
            let mut old = gpu.culler.take();
            gpu.made += 1;
            gpu.culler = make_culler(&device, &settings);
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
    let asking = entities.iter().filter(|entity| entity.5);
    gpu.by_uniforms
        .extend(asking.map(|(entity, ..)| MainEntity::from(entity)));
    let Some(culler) = &mut gpu.culler else {
        gpu.entities
            .extend(entities.iter().map(|(entity, ..)| MainEntity::from(entity)));
        return;
    };
    let copies = verifier.is_requested();
    let budget = settings.upload_bytes();
    let on: (_, &wgpu::Queue) = (device.wgpu_device(), &queue);
    let mut uploads = Uploads::new(culler, on, budget, gpu.streamed);
    for (entity, instances, sphere, transform, keep_all, _) in &entities {
        let entity = MainEntity::from(entity);
        gpu.entities.push(entity);
        let asset = instances.id();
        let (Some(set), Some(sphere)) = (assets.get(asset), sphere) else {
            continue;
        };
        if !set.asset_usage.contains(RenderAssetUsages::RENDER_WORLD) {
            continue;
        }
        let known = gpu.known.entry(asset).or_insert_with(|| {
            gpu.next_id += 1;
            KnownSet::new(SetId(gpu.next_id))
        });
        if known.used_in != gpu.frame {
            known.used_in = gpu.frame;
            let result = if set.written().is_some() {
                uploads.reserve_written(known, set).map(|regions| {
                    if let Some(regions) = regions {
                        buffers.insert(asset, regions);
                    }
                    buffers.set_live(asset, set.len() as u32);
                })
            } else {
                buffers.remove(asset);
                uploads.catch_up(asset, known, set)
            };
            if let Err(error) = &result
                && !known.refused
            {
                error!("a set could not be uploaded: {error}");
            }
            known.refused = result.is_err();
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
    if let Err(error) = uploads.advance(&mut gpu.known, &assets) {
        error!("a set could not be uploaded: {error}");
    }
    gpu.streamed = uploads.streamed;
    uploads.send(&inbox);
    // A set that no entity uses keeps its place as long as its asset lives.
    let frame = gpu.frame;
    gpu.known.retain(|asset, known| {
        let lives = known.used_in == frame || assets.contains(*asset);
        if !lives {
            culler.remove_set(known.id);
            buffers.remove(*asset);
        } else if copies
            && known.used_in == frame
            && let Some(set) = assets.get(*asset)
        {
            verifier.keep(known.id, set, known.arrived);
        }
        lives
    });
}

impl GpuCuller {
    /// The tier in use.
    pub fn tier(&self) -> Option<CullingTier> {
        self.culler.as_ref().map(Culler::tier)
    }
}
