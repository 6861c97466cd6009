//! From the main world: which entities use which sets, and what changed in the sets.

use super::{
    bounds::SetSphere,
    components::{GpuInstances, InstanceMeshUniforms},
    cpu_times::{CpuClock, CpuStage},
    culler::{ExtractedSet, GpuCuller, make_culler},
    gpu_written::InstanceBuffers,
    names::AssetNames,
    settings::GpuCullingSettings,
    upload::{KnownSet, Reserved, UploadInbox, Uploads},
    verify::Verifier,
};
use crate::{cull::SetId, instance::InstanceSet};
use bevy::{
    asset::RenderAssetUsages,
    camera::visibility::NoFrustumCulling,
    log::{error, warn},
    pbr::Lightmap,
    prelude::*,
    render::{
        Extract,
        renderer::{RenderDevice, RenderQueue},
        sync_world::MainEntity,
    },
};

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
            gpu.culler = make_culler(&device, &settings);
            let adopted = match (&mut gpu.culler, &mut old) {
                (Some(culler), Some(old)) => culler.store_mut().adopt_sets(old.store_mut()),
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
    gpu.asks_expanded.clear();
    gpu.lightmapped.clear();
    let asking = entities.iter().filter(|entity| entity.5);
    gpu.asks_expanded
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
            culler.store_mut().remove_set(known.id);
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
