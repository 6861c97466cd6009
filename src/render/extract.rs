//! From the main world: which entities use which sets, and what changed in the sets.

use super::{
    bounds::SetSphere, components::GpuInstances, plugin::GpuCullingSettings, verify::Verifier,
};
use crate::{
    cull::{
        BoundingSphere, Channels, Compaction, CullError, Culler, CullingTier, Residency, SetId,
    },
    instance::{InstanceSet, SetChanges},
};
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
    /// Entities whose set can be culled this frame.
    pub sets: MainEntityHashMap<ExtractedSet>,
}

/// What the GPU has of an asset.
struct KnownSet {
    id: SetId,
    lineage: u64,
    revision: u64,
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
) {
    let gpu = &mut *gpu;
    if gpu.settings != *settings {
        gpu.settings = settings.clone();
        gpu.culler = make_culler(&device, &settings);
        gpu.made += 1;
        gpu.known.clear();
    }
    gpu.sets.clear();
    gpu.entities.clear();
    gpu.entities
        .extend(entities.iter().map(|(entity, ..)| MainEntity::from(entity)));
    let Some(culler) = &mut gpu.culler else {
        return;
    };
    let mut used = HashMap::new();
    for (entity, instances, sphere, transform, keep_all) in &entities {
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
                }
            });
            if let Err(error) = upload(culler, (device.wgpu_device(), &queue), known, set) {
                error!("a set could not be uploaded: {error}");
            }
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
    if known.lineage == set.lineage() && known.revision == set.revision() {
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
    };
    if culler.reserve_set(device, known.id, set.len() as u32, channels) == Residency::Moved {
        changes = SetChanges::Everything;
    }
    let all = core::slice::from_ref(&(0..set.len())).to_vec();
    let (instances, scales, tags) = match changes {
        SetChanges::Nothing => Default::default(),
        SetChanges::Everything => (all.clone(), all.clone(), all),
        SetChanges::Ranges(ranges) => (ranges.instances, ranges.scales, ranges.tags),
    };
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
    Ok(())
}

impl GpuCuller {
    /// The tier in use.
    pub fn tier(&self) -> Option<CullingTier> {
        self.culler.as_ref().map(Culler::tier)
    }
}
