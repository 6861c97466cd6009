//! Whether the entities with sets are as an extraction has read them. Then it need not read them
//! again: ten thousand entities are compared in the time in which some hundred are read.

use crate::instance::InstanceSet;
use crate::render::{
    bounds::SetSphere,
    components::GpuInstances,
    extracted_set::ExtractedSet,
    lods::{AggregateDetail, ImpostorOf, InstanceVisibilityRange, SetImpostor, SetLods},
    offset::InstanceOffset,
    wind::Wind,
};
use bevy::{
    asset::RenderAssetUsages,
    ecs::{
        archetype::{Archetype, ArchetypeId},
        entity::EntityHashMap,
        system::SystemParam,
    },
    prelude::*,
    render::Extract,
};

/// What may change of an entity with a set without another archetype, except its transform.
pub(super) type ValueChanged = Or<(
    Changed<GpuInstances>,
    Changed<SetSphere>,
    Changed<InstanceOffset>,
    Changed<SetLods>,
    Changed<InstanceVisibilityRange>,
    Changed<AggregateDetail>,
    Changed<Wind>,
    Changed<SetImpostor>,
    Changed<ImpostorOf>,
)>;

/// The entities with sets, and what changed since the last extraction.
#[derive(SystemParam)]
pub(super) struct EntityChanges<'w, 's> {
    all: Extract<'w, 's, Query<'static, 'static, (Entity, &'static Archetype), With<GpuInstances>>>,
    changed: Extract<'w, 's, Query<'static, 'static, (), (With<GpuInstances>, ValueChanged)>>,
    moved: Extract<'w, 's, Query<'static, 'static, MovedSet, HasMoved>>,
}

/// Which entities moved.
type HasMoved = (With<GpuInstances>, Changed<GlobalTransform>);

/// An entity that moved. The places of impostors follow from other entities.
type MovedSet = (
    Entity,
    &'static GlobalTransform,
    Has<SetImpostor>,
    Has<ImpostorOf>,
);

/// The entities with sets, as they were read.
#[derive(Default)]
pub(in crate::render) struct Roster {
    /// The entities in the order of the query. An archetype says which components an entity has.
    entities: Vec<(Entity, ArchetypeId)>,
    /// The place of each entity's set among the sets of the frame.
    places: EntityHashMap<usize>,
    /// Assets of entities that did not have a set for the render world.
    absent: Vec<AssetId<InstanceSet>>,
    /// `false` before the first extraction.
    is_read: bool,
    /// All sets in use were [settled](crate::render::upload::KnownSet::is_settled) when they were
    /// looked at last.
    pub(super) is_settled: bool,
}

impl Roster {
    /// The next extraction reads everything.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether everything that was read is unchanged, except transforms, which
    /// [`Self::follow`] reads.
    pub(super) fn stays(&self, changes: &EntityChanges, assets: &Assets<InstanceSet>) -> bool {
        let now = || {
            let all = changes.all.iter();
            all.map(|(entity, archetype)| (entity, archetype.id()))
        };
        let has_moved = |(_, _, has_impostor, is_impostor)| has_impostor || is_impostor;
        let is_there = |asset: &AssetId<InstanceSet>| assets.get(*asset).is_some_and(is_extracted);
        self.is_read
            && changes.changed.is_empty()
            && now().eq(self.entities.iter().copied())
            && !changes.moved.iter().any(has_moved)
            && !self.absent.iter().any(is_there)
    }

    /// Starts to read the entities.
    pub(super) fn start(&mut self, changes: &EntityChanges) {
        self.forget();
        self.is_read = true;
        let all = changes.all.iter();
        self.entities
            .extend(all.map(|(entity, archetype)| (entity, archetype.id())));
    }

    /// Notes an asset that has no set for the render world.
    pub(super) fn add_absent(&mut self, asset: AssetId<InstanceSet>) {
        self.absent.push(asset);
    }

    /// Ends with the sets that were found.
    pub(super) fn end(&mut self, sets: &[ExtractedSet]) {
        let places = sets.iter().map(|set| set.entity.id()).zip(0..);
        self.places.extend(places);
    }

    /// Gives sets of entities that moved their new transforms, in the extraction with this number.
    pub(super) fn follow(&self, changes: &EntityChanges, sets: &mut [ExtractedSet], now: u64) {
        for (entity, transform, ..) in &changes.moved {
            let place = self.places.get(&entity);
            if let Some(set) = place.and_then(|place| sets.get_mut(*place)) {
                set.world_from_local = transform.affine();
                set.changed_in = now;
            }
        }
    }
}

/// Whether a set is uploaded at all.
pub(super) fn is_extracted(set: &InstanceSet) -> bool {
    set.asset_usage.contains(RenderAssetUsages::RENDER_WORLD)
}
