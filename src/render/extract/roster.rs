//! Which entities with sets are not as an extraction has read them: only these are read again.
//! Tables are compared, not entities.

use super::lists::SetLists;
use crate::instance::InstanceSet;
use crate::render::{
    animation::InstanceAnimation,
    bounds::SetSphere,
    components::GpuInstances,
    lods::{AggregateDetail, ImpostorOf, InstanceVisibilityRange, SetImpostor, SetLods},
    offset::InstanceOffset,
    table_ticks::{TableTicks, run_of, ticks_of},
    wind::Wind,
};
use bevy::{
    asset::RenderAssetUsages,
    ecs::{
        entity::{Entities, EntityHashMap},
        query::QueryData,
        storage::TableId,
        system::SystemParam,
    },
    log::warn_once,
    platform::collections::HashMap,
    prelude::*,
    render::Extract,
};

/// The values that [`SetEntity`](super::entity::SetEntity) reads, of all entities of a table. A
/// component without a value comes and goes with the table of its entity.
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
    animation: Option<Ref<'static, InstanceAnimation>>,
    impostor: Option<Ref<'static, SetImpostor>>,
    impostor_of: Option<Ref<'static, ImpostorOf>>,
}

impl SetTableContiguousItem<'_, '_> {
    /// When values changed, except transforms.
    fn values(&self) -> TableTicks<'_, 10> {
        TableTicks {
            columns: [
                ticks_of(Some(&self.instances)),
                ticks_of(self.sphere.as_ref()),
                ticks_of(self.offset.as_ref()),
                ticks_of(self.lods.as_ref()),
                ticks_of(self.range.as_ref()),
                ticks_of(self.detail.as_ref()),
                ticks_of(self.wind.as_ref()),
                ticks_of(self.animation.as_ref()),
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
    locations: Extract<'w, 's, &'static Entities>,
}

impl EntityChanges<'_, '_> {
    /// The table with these entities; `None` if there are none.
    fn table_of(&self, entities: &[Entity]) -> Option<TableId> {
        let location = self.locations.get(*entities.first()?).ok().flatten();
        location.map(|location| location.table_id)
    }
}

/// The entities with sets, as they were read.
#[derive(Default)]
pub(in crate::render) struct Roster {
    /// In the order of the query, those that have entities.
    tables: Vec<KnownTable>,
    /// Entities that did not have a set for the render world, and their assets.
    absent: EntityHashMap<AssetId<InstanceSet>>,
    /// `false` before the first extraction.
    is_read: bool,
    /// All sets in use were [settled](crate::render::upload::KnownSet::is_settled) when they were
    /// looked at last.
    pub(super) is_settled: bool,
}

/// The entities of a table.
struct KnownTable {
    id: TableId,
    entities: Vec<Entity>,
}

/// What an extraction must read.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// All entities.
    All,
    /// These, of which some may be gone.
    Only(Vec<Entity>),
}

/// If more entities than this changed, and more than an eighth of all, all are read again.
const MANY_CHANGES: usize = 64;

impl Roster {
    /// The next extraction reads everything.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// What must be read, because it is not as it was read, except transforms, which
    /// [`Self::follow`] reads.
    pub(super) fn compare(
        &self,
        changes: &EntityChanges,
        assets: &Assets<InstanceSet>,
        lists: &SetLists,
    ) -> Reading {
        let Some(mut entities) = self.changed(changes).filter(|_| self.is_read) else {
            return Reading::All;
        };
        let is_there = |asset: AssetId<InstanceSet>| assets.get(asset).is_some_and(is_extracted);
        let come = self.absent.iter().filter(|(_, asset)| is_there(**asset));
        entities.extend(come.map(|(entity, _)| *entity));
        entities.sort_unstable();
        entities.dedup();
        let are_many = entities.len() > MANY_CHANGES.max(lists.entities.len() / 8);
        if are_many || lists.must_be_made_again(&entities) {
            return Reading::All;
        }
        Reading::Only(entities)
    }

    /// The entities that came, went, or have other components or values; `None` if all must be
    /// read.
    fn changed(&self, changes: &EntityChanges) -> Option<Vec<Entity>> {
        let Ok(tables) = changes.tables.contiguous_iter() else {
            warn_once!(
                "all entities with GpuInstances are read in each frame, because the app disables \
                 entities by a component that is no table component: use StorageType::Table for it"
            );
            return None;
        };
        let mut changed = Vec::new();
        // Most frames have the same tables, in the same order.
        let mut known = self.tables.iter();
        let mut others: Vec<(TableId, &[Entity])> = Vec::new();
        for table in tables {
            let Some(id) = changes.table_of(table.entity) else {
                continue;
            };
            let before = changed.len();
            match known.as_slice().first().filter(|known| known.id == id) {
                Some(same) => {
                    known.next();
                    note_others(&same.entities, table.entity, &mut changed);
                }
                None => others.push((id, table.entity)),
            }
            let values = table.values();
            changed.extend(values.changed_rows().map(|row| table.entity[row]));
            // If entities of other tables come, some may be of this one's.
            let has_others = changed.len() > before || !others.is_empty();
            if table.has_impostors() && (has_others || table.transforms().have_changed()) {
                return None;
            }
        }
        let left = known.as_slice();
        if !left.is_empty() || !others.is_empty() {
            let mut left: HashMap<_, _> = left
                .iter()
                .map(|known| (known.id.as_usize(), &*known.entities))
                .collect();
            for (id, entities) in others {
                let known = left.remove(&id.as_usize()).unwrap_or_default();
                note_others(known, entities, &mut changed);
            }
            changed.extend(left.into_values().flatten());
        }
        Some(changed)
    }

    /// Starts to read all entities.
    pub(super) fn start(&mut self, changes: &EntityChanges) {
        self.absent.clear();
        self.is_read = true;
        self.start_some(changes);
    }

    /// Starts to read the entities that changed.
    pub(super) fn start_some(&mut self, changes: &EntityChanges) {
        self.is_settled = false;
        let mut spare = core::mem::take(&mut self.tables);
        for table in changes.tables.contiguous_iter().into_iter().flatten() {
            let Some(id) = changes.table_of(table.entity) else {
                continue;
            };
            let mut entities = spare.pop().map(|table| table.entities).unwrap_or_default();
            entities.clear();
            entities.extend_from_slice(table.entity);
            self.tables.push(KnownTable { id, entities });
        }
    }

    /// Notes an asset of an entity that has no set for the render world.
    pub(super) fn add_absent(&mut self, entity: Entity, asset: AssetId<InstanceSet>) {
        self.absent.insert(entity, asset);
    }

    /// Forgets what asset an entity waits for.
    pub(super) fn remove_absent(&mut self, entity: Entity) {
        self.absent.remove(&entity);
    }

    /// Gives sets of entities that moved their new transforms, in the extraction with this number.
    pub(super) fn follow(&self, changes: &EntityChanges, lists: &mut SetLists, now: u64) {
        for table in changes.tables.contiguous_iter().into_iter().flatten() {
            for row in table.transforms().changed_rows() {
                if let Some(set) = lists.set_of(table.entity[row]) {
                    set.world_from_local = table.transform[row].affine();
                    set.changed_in = now;
                }
            }
        }
    }
}

/// Notes the entities that only one of two lists of a table has. In a table, the last entity takes
/// the row of one that goes.
fn note_others(before: &[Entity], now: &[Entity], changed: &mut Vec<Entity>) {
    if before == now {
        return;
    }
    let (both_before, rest_before) = before.split_at(before.len().min(now.len()));
    let (both_now, rest_now) = now.split_at(before.len().min(now.len()));
    let rows = both_before.iter().zip(both_now).filter(|(a, b)| a != b);
    let (mut gone, mut come): (Vec<Entity>, Vec<Entity>) = rows.unzip();
    gone.extend(rest_before);
    come.extend(rest_now);
    gone.sort_unstable();
    come.sort_unstable();
    let lacks = |list: &[Entity], entity: &Entity| list.binary_search(entity).is_err();
    changed.extend(gone.iter().filter(|entity| lacks(&come, entity)));
    changed.extend(come.iter().filter(|entity| lacks(&gone, entity)));
}

/// Whether a set is uploaded at all.
pub(super) fn is_extracted(set: &InstanceSet) -> bool {
    set.asset_usage.contains(RenderAssetUsages::RENDER_WORLD)
}
