//! From the main world: the entities that have sets, and what changed in the sets.

use super::{
    bounds::SetSphere,
    components::{GpuInstances, InstanceMeshUniforms, NoInstanceSorting},
    cpu_times::{CpuClock, CpuStage},
    culler::{ExtractedSet, GpuCuller, make_culler},
    gpu::RenderGpu,
    gpu_written::InstanceBuffers,
    lods::{
        AggregateDetail, ImpostorOf, InstanceVisibilityRange, SetImpostor, SetLods, SetRange, Share,
    },
    meshlets::MeshletMesh3d,
    names::AssetNames,
    occlusion::NoOcclusionCulling,
    offset::{InstanceOffset, stretch_of},
    settings::GpuCullingSettings,
    upload::{Reserved, UploadInbox, Uploads},
    verify::Verifier,
};
use crate::instance::InstanceSet;
use bevy::{
    asset::RenderAssetUsages,
    camera::visibility::NoFrustumCulling,
    ecs::{query::QueryData, system::SystemParam},
    log::{error, warn},
    math::Affine3A,
    pbr::Lightmap,
    prelude::*,
    render::{Extract, sync_world::MainEntity},
};

/// An entity with a set.
#[derive(QueryData)]
pub(super) struct SetEntity {
    entity: Entity,
    instances: &'static GpuInstances,
    sphere: Option<&'static SetSphere>,
    offset: Option<&'static InstanceOffset>,
    transform: &'static GlobalTransform,
    keep_all: Has<NoFrustumCulling>,
    is_unsorted: Has<NoInstanceSorting>,
    is_never_hidden: Has<NoOcclusionCulling>,
    lods: Option<&'static SetLods>,
    range: Option<&'static InstanceVisibilityRange>,
    detail: Option<&'static AggregateDetail>,
    impostor: Option<&'static SetImpostor>,
    impostor_of: Option<&'static ImpostorOf>,
    asks_expanded: Has<InstanceMeshUniforms>,
    is_lightmapped: Has<Lightmap>,
    has_meshlets: Has<MeshletMesh3d>,
}

/// What extraction tells others.
#[derive(SystemParam)]
pub(super) struct Outputs<'w> {
    buffers: ResMut<'w, InstanceBuffers>,
    inbox: Res<'w, UploadInbox>,
    verifier: Res<'w, Verifier>,
}

/// Notes the entities with sets, and uploads what changed in their sets straight from the assets.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(super) fn extract_sets(
    mut sets: ResMut<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    entities: Extract<Query<SetEntity>>,
    assets: Extract<Res<Assets<InstanceSet>>>,
    gpu: RenderGpu,
    server: Option<Res<AssetServer>>,
    mut outputs: Outputs,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Extract);
    let sets = &mut *sets;
    let buffers = &mut *outputs.buffers;
    let names = AssetNames(server.as_deref());
    follow_device(sets, &settings, &gpu, buffers);
    sets.frame += 1;
    note_entities(sets, &entities);
    let Some(culler) = &mut sets.culler else {
        return;
    };
    // An unused set keeps its place as long as its asset lives.
    sets.known.retain(|asset, known| {
        let lives = assets.contains(*asset);
        if !lives {
            for id in known.ids() {
                culler.store_mut().remove_set(id);
            }
            buffers.remove(*asset);
        }
        lives
    });
    let mut uploads = Uploads::new(
        culler,
        gpu.wgpu(),
        (settings.upload_bytes(), sets.streamed),
        sets.frame,
        &mut sets.last_id,
    );
    for item in &entities {
        let entity = MainEntity::from(item.entity);
        // An impostor is tested as the instances of its parent are.
        let full = parent_of(&item, &entities);
        let SetEntityItem {
            instances,
            keep_all,
            is_unsorted,
            ..
        } = item;
        let SetEntityItem {
            sphere, transform, ..
        } = full.as_ref().unwrap_or(&item);
        let asset = instances.id();
        let (Some(set), Some(sphere)) = (assets.get(asset), sphere) else {
            continue;
        };
        if item.offset.is_some_and(|offset| !offset.is_valid()) {
            continue;
        }
        if !set.asset_usage.contains(RenderAssetUsages::RENDER_WORLD) {
            if sets.told.is_new(asset) {
                warn!(
                    "GpuInstances on {}: {} is not drawn, because its asset_usage lacks RENDER_WORLD: add it",
                    entity.id(),
                    names.of(asset)
                );
            }
            continue;
        }
        let known = (sets.known.entry(asset)).or_insert_with(|| uploads.new_set());
        if known.used_in != sets.frame {
            known.used_in = sets.frame;
            known.user = Some(entity);
            if set.written().is_some() {
                let is_unknown = buffers.get(asset).is_none();
                match uploads.reserve_written(asset, known, set, is_unknown) {
                    Reserved::Moved(regions) => {
                        if sets.lost.remove(&asset) {
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
        } else {
            sets.shared.insert(known.current.id);
        }
        if keep_all {
            sets.unculled.insert(entity);
        }
        sets.sets.push(ExtractedSet {
            entity,
            set: known.current.id,
            sphere: sphere.0,
            offset: offset_of(&item, full.as_ref()),
            world_from_local: transform.affine(),
            keep_all,
            is_unsorted,
            is_never_hidden: item.is_never_hidden
                || full.as_ref().is_some_and(|full| full.is_never_hidden),
            has_meshlets: item.has_meshlets,
            lods: item.lods.map(|lods| lods.levels.clone()),
            full: item.lods.and_then(|lods| lods.full.clone()),
            fade: fade_of(&item, full.as_ref()),
            range: range_of(&item, full.as_ref()),
            thin_below: thin_below(&item, full.as_ref()),
            share: share_of(&item, full.as_ref()),
        });
    }
    uploads.advance(&mut sets.known, &assets);
    let is_used = |asset| {
        let known = sets.known.get(&asset);
        known.is_some_and(|known| known.used_in == sets.frame)
    };
    buffers.retain(is_used);
    sets.streamed = uploads.streamed;
    for (asset, problem) in core::mem::take(&mut uploads.problems) {
        let entity = sets.known.get(&asset).and_then(|known| known.user);
        let entity = entity.map_or_else(String::new, |user| {
            format!("GpuInstances on {}: ", user.id())
        });
        error!("{entity}{} is not drawn: {problem}", names.of(asset));
    }
    uploads.send(&outputs.inbox);
    if outputs.verifier.is_requested() {
        copy_for_check(sets, &assets, &outputs.verifier);
    }
}

/// The entity whose set an impostor draws; `None` if the entity is none.
fn parent_of<'a>(
    item: &SetEntityItem,
    entities: &'a Query<SetEntity>,
) -> Option<SetEntityItem<'a, 'a>> {
    entities.get(item.impostor_of?.0).ok()
}

/// The entity's own offset, or the offset of the entity whose impostor it is.
fn offset_of(item: &SetEntityItem, full: Option<&SetEntityItem>) -> Option<Affine3A> {
    let inherited = full.and_then(|full| full.offset);
    item.offset.or(inherited)?.checked()
}

/// How long the entity's instances fade from level to level.
fn fade_of(item: &SetEntityItem, full: Option<&SetEntityItem>) -> f32 {
    let lods = match full {
        Some(full) => full.lods,
        None => item.lods,
    };
    lods.map_or(0.0, |lods| lods.fade)
}

/// The entity's own range, or the range of the entity whose impostor it is.
fn range_of(item: &SetEntityItem, full: Option<&SetEntityItem>) -> Option<SetRange> {
    let own = item.range.and_then(InstanceVisibilityRange::checked);
    let of_full = full.and_then(|full| full.range?.checked());
    own.or(of_full)
}

/// The diameter in pixels below which instances are thinned out: the entity's own, or of the entity
/// whose impostor it is.
fn thin_below(item: &SetEntityItem, full: Option<&SetEntityItem>) -> f32 {
    let of_full = full.and_then(|full| full.detail);
    let detail = item.detail.or(of_full);
    detail.map_or(0.0, |detail| detail.checked())
}

/// Which of the set's instances the entity draws. Errors are in the units of the full entity's
/// mesh.
fn share_of(item: &SetEntityItem, full: Option<&SetEntityItem>) -> Share {
    let offset = match full {
        Some(full) => full.offset,
        None => item.offset,
    };
    let offset = offset.and_then(InstanceOffset::checked);
    let stretch = stretch_of(offset.as_ref());
    match (full, item.impostor) {
        (Some(full), _) => Share::Far {
            full: full.entity.into(),
            error: full
                .impostor
                .map_or(f32::INFINITY, |known| known.error * stretch),
            levels: 1 + full.lods.map_or(0, |lods| lods.levels.len()) as u32,
        },
        (None, Some(impostor)) => Share::Near {
            impostor: impostor.entity.into(),
            error: impostor.error * stretch,
        },
        (None, None) => Share::All,
    }
}

/// Replaces the culler if the device or the settings ask for it.
fn follow_device(
    sets: &mut GpuCuller,
    settings: &GpuCullingSettings,
    gpu: &RenderGpu,
    buffers: &mut InstanceBuffers,
) {
    let is_fresh = core::mem::take(&mut sets.is_fresh);
    if gpu.device.is_changed() && !is_fresh {
        // The renderer has not started on the new device.
        sets.leave_device(buffers);
    }
    if sets.settings == *settings || !sets.has_started {
        return;
    }
    if !sets.settings.same_culler(settings) {
        let mut old = sets.culler.take();
        sets.made += 1;
        sets.culler = make_culler(gpu.wgpu(), settings, &mut sets.tunings);
        let adopted = match (&mut sets.culler, &mut old) {
            (Some(culler), Some(old)) => culler.store_mut().adopt_sets(old.store_mut()),
            _ => false,
        };
        if !adopted {
            sets.known.clear();
            buffers.clear();
        }
    }
    sets.settings = settings.clone();
}

/// Starts the lists of the frame with all entities that have sets.
fn note_entities(sets: &mut GpuCuller, entities: &Query<SetEntity>) {
    sets.sets.clear();
    sets.shared.clear();
    sets.entities.clear();
    sets.unculled.clear();
    sets.asks_expanded.clear();
    sets.lightmapped.clear();
    sets.fading.clear();
    for item in entities {
        let entity = MainEntity::from(item.entity);
        sets.entities.push(entity);
        if item.asks_expanded {
            sets.asks_expanded.insert(entity);
        }
        let full = parent_of(&item, entities);
        let range = range_of(&item, full.as_ref());
        if fade_of(&item, full.as_ref()) > 0.0 || range.is_some_and(SetRange::fades) {
            sets.fading.insert(entity);
        }
        if item.is_lightmapped {
            sets.lightmapped.insert(entity);
        }
    }
}

/// Copies what a requested check compares the GPU with.
fn copy_for_check(sets: &GpuCuller, assets: &Assets<InstanceSet>, verifier: &Verifier) {
    for (asset, known) in &sets.known {
        if known.used_in == sets.frame
            && known.is_current()
            && let Some(set) = assets.get(*asset)
        {
            verifier.keep(known.current.id, set, known.current.arrived);
        }
    }
}
