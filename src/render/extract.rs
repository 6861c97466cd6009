//! From the main world: the entities that have sets, and what changed in the sets.
//!
//! 1. `roster`: which entities are not as the last extraction read them. Most frames read none
//!    again, and look only at the revisions of the sets.
//! 2. `entity`: what is read of an entity.
//! 3. `lists`: the entities and their sets.
//! 4. `state`: what extractions know of both.
//! 5. `reader`: reads them, and has what changed in the sets uploaded.

mod entity;
mod lists;
mod reader;
mod roster;
mod state;

pub(super) use lists::SetLists;
pub(super) use state::Extraction;

use super::{
    cpu_times::{CpuClock, CpuStage},
    culler::GpuCuller,
    gpu::RenderGpu,
    gpu_written::InstanceBuffers,
    names::AssetNames,
    settings::GpuCullingSettings,
    upload::{UploadInbox, Uploads},
};
use crate::instance::InstanceSet;
use bevy::{ecs::system::SystemParam, log::error, prelude::*, render::Extract};
use entity::{SetEntity, parent_of};
use reader::{Reader, look_at_assets};
use roster::{EntityChanges, Reading};

/// The entities with sets, and their sets.
#[derive(SystemParam)]
pub(super) struct Sources<'w, 's> {
    entities: Extract<'w, 's, Query<'static, 'static, SetEntity>>,
    changes: EntityChanges<'w, 's>,
    assets: Extract<'w, 's, Res<'static, Assets<InstanceSet>>>,
    server: Option<Res<'w, AssetServer>>,
}

impl Sources<'_, '_> {
    /// Whether an entity is an impostor, or has one.
    fn has_impostor(&self, entity: Entity) -> bool {
        let item = self.entities.get(entity);
        item.is_ok_and(|item| item.has_impostor())
    }
}

/// What extraction tells others.
#[derive(SystemParam)]
pub(super) struct Outputs<'w> {
    buffers: ResMut<'w, InstanceBuffers>,
    inbox: Res<'w, UploadInbox>,
}

/// Notes the entities with sets, and uploads what changed in their sets straight from the assets.
pub(super) fn extract_sets(
    mut culling: ResMut<GpuCuller>,
    settings: Res<GpuCullingSettings>,
    sources: Sources,
    gpu: RenderGpu,
    mut outputs: Outputs,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Extract);
    let culling = &mut *culling;
    let buffers = &mut *outputs.buffers;
    let assets: &Assets<InstanceSet> = &sources.assets;
    follow_device(culling, &settings, &gpu, buffers);
    let GpuCuller {
        culler,
        extraction: state,
        ..
    } = culling;
    state.frame += 1;
    state.lists.start_frame();
    let mut unsettled = Vec::new();
    let mut reading = (state.roster).compare(&sources.changes, assets, &state.lists);
    // What an impostor and its entity draw depends on both.
    if let Reading::Only(entities) = &reading
        && entities.iter().any(|entity| sources.has_impostor(*entity))
    {
        reading = Reading::All;
    }
    let taken = match &reading {
        Reading::Only(entities) => take_changed(state, &sources, entities),
        Reading::All => Vec::new(),
    };
    // Most frames change no asset.
    let is_settled = state.roster.is_settled && !sources.assets.is_changed();
    let rests = is_settled && matches!(reading, Reading::Only(_));
    if !rests && !look_at_assets(culler.as_mut(), state, assets, buffers, &mut unsettled) {
        reading = Reading::All;
    }
    let reads_all = reading == Reading::All;
    if reads_all {
        note_all(state, &sources);
    }
    let Some(culler) = culler else {
        state.roster.forget();
        return;
    };
    let (budget, before) = (settings.upload_bytes(), state.streamed);
    let mut reader = Reader {
        assets,
        names: AssetNames(sources.server.as_deref()),
        uploads: Uploads::new(
            culler,
            gpu.wgpu(),
            budget,
            before,
            state.frame,
            state.last_id,
        ),
        buffers,
        state,
    };
    if reads_all {
        for item in &sources.entities {
            let parent = parent_of(&item, &sources.entities);
            if let Some(set) = reader.read(&item, parent.as_ref()) {
                reader.state.lists.add(set);
            }
        }
    } else {
        let state = &mut *reader.state;
        (state.roster).follow(&sources.changes, &mut state.lists, state.frame);
        unsettled.into_iter().for_each(|asset| reader.follow(asset));
        reader.state.roster.is_settled &= taken.is_empty();
        for (entity, place) in taken {
            let item = sources.entities.get(entity).ok();
            let set = item.and_then(|item| reader.read(&item, None));
            let lists = &mut reader.state.lists;
            match (place, set) {
                (Some(place), set) => lists.put_back(entity, place, set),
                (None, Some(set)) => {
                    lists.changed.push(lists.sets.len());
                    lists.add(set);
                }
                (None, None) => {}
            }
        }
    }
    let Reader {
        mut uploads,
        buffers,
        names,
        state,
        ..
    } = reader;
    state.lists.end();
    uploads.advance(&mut state.known, assets);
    (state.streamed, state.last_id) = (uploads.streamed, uploads.last_id);
    let Extraction { known, lists, .. } = state;
    let is_used = |asset| {
        let known = known.get(&asset);
        known.is_some_and(|known| known.used_in == lists.listed_in)
    };
    buffers.retain(is_used);
    for (asset, problem) in core::mem::take(&mut uploads.problems) {
        let entity = known.get(&asset).and_then(|known| known.user);
        let entity = entity.map_or_else(String::new, |user| {
            format!("GpuInstances on {}: ", user.id())
        });
        error!("{entity}{} is not drawn: {problem}", names.of(asset));
    }
    uploads.send(&outputs.inbox);
}

/// Takes the sets from entities that changed, none of which is an impostor or has one, and notes
/// what they ask for now. Returns each with the place of its set, if it had one.
fn take_changed(
    state: &mut Extraction,
    sources: &Sources,
    entities: &[Entity],
) -> Vec<(Entity, Option<usize>)> {
    if !entities.is_empty() {
        state.roster.start_some(&sources.changes);
    }
    let take = |entity: &Entity| {
        state.roster.remove_absent(*entity);
        let lists = &mut state.lists;
        match sources.entities.get(*entity) {
            Ok(item) => lists.note(&item, None),
            Err(_) => lists.forget(*entity),
        }
        (*entity, lists.take(*entity, &mut state.known, state.frame))
    };
    entities.iter().map(take).collect()
}

/// Starts to read all entities, and notes them.
fn note_all(state: &mut Extraction, sources: &Sources) {
    state.roster.start(&sources.changes);
    state.lists.start_again(state.frame);
    for item in &sources.entities {
        let parent = parent_of(&item, &sources.entities);
        state.lists.note(&item, parent.as_ref());
    }
}

/// Replaces the culler if the device or the settings ask for it.
fn follow_device(
    culling: &mut GpuCuller,
    settings: &GpuCullingSettings,
    gpu: &RenderGpu,
    buffers: &mut InstanceBuffers,
) {
    let is_fresh = core::mem::take(&mut culling.is_fresh);
    if gpu.device.is_changed() && !is_fresh {
        // The renderer has not started on the new device.
        culling.leave_device(buffers);
    }
    let tries_again = culling.tries_again();
    if culling.settings == *settings && !tries_again || !culling.has_started {
        return;
    }
    if tries_again || !culling.settings.same_culler(settings) {
        let mut old = culling.culler.take();
        culling.make_culler(gpu.wgpu(), settings);
        let adopted = match (&mut culling.culler, &mut old) {
            (Some(culler), Some(old)) => culler.store_mut().adopt_sets(old.store_mut()),
            _ => false,
        };
        if !adopted {
            culling.extraction.forget_sets();
            buffers.clear();
        }
    }
    culling.settings = settings.clone();
}
