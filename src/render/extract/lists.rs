//! The lists that extractions make of the entities with sets.
//!
//! An entity that comes has the next place, and the place of one that goes stays empty until all
//! entities are read again. So what is known by place stays true.

use super::entity::{SetEntityItem, fades};
use crate::cull::SetId;
use crate::instance::InstanceSet;
use crate::render::{extracted_set::ExtractedSet, lods::InstanceShare, upload::KnownSets};
use bevy::{
    ecs::entity::{EntityHashMap, EntityHashSet},
    platform::collections::HashSet,
    prelude::*,
    render::sync_world::{MainEntity, MainEntityHashSet},
};

/// The lists that extractions make of the entities with sets.
#[derive(Default)]
pub(in crate::render) struct SetLists {
    /// The number of the extraction that made them, from all entities.
    pub listed_in: u64,
    /// Number of entities that the last extraction read.
    pub entities_read: u64,
    /// Entities with [`GpuInstances`](crate::render::GpuInstances), also those whose set or mesh is
    /// not loaded or was refused: Bevy must not draw them as single meshes.
    pub entities: MainEntityHashSet,
    /// Those that ask for one `MeshUniform` per survivor.
    pub asks_expanded: MainEntityHashSet,
    /// Those with a `Lightmap`. They are not drawn, because Bevy's pipelines would bind it.
    pub lightmapped: MainEntityHashSet,
    /// Those whose instances fade between levels of detail, or in and out of a range.
    pub fading: MainEntityHashSet,
    /// Those with `NoFrustumCulling`.
    pub unculled: MainEntityHashSet,
    /// Entities whose set can be tested. The order stays the same until all are read again; `None`
    /// at the place of an entity that went.
    pub sets: Vec<Option<ExtractedSet>>,
    /// Sets that several entities use.
    pub shared: HashSet<SetId>,
    /// The entities that the last extraction read again, or that went, if it did not read all.
    pub changed_entities: MainEntityHashSet,
    /// The places of sets that the last extraction changed, in ascending order, unless it read all.
    /// Those that only moved are not among them.
    pub changed: Vec<usize>,
    /// The place of each entity's set.
    places: EntityHashMap<usize>,
    /// Entities that went.
    gone: EntityHashSet,
}

/// Up to this number of places may be empty, however few are not.
const MANY_GONE: usize = 64;

impl SetLists {
    /// Starts the lists of an extraction that reads no entity again so far.
    pub(super) fn start_frame(&mut self) {
        self.entities_read = 0;
        self.changed_entities.clear();
        self.changed.clear();
    }

    /// Starts the lists of the extraction with this number, from all entities.
    pub(super) fn start_again(&mut self, frame: u64) {
        *self = Self {
            listed_in: frame,
            ..Self::default()
        };
    }

    /// Number of entities whose set can be tested.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether some set is not culled by the frustum.
    pub fn keep_all(&self) -> bool {
        let mut unculled = self.unculled.iter();
        unculled.any(|entity| self.places.contains_key(&entity.id()))
    }

    /// Whether the entities that changed since the last extraction cannot be read alone.
    pub(super) fn must_be_made_again(&self, changed: &[Entity]) -> bool {
        let are_many_gone = self.gone.len() > MANY_GONE.max(self.places.len() / 2);
        let concerns_others = |entity: &Entity| {
            let place = self.places.get(entity);
            let set = place.and_then(|place| self.sets[*place].as_ref());
            // One that comes back would be there twice.
            self.gone.contains(entity)
                || set.is_some_and(|set| !matches!(set.share, InstanceShare::All))
        };
        are_many_gone || changed.iter().any(concerns_others)
    }

    /// The set of an entity.
    pub(super) fn set_of(&mut self, entity: Entity) -> Option<&mut ExtractedSet> {
        let place = self.places.get(&entity)?;
        self.sets.get_mut(*place)?.as_mut()
    }

    /// Notes an entity, and what it asks for. `parent` is the entity whose impostor it is.
    pub(super) fn note(&mut self, item: &SetEntityItem, parent: Option<&SetEntityItem>) {
        let entity = MainEntity::from(item.entity);
        self.entities_read += 1;
        self.entities.insert(entity);
        let put = |set: &mut MainEntityHashSet, holds| {
            if holds {
                set.insert(entity);
            } else {
                set.remove(&entity);
            }
        };
        put(&mut self.asks_expanded, item.asks_expanded);
        put(&mut self.fading, fades(item, parent));
        put(&mut self.lightmapped, item.is_lightmapped);
        put(&mut self.unculled, item.keep_all);
    }

    /// Adds the set of an entity that has none so far.
    pub(super) fn add(&mut self, set: ExtractedSet) {
        self.places.insert(set.entity.id(), self.sets.len());
        self.sets.push(Some(set));
    }

    /// Notes that an entity is not as it was, and takes its set from it. Returns the set's place,
    /// which stays the entity's until [`Self::put_back`].
    pub(super) fn take(
        &mut self,
        entity: Entity,
        known: &mut KnownSets,
        now: u64,
    ) -> Option<usize> {
        self.changed_entities.insert(entity.into());
        let place = *self.places.get(&entity)?;
        let set = self.sets[place].take()?;
        self.changed.push(place);
        if let Some(known) = known.get_mut(&set.asset) {
            known.users -= 1;
            if known.users == 0 {
                known.used_in = 0;
            } else if known.users == 1 {
                self.shared.remove(&set.set);
                self.change_user(set.asset, now);
            }
        }
        Some(place)
    }

    /// Notes that a set has one more user, in the extraction with this number. The users of a set
    /// that has several are drawn in another way.
    pub(super) fn share(&mut self, asset: AssetId<InstanceSet>, set: SetId, now: u64) {
        if self.shared.insert(set) && self.listed_in != now {
            self.change_user(asset, now);
        }
    }

    /// Another set takes the place of one, in the extraction with this number.
    pub(super) fn swap(&mut self, before: SetId, after: SetId, now: u64) {
        for (place, set) in self.sets.iter_mut().enumerate() {
            if let Some(set) = set.as_mut().filter(|set| set.set == before) {
                (set.set, set.changed_in) = (after, now);
                self.changed.push(place);
            }
        }
        if self.shared.remove(&before) {
            self.shared.insert(after);
        }
    }

    fn change_user(&mut self, asset: AssetId<InstanceSet>, now: u64) {
        for (place, set) in self.sets.iter_mut().enumerate() {
            if let Some(set) = set.as_mut().filter(|set| set.asset == asset) {
                set.changed_in = now;
                self.changed.push(place);
            }
        }
    }

    /// Gives an entity, whose set was taken from a place, the set that it has now, if any.
    pub(super) fn put_back(&mut self, entity: Entity, place: usize, set: Option<ExtractedSet>) {
        if set.is_none() {
            self.places.remove(&entity);
            self.gone.insert(entity);
        }
        self.sets[place] = set;
    }

    /// Forgets what an entity without a set asked for.
    pub(super) fn forget(&mut self, entity: Entity) {
        let entity = MainEntity::from(entity);
        for set in [
            &mut self.entities,
            &mut self.asks_expanded,
            &mut self.lightmapped,
            &mut self.fading,
            &mut self.unculled,
        ] {
            set.remove(&entity);
        }
    }

    /// The sets are on the device no more.
    pub fn clear_sets(&mut self) {
        self.sets.clear();
        self.places.clear();
    }

    /// Ends the lists of an extraction.
    pub(super) fn end(&mut self) {
        self.changed.sort_unstable();
        self.changed.dedup();
    }
}
