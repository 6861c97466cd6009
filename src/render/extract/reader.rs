//! Reads what an entity draws, and has the instances of its set uploaded.

use super::{
    entity::{SetEntityItem, use_of},
    lists::SetLists,
    roster::{Roster, is_extracted},
};
use crate::{
    instance::InstanceSet,
    render::{
        culler::GpuCuller,
        extracted_set::ExtractedSet,
        gpu_written::InstanceBuffers,
        names::AssetNames,
        told::Told,
        upload::{KnownSet, KnownSets, Reserved, Uploads},
    },
};
use bevy::{log::warn, platform::collections::HashSet, prelude::*};

/// Reads sets.
pub(super) struct Reader<'a> {
    pub assets: &'a Assets<InstanceSet>,
    pub names: AssetNames<'a>,
    pub uploads: Uploads<'a>,
    pub known: &'a mut KnownSets,
    pub lost: &'a mut HashSet<AssetId<InstanceSet>>,
    pub told: &'a mut Told<AssetId<InstanceSet>>,
    pub buffers: &'a mut InstanceBuffers,
    pub roster: &'a mut Roster,
    pub lists: &'a mut SetLists,
    /// The number of the extraction.
    pub frame: u64,
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
        let Some(set) = self.assets.get(asset) else {
            self.roster.add_absent(entity, asset);
            return None;
        };
        let sphere = parent.map_or(item.sphere, |parent| parent.sphere)?;
        if item.offset.is_some_and(|offset| !offset.is_valid()) {
            return None;
        }
        if !is_extracted(set) {
            if self.told.is_new(asset) {
                warn!(
                    "GpuInstances on {entity}: {} is not drawn, because its asset_usage lacks RENDER_WORLD: add it",
                    self.names.of(asset)
                );
            }
            self.roster.add_absent(entity, asset);
            return None;
        }
        let known = (self.known.entry(asset)).or_insert_with(|| self.uploads.new_set());
        if known.used_in != self.lists.listed_in {
            (known.used_in, known.users) = (self.lists.listed_in, 1);
            known.user = Some(entity.into());
            let (uploads, buffers, lost) = (&mut self.uploads, &mut *self.buffers, &mut *self.lost);
            catch_up(uploads, asset, known, set, buffers, lost, &self.names);
        } else {
            known.users += 1;
            self.lists.share(asset, known.current.id, self.frame);
        }
        Some(use_of(item, parent, known.current.id, sphere, self.frame))
    }

    /// Uploads what changed of a set.
    pub fn follow(&mut self, asset: AssetId<InstanceSet>) {
        let (Some(known), Some(set)) = (self.known.get_mut(&asset), self.assets.get(asset)) else {
            return;
        };
        let before = known.current.id;
        let (uploads, buffers, lost) = (&mut self.uploads, &mut *self.buffers, &mut *self.lost);
        catch_up(uploads, asset, known, set, buffers, lost, &self.names);
        let now = known.current.id;
        if now != before {
            self.lists.swap(before, now, self.frame);
        }
    }
}

/// Removes sets whose assets are gone; an unused set keeps its place as long as its asset lives.
/// Notes in `unsettled` the sets in use that may have something to upload, in the order in which
/// they were first met. Returns whether each set in use is still there.
pub(super) fn look_at_assets(
    culling: &mut GpuCuller,
    assets: &Assets<InstanceSet>,
    buffers: &mut InstanceBuffers,
    unsettled: &mut Vec<AssetId<InstanceSet>>,
) -> bool {
    let GpuCuller {
        culler: Some(culler),
        known,
        roster,
        lists,
        ..
    } = culling
    else {
        return false;
    };
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
