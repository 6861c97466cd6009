//! The entities whose bounds may have changed.

use crate::instance::InstanceSet;
use crate::render::{
    animation::{AnimationPoses, InstanceAnimation},
    components::{CullingRadius, GpuInstances},
    lods::{SetImpostor, SetLods},
    offset::InstanceOffset,
    table_ticks::{TableTicks, run_of, ticks_of},
    wind::Wind,
};
use bevy::{
    ecs::{query::QueryData, system::SystemParam},
    mesh::skinning::SkinnedMesh,
    pbr::Lightmap,
    prelude::*,
};

/// What changes the bounds of an entity, or whether it has any, of all entities of a table.
#[derive(QueryData)]
#[query_data(contiguous(all))]
pub(in crate::render) struct BoundsTable {
    entity: Entity,
    instances: Ref<'static, GpuInstances>,
    mesh: Ref<'static, Mesh3d>,
    radius: Option<Ref<'static, CullingRadius>>,
    offset: Option<Ref<'static, InstanceOffset>>,
    wind: Option<Ref<'static, Wind>>,
    animation: Option<Ref<'static, InstanceAnimation>>,
    lods: Option<Ref<'static, SetLods>>,
    impostor: Option<Ref<'static, SetImpostor>>,
    skin: Option<Ref<'static, SkinnedMesh>>,
    lightmap: Option<Ref<'static, Lightmap>>,
}

impl<'w> BoundsTableContiguousItem<'w, '_> {
    fn ticks(&self) -> TableTicks<'w, 10> {
        TableTicks {
            columns: [
                ticks_of(Some(&self.instances)),
                ticks_of(Some(&self.mesh)),
                ticks_of(self.radius.as_ref()),
                ticks_of(self.offset.as_ref()),
                ticks_of(self.wind.as_ref()),
                ticks_of(self.animation.as_ref()),
                ticks_of(self.lods.as_ref()),
                ticks_of(self.impostor.as_ref()),
                ticks_of(self.skin.as_ref()),
                ticks_of(self.lightmap.as_ref()),
            ],
            run: run_of(&self.instances),
        }
    }
}

/// An entity whose set or mesh, as an asset, changed.
type AssetsChanged = (
    With<GpuInstances>,
    Or<(AssetChanged<GpuInstances>, AssetChanged<Mesh3d>)>,
);

/// The entities whose bounds may have changed.
#[derive(SystemParam)]
pub(in crate::render) struct BoundsChanges<'w, 's> {
    tables: Query<'w, 's, BoundsTable>,
    of_assets: Query<'w, 's, Entity, AssetsChanged>,
    /// Most frames change no asset. Then no entity needs to be asked.
    sets: MessageReader<'w, 's, AssetEvent<InstanceSet>>,
    meshes: MessageReader<'w, 's, AssetEvent<Mesh>>,
    poses: MessageReader<'w, 's, AssetEvent<AnimationPoses>>,
    animated: Query<'w, 's, Entity, (With<GpuInstances>, With<InstanceAnimation>)>,
    pub removals: Removals<'w, 's>,
}

impl BoundsChanges<'_, '_> {
    /// The entities in ascending order.
    pub fn collect(&mut self) -> Vec<Entity> {
        let Removals {
            radius,
            offset,
            wind,
            animation,
            skin,
            lightmap,
            ..
        } = &mut self.removals;
        let removed = (radius.read())
            .chain(offset.read())
            .chain(wind.read())
            .chain(animation.read())
            .chain(skin.read())
            .chain(lightmap.read());
        let mut changed: Vec<_> = removed.collect();
        match self.tables.contiguous_iter() {
            Ok(tables) => {
                for table in tables {
                    let ticks = table.ticks();
                    changed.extend(ticks.changed_rows().map(|row| table.entity[row]));
                }
            }
            // The app disables entities by a component that lies in no table: extraction warns.
            Err(_) => changed.extend(self.tables.iter().map(|item| item.entity)),
        }
        if self.sets.read().count() + self.meshes.read().count() > 0 {
            changed.extend(&self.of_assets);
        }
        if self.poses.read().count() > 0 {
            changed.extend(&self.animated);
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

/// Components whose removal changes what [`update_bounds`](super::update_bounds) decides.
#[derive(SystemParam)]
pub(in crate::render) struct Removals<'w, 's> {
    radius: RemovedComponents<'w, 's, CullingRadius>,
    offset: RemovedComponents<'w, 's, InstanceOffset>,
    wind: RemovedComponents<'w, 's, Wind>,
    animation: RemovedComponents<'w, 's, InstanceAnimation>,
    skin: RemovedComponents<'w, 's, SkinnedMesh>,
    lightmap: RemovedComponents<'w, 's, Lightmap>,
    pub set: RemovedComponents<'w, 's, GpuInstances>,
}
