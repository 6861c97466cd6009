//! From the main world: the entities that have sets, and what changed in the sets.
//!
//! 1. `roster`: whether the entities are as the last extraction read them. Most frames read them
//!    no more, and look only at the revisions of the sets.
//! 2. `entity`: what is read of an entity.

mod entity;
mod roster;

pub(super) use roster::Roster;

use super::{
    cpu_times::{CpuClock, CpuStage},
    culler::{GpuCuller, make_culler},
    gpu::RenderGpu,
    gpu_written::InstanceBuffers,
    names::AssetNames,
    settings::GpuCullingSettings,
    upload::{KnownSet, Reserved, UploadInbox, Uploads},
};
use crate::instance::InstanceSet;
use bevy::{
    ecs::system::SystemParam,
    log::{error, warn},
    platform::collections::HashSet,
    prelude::*,
    render::{Extract, sync_world::MainEntity},
};
use entity::{SetEntity, fades, parent_of, use_of};
use roster::{EntityChanges, is_extracted};

/// The entities with sets, and their sets.
#[derive(SystemParam)]
pub(super) struct Sources<'w, 's> {
    entities: Extract<'w, 's, Query<'static, 'static, SetEntity>>,
    changes: EntityChanges<'w, 's>,
    assets: Extract<'w, 's, Res<'static, Assets<InstanceSet>>>,
    server: Option<Res<'w, AssetServer>>,
}

/// What extraction tells others.
#[derive(SystemParam)]
pub(super) struct Outputs<'w> {
    buffers: ResMut<'w, InstanceBuffers>,
    inbox: Res<'w, UploadInbox>,
}

/// Notes the entities with sets, and uploads what changed in their sets straight from the assets.
pub(super) fn extract_sets(
    mut sets: ResMut<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    sources: Sources,
    gpu: RenderGpu,
    mut outputs: Outputs,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Extract);
    let sets = &mut *sets;
    let buffers = &mut *outputs.buffers;
    let assets: &Assets<InstanceSet> = &sources.assets;
    let names = AssetNames(sources.server.as_deref());
    follow_device(sets, &settings, &gpu, buffers);
    sets.frame += 1;
    let mut unsettled = Vec::new();
    let stays = sets.roster.stays(&sources.changes, assets);
    // Most frames change no asset.
    let rests = stays && sets.roster.is_settled && !sources.assets.is_changed();
    let stays = rests || look_at_assets(sets, assets, buffers, &mut unsettled) && stays;
    if !stays {
        note_entities(sets, &sources);
    }
    let GpuCuller {
        culler: Some(culler),
        known: all_known,
        lost,
        last_id,
        roster,
        ..
    } = sets
    else {
        sets.roster.forget();
        return;
    };
    let mut uploads = Uploads::new(
        culler,
        gpu.wgpu(),
        (settings.upload_bytes(), sets.streamed),
        sets.frame,
        last_id,
    );
    if stays {
        roster.follow(&sources.changes, &mut sets.sets, sets.frame);
        for asset in unsettled {
            let (Some(known), Some(set)) = (all_known.get_mut(&asset), assets.get(asset)) else {
                continue;
            };
            let before = known.current.id;
            catch_up(&mut uploads, (asset, known, set), (buffers, lost), &names);
            let now = known.current.id;
            if now != before {
                let of_asset = sets.sets.iter_mut().filter(|set| set.set == before);
                of_asset.for_each(|set| (set.set, set.changed_in) = (now, sets.frame));
                if sets.shared.remove(&before) {
                    sets.shared.insert(now);
                }
            }
        }
    } else {
        for item in &sources.entities {
            let entity = MainEntity::from(item.entity);
            let full = parent_of(&item, &sources.entities);
            let asset = item.instances.id();
            let Some(set) = assets.get(asset) else {
                roster.add_absent(asset);
                continue;
            };
            let sphere = full.as_ref().map_or(item.sphere, |full| full.sphere);
            let Some(sphere) = sphere else {
                continue;
            };
            if item.offset.is_some_and(|offset| !offset.is_valid()) {
                continue;
            }
            if !is_extracted(set) {
                if sets.told.is_new(asset) {
                    warn!(
                        "GpuInstances on {}: {} is not drawn, because its asset_usage lacks RENDER_WORLD: add it",
                        entity.id(),
                        names.of(asset)
                    );
                }
                roster.add_absent(asset);
                continue;
            }
            let known = (all_known.entry(asset)).or_insert_with(|| uploads.new_set());
            if known.used_in != sets.listed_in {
                known.used_in = sets.listed_in;
                known.user = Some(entity);
                catch_up(&mut uploads, (asset, known, set), (buffers, lost), &names);
            } else {
                sets.shared.insert(known.current.id);
            }
            if item.keep_all {
                sets.unculled.insert(entity);
            }
            let of = (known.current.id, sphere);
            let found = use_of(&item, full.as_ref(), of, sets.frame);
            sets.sets.push(found);
        }
        roster.end(&sets.sets);
    }
    uploads.advance(all_known, assets);
    let is_used = |asset| {
        let known = all_known.get(&asset);
        known.is_some_and(|known| known.used_in == sets.listed_in)
    };
    buffers.retain(is_used);
    sets.streamed = uploads.streamed;
    for (asset, problem) in core::mem::take(&mut uploads.problems) {
        let entity = all_known.get(&asset).and_then(|known| known.user);
        let entity = entity.map_or_else(String::new, |user| {
            format!("GpuInstances on {}: ", user.id())
        });
        error!("{entity}{} is not drawn: {problem}", names.of(asset));
    }
    uploads.send(&outputs.inbox);
}

/// Removes sets whose assets are gone; an unused set keeps its place as long as its asset lives.
/// Notes in `unsettled` the sets in use that may have something to upload, in the order in which
/// they were first met. Returns whether each set in use is still there.
fn look_at_assets(
    sets: &mut GpuCuller,
    assets: &Assets<InstanceSet>,
    buffers: &mut InstanceBuffers,
    unsettled: &mut Vec<AssetId<InstanceSet>>,
) -> bool {
    let GpuCuller {
        culler: Some(culler),
        known,
        listed_in,
        roster,
        ..
    } = sets
    else {
        return false;
    };
    let mut all_stay = true;
    let mut found = Vec::new();
    known.retain(|asset, known| {
        let is_used = known.used_in == *listed_in;
        let Some(set) = assets.get(*asset) else {
            for id in known.ids() {
                culler.store_mut().remove_set(id);
            }
            buffers.remove(*asset);
            all_stay &= !is_used;
            return false;
        };
        all_stay &= !is_used || is_extracted(set);
        if is_used && !known.is_settled(set) {
            found.push((known.current.id, *asset));
        }
        true
    });
    found.sort_unstable_by_key(|(id, _)| *id);
    roster.is_settled = found.is_empty();
    unsettled.extend(found.into_iter().map(|(_, asset)| asset));
    all_stay
}

/// Uploads what changed of a set, or makes room for what the GPU writes.
fn catch_up(
    uploads: &mut Uploads<'_>,
    (asset, known, set): (AssetId<InstanceSet>, &mut KnownSet, &InstanceSet),
    (buffers, lost): (&mut InstanceBuffers, &mut HashSet<AssetId<InstanceSet>>),
    names: &AssetNames<'_>,
) {
    if set.written().is_none() {
        buffers.remove(asset);
        uploads.catch_up(asset, known, set);
        return;
    }
    let is_unknown = buffers.get(asset).is_none();
    match uploads.reserve_written(asset, known, set, is_unknown) {
        Reserved::Moved(regions) => {
            if lost.remove(&asset) {
                warn!(
                    "{}: the device was lost, and with it what the GPU wrote: the set is empty until it is written again",
                    names.of(asset)
                );
            }
            buffers.insert(asset, regions);
        }
        Reserved::Kept => {}
        Reserved::Refused => buffers.remove(asset),
    }
    buffers.set_live(asset, set.len() as u32);
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
            sets.roster.forget();
            buffers.clear();
        }
    }
    sets.settings = settings.clone();
}

/// Starts the lists of the frame with all entities that have sets.
fn note_entities(sets: &mut GpuCuller, sources: &Sources) {
    sets.listed_in = sets.frame;
    sets.roster.start(&sources.changes);
    sets.sets.clear();
    sets.shared.clear();
    sets.entities.clear();
    sets.unculled.clear();
    sets.asks_expanded.clear();
    sets.lightmapped.clear();
    sets.fading.clear();
    for item in &sources.entities {
        let entity = MainEntity::from(item.entity);
        sets.entities.push(entity);
        if item.asks_expanded {
            sets.asks_expanded.insert(entity);
        }
        let full = parent_of(&item, &sources.entities);
        if fades(&item, full.as_ref()) {
            sets.fading.insert(entity);
        }
        if item.is_lightmapped {
            sets.lightmapped.insert(entity);
        }
    }
}
