//! Reads what an entity draws, and has the instances of its set uploaded.

use super::{
    entity::{SetEntityItem, use_of},
    roster::is_extracted,
    state::Extraction,
};
use crate::{
    cull::Culler,
    instance::InstanceSet,
    render::{
        extracted_set::ExtractedSet,
        gpu_written::InstanceBuffers,
        names::AssetNames,
        upload::{KnownSet, Reserved, Uploads},
    },
};
use bevy::{log::warn, platform::collections::HashSet, prelude::*};

/// Reads sets.
pub(super) struct Reader<'a> {
    pub assets: &'a Assets<InstanceSet>,
    pub names: AssetNames<'a>,
    pub uploads: Uploads<'a>,
    pub buffers: &'a mut InstanceBuffers,
    pub state: &'a mut Extraction,
}

impl Reader<'_> {
    /// Reads the set of an entity, if it can be tested. `parent` is the entity whose impostor it
    /// is.
    pub fn read(
        &mut self,
        item: &SetEntityItem,
        parent: Option<&SetEntityItem>,
    ) -> Option<ExtractedSet> {
        let entity = item.entity;
        let asset = item.instances.id();
        let state = &mut *self.state;
        let Some(set) = self.assets.get(asset) else {
            state.roster.add_absent(entity, asset);
            return None;
        };
        let sphere = parent.map_or(item.sphere, |parent| parent.sphere)?;
        if item.offset.is_some_and(|offset| !offset.is_valid()) {
            return None;
        }
        if !is_extracted(set) {
            if state.told.is_new(asset) {
                warn!(
                    "GpuInstances on {entity}: {} is not drawn, because its asset_usage lacks RENDER_WORLD: add it",
                    self.names.of(asset)
                );
            }
            state.roster.add_absent(entity, asset);
            return None;
        }
        let known = (state.known.entry(asset)).or_insert_with(|| self.uploads.new_set());
        if known.used_in != state.lists.listed_in {
            (known.used_in, known.users) = (state.lists.listed_in, 1);
            known.user = Some(entity.into());
            let (uploads, lost) = (&mut self.uploads, &mut state.lost);
            catch_up(uploads, asset, known, set, self.buffers, lost, &self.names);
        } else {
            known.users += 1;
            state.lists.share(asset, known.current.id, state.frame);
        }
        Some(use_of(item, parent, known.current.id, sphere, state.frame))
    }

    /// Uploads what changed of a set.
    pub fn follow(&mut self, asset: AssetId<InstanceSet>) {
        let state = &mut *self.state;
        let (Some(known), Some(set)) = (state.known.get_mut(&asset), self.assets.get(asset)) else {
            return;
        };
        let before = known.current.id;
        let (uploads, lost) = (&mut self.uploads, &mut state.lost);
        catch_up(uploads, asset, known, set, self.buffers, lost, &self.names);
        let now = known.current.id;
        if now != before {
            state.lists.swap(before, now, state.frame);
        }
    }
}

/// Removes sets whose assets are gone; an unused set keeps its place as long as its asset lives.
/// Notes in `unsettled` the sets in use that may have something to upload, in the order in which
/// they were first met. Returns whether each set in use is still there.
pub(super) fn look_at_assets(
    culler: Option<&mut Culler>,
    state: &mut Extraction,
    assets: &Assets<InstanceSet>,
    buffers: &mut InstanceBuffers,
    unsettled: &mut Vec<AssetId<InstanceSet>>,
) -> bool {
    let Some(culler) = culler else {
        return false;
    };
    let Extraction {
        known,
        roster,
        lists,
        ..
    } = state;
    let mut all_stay = true;
    let mut found = Vec::new();
    known.retain(|asset, known| {
        let is_used = known.used_in == lists.listed_in;
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
    asset: AssetId<InstanceSet>,
    known: &mut KnownSet,
    set: &InstanceSet,
    buffers: &mut InstanceBuffers,
    lost: &mut HashSet<AssetId<InstanceSet>>,
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
