//! Whether the entities with sets are as an extraction has read them. Then it need not read them
//! again: tables are compared, not entities.

use crate::instance::InstanceSet;
use crate::render::{
    bounds::SetSphere,
    components::{GpuInstances, InstanceMeshUniforms, NoInstanceSorting},
    extracted_set::ExtractedSet,
    lods::{AggregateDetail, ImpostorOf, InstanceVisibilityRange, SetImpostor, SetLods},
    meshlets::MeshletMesh3d,
    occlusion::NoOcclusionCulling,
    offset::InstanceOffset,
    table_ticks::{TableTicks, run_of, ticks_of},
    wind::Wind,
};
use bevy::{
    asset::RenderAssetUsages,
    camera::visibility::NoFrustumCulling,
    ecs::{entity::EntityHashMap, query::QueryData, system::SystemParam},
    log::warn_once,
    pbr::Lightmap,
    prelude::*,
    render::Extract,
};

/// The components that [`SetEntity`](super::entity::SetEntity) reads, of all entities of a table.
#[derive(QueryData)]
#[query_data(contiguous(all))]
pub(super) struct SetTable {
    entity: Entity,
    instances: Ref<'static, GpuInstances>,
    transform: Ref<'static, GlobalTransform>,
    sphere: Option<Ref<'static, SetSphere>>,
    offset: Option<Ref<'static, InstanceOffset>>,
    lods: Option<Ref<'static, SetLods>>,
    range: Option<Ref<'static, InstanceVisibilityRange>>,
    detail: Option<Ref<'static, AggregateDetail>>,
    wind: Option<Ref<'static, Wind>>,
    impostor: Option<Ref<'static, SetImpostor>>,
    impostor_of: Option<Ref<'static, ImpostorOf>>,
    keeps_all: Has<NoFrustumCulling>,
    is_unsorted: Has<NoInstanceSorting>,
    is_never_hidden: Has<NoOcclusionCulling>,
    asks_expanded: Has<InstanceMeshUniforms>,
    is_lightmapped: Has<Lightmap>,
    has_meshlets: Has<MeshletMesh3d>,
}

/// Number of components that an entity with a set may have or lack.
const OPTIONAL: usize = 14;

impl SetTableContiguousItem<'_, '_> {
    /// The components that the table has, of those that an entity may lack.
    fn has(&self) -> [bool; OPTIONAL] {
        [
            self.sphere.is_some(),
            self.offset.is_some(),
            self.lods.is_some(),
            self.range.is_some(),
            self.detail.is_some(),
            self.wind.is_some(),
            self.impostor.is_some(),
            self.impostor_of.is_some(),
            self.keeps_all,
            self.is_unsorted,
            self.is_never_hidden,
            self.asks_expanded,
            self.is_lightmapped,
            self.has_meshlets,
        ]
    }

    /// When values changed, except transforms.
    fn values(&self) -> TableTicks<'_, 9> {
        TableTicks {
            columns: [
                ticks_of(Some(&self.instances)),
                ticks_of(self.sphere.as_ref()),
                ticks_of(self.offset.as_ref()),
                ticks_of(self.lods.as_ref()),
                ticks_of(self.range.as_ref()),
                ticks_of(self.detail.as_ref()),
                ticks_of(self.wind.as_ref()),
                ticks_of(self.impostor.as_ref()),
                ticks_of(self.impostor_of.as_ref()),
            ],
            run: run_of(&self.instances),
        }
    }

    /// When transforms changed.
    fn transforms(&self) -> TableTicks<'_, 1> {
        TableTicks {
            columns: [ticks_of(Some(&self.transform))],
            run: run_of(&self.transform),
        }
    }

    /// Whether the places of these sets follow from other entities.
    fn has_impostors(&self) -> bool {
        self.impostor.is_some() || self.impostor_of.is_some()
    }
}

/// The entities with sets, and what changed since the last extraction.
#[derive(SystemParam)]
pub(super) struct EntityChanges<'w, 's> {
    tables: Extract<'w, 's, Query<'static, 'static, SetTable>>,
}

/// The entities with sets, as they were read.
#[derive(Default)]
pub(in crate::render) struct Roster {
    /// The entities in the order of the query, table after table.
    entities: Vec<Entity>,
    /// For each table, the number of its entities, and what they have.
    tables: Vec<(usize, [bool; OPTIONAL])>,
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
        let is_there = |asset: &AssetId<InstanceSet>| assets.get(*asset).is_some_and(is_extracted);
        self.is_read && self.has_read(changes) && !self.absent.iter().any(is_there)
    }

    /// Whether the entities, and their values, are as they were read.
    fn has_read(&self, changes: &EntityChanges) -> bool {
        let Ok(tables) = changes.tables.contiguous_iter() else {
            warn_once!(
                "all entities with GpuInstances are read in each frame, because the app disables \
                 entities by a component that is no table component: use StorageType::Table for it"
            );
            return false;
        };
        let mut known = self.tables.iter();
        let mut left = self.entities.as_slice();
        for table in tables {
            let entities = left.split_off(..table.entity.len());
            if known.next() != Some(&(table.entity.len(), table.has()))
                || entities != Some(table.entity)
                || table.values().have_changed()
                || table.has_impostors() && table.transforms().have_changed()
            {
                return false;
            }
        }
        left.is_empty()
    }

    /// Starts to read the entities.
    pub(super) fn start(&mut self, changes: &EntityChanges) {
        self.forget();
        self.is_read = true;
        for table in changes.tables.contiguous_iter().into_iter().flatten() {
            self.tables.push((table.entity.len(), table.has()));
            self.entities.extend_from_slice(table.entity);
        }
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
        for table in changes.tables.contiguous_iter().into_iter().flatten() {
            for row in table.transforms().changed_rows() {
                let place = self.places.get(&table.entity[row]);
                if let Some(set) = place.and_then(|place| sets.get_mut(*place)) {
                    set.world_from_local = table.transform[row].affine();
                    set.changed_in = now;
                }
            }
        }
    }
}

/// Whether a set is uploaded at all.
pub(super) fn is_extracted(set: &InstanceSet) -> bool {
    set.asset_usage.contains(RenderAssetUsages::RENDER_WORLD)
}
