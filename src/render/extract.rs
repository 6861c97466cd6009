//! From the main world: which entities use which sets, and what changed in the sets.

use super::{
    bounds::SetSphere,
    buffers::InstanceBuffers,
    components::{GpuInstances, InstanceMeshUniforms},
    plugin::GpuCullingSettings,
    verify::Verifier,
};
use crate::{
    cull::{
        BoundingSphere, Channels, Compaction, CullError, Culler, CullingTier, Residency, SetId,
        WrittenRegion,
    },
    instance::{InstanceSet, SetChanges},
};
use core::ops::Range;

use bevy::{
    camera::visibility::NoFrustumCulling,
    log::{error, info, warn},
    math::Affine3A,
    platform::collections::HashMap,
    prelude::*,
    render::{
        Extract,
        renderer::{RenderDevice, RenderQueue},
        sync_world::{MainEntity, MainEntityHashMap, MainEntityHashSet},
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
    known: HashMap<AssetId<InstanceSet>, KnownSet>,
    next_id: u64,
    /// Entities with [`GpuInstances`], also those whose set or mesh is not loaded yet or was refused: Bevy must not
    /// draw them as single meshes.
    pub entities: MainEntityHashSet,
    /// Those that ask for a `MeshUniform` for each survivor.
    pub by_uniforms: MainEntityHashSet,
    /// Entities whose set can be culled this frame.
    pub sets: MainEntityHashMap<ExtractedSet>,
}

/// What the GPU has of an asset.
struct KnownSet {
    id: SetId,
    lineage: u64,
    revision: u64,
    len: usize,
    /// What the last frame uploaded: it moved in that frame, and does not any more.
    moved: Vec<Range<usize>>,
    /// It was refused, and a line said so.
    refused: bool,
}

/// One entity's use of a set.
pub(super) struct ExtractedSet {
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
    mut buffers: ResMut<InstanceBuffers>,
) {
    let gpu = &mut *gpu;
    if gpu.settings != *settings {
        gpu.settings = settings.clone();
        gpu.culler = make_culler(&device, &settings);
        gpu.made += 1;
        gpu.known.clear();
        buffers.clear();
    }
    gpu.sets.clear();
    gpu.entities.clear();
    gpu.entities
        .extend(entities.iter().map(|(entity, ..)| MainEntity::from(entity)));
    gpu.by_uniforms.clear();
    let asking = entities.iter().filter(|entity| entity.5);
    gpu.by_uniforms
        .extend(asking.map(|(entity, ..)| MainEntity::from(entity)));
    let Some(culler) = &mut gpu.culler else {
        return;
    };
    let mut used = HashMap::new();
    for (entity, instances, sphere, transform, keep_all, _) in &entities {
        let asset = instances.id();
        let (Some(set), Some(sphere)) = (assets.get(asset), sphere) else {
            continue;
        };
        let id = *used.entry(asset).or_insert_with(|| {
            let known = gpu.known.entry(asset).or_insert_with(|| {
                gpu.next_id += 1;
                KnownSet {
                    id: SetId(gpu.next_id),
                    lineage: 0,
                    revision: 0,
                    len: 0,
                    moved: Vec::new(),
                    refused: false,
                }
            });
            let result = if set.written().is_some() {
                let device = device.wgpu_device();
                reserve_written(culler, (device, &queue), known, set).map(|regions| {
                    if let Some(regions) = regions {
                        buffers.insert(asset, regions);
                    }
                    buffers.set_live(asset, set.len() as u32);
                })
            } else {
                buffers.remove(asset);
                upload(culler, (device.wgpu_device(), &queue), known, set)
            };
            if let Err(error) = &result
                && !known.refused
            {
                error!("a set could not be uploaded: {error}");
            }
            known.refused = result.is_err();
            verifier.keep(known.id, set);
            known.id
        });
        gpu.sets.insert(
            MainEntity::from(entity),
            ExtractedSet {
                set: id,
                sphere: sphere.0,
                world_from_local: transform.affine(),
                keep_all,
            },
        );
    }
    // A set that no entity uses keeps its place as long as its asset lives.
    gpu.known.retain(|asset, known| {
        let lives = used.contains_key(asset) || assets.contains(*asset);
        if !lives {
            culler.remove_set(known.id);
            buffers.remove(*asset);
        }
        lives
    });
}

/// Uploads what changed since `known`.
fn upload(
    culler: &mut Culler,
    (device, queue): (&wgpu::Device, &RenderQueue),
    known: &mut KnownSet,
    set: &InstanceSet,
) -> Result<(), CullError> {
    let mut moved = core::mem::take(&mut known.moved);
    if known.lineage == set.lineage() && known.revision == set.revision() {
        if set.keeps_previous() && !moved.is_empty() {
            culler.keep_previous((device, queue), known.id, moved)?;
        }
        return Ok(());
    }
    let since = if known.lineage == set.lineage() {
        known.revision
    } else {
        0
    };
    let mut changes = set.changes_since(since);
    let channels = Channels {
        scale: set.scales().is_some(),
        tag: set.tags().is_some(),
        previous: set.keeps_previous(),
    };
    let nowhere = nowhere_before(&changes, if since == 0 { 0 } else { known.len }, set.len());
    if culler.reserve_set(device, known.id, set.len() as u32, channels) == Residency::Moved {
        changes = SetChanges::Everything;
        // It brought along where it was.
        moved.clear();
    }
    if channels.previous {
        culler.keep_previous((device, queue), known.id, moved)?;
    }
    let all = core::slice::from_ref(&(0..set.len())).to_vec();
    let (instances, scales, tags) = match changes {
        SetChanges::Nothing => Default::default(),
        SetChanges::Everything => (all.clone(), all.clone(), all),
        SetChanges::Ranges(ranges) => (ranges.instances, ranges.scales, ranges.tags),
    };
    if channels.previous {
        known.moved = instances.iter().chain(&scales).cloned().collect();
        for range in nowhere {
            let data = (
                &set.packed()[range.clone()],
                set.scales().map(|scales| &scales[range.clone()]),
            );
            culler.upload_previous(queue, known.id, range.start, data)?;
        }
    }
    for range in instances {
        culler.upload(queue, known.id, range.start, &set.packed()[range])?;
    }
    for (range, values) in scales
        .into_iter()
        .filter_map(|range| Some((range.clone(), &set.scales()?[range])))
    {
        culler.upload_scales(queue, known.id, range.start, values)?;
    }
    for (range, values) in tags
        .into_iter()
        .filter_map(|range| Some((range.clone(), &set.tags()?[range])))
    {
        culler.upload_tags(queue, known.id, range.start, values)?;
    }
    known.lineage = set.lineage();
    known.revision = set.revision();
    known.len = set.len();
    Ok(())
}

/// Instances that were nowhere in the frame before, when the set had `before` of them: they have no motion.
fn nowhere_before(changes: &SetChanges, before: usize, len: usize) -> Vec<Range<usize>> {
    match changes {
        SetChanges::Nothing => Vec::new(),
        SetChanges::Everything => core::slice::from_ref(&(0..len)).to_vec(),
        SetChanges::Ranges(ranges) => {
            let grown = before.min(len)..len;
            let renumbered = ranges.renumbered.iter().cloned();
            renumbered
                .chain([grown])
                .filter(|range| !range.is_empty())
                .collect()
        }
    }
}

/// Room for what the GPU writes; the buffers, if they are not those of the last frame.
fn reserve_written(
    culler: &mut Culler,
    on: (&wgpu::Device, &RenderQueue),
    known: &mut KnownSet,
    set: &InstanceSet,
) -> Result<Option<Vec<WrittenRegion>>, CullError> {
    let (Some(settings), Some(capacity)) = (set.written(), set.written_capacity()) else {
        return Ok(None);
    };
    let channels = Channels {
        scale: settings.scales,
        tag: settings.tags,
        previous: set.keeps_previous(),
    };
    let (device, queue) = on;
    let residency = culler.reserve_written(
        (device, queue),
        known.id,
        (capacity, set.len() as u32),
        channels,
        settings.classify,
    )?;
    // Another set in its place has nothing in common with it.
    known.lineage = 0;
    known.moved.clear();
    Ok((residency == Residency::Moved).then(|| culler.written_regions(known.id)))
}

impl GpuCuller {
    /// The tier in use.
    pub fn tier(&self) -> Option<CullingTier> {
        self.culler.as_ref().map(Culler::tier)
    }
}
