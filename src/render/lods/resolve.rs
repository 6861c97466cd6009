//! Which levels of an entity are loaded, and the sphere around their meshes.

use super::{InstanceLod, InstanceLods};
use crate::{
    cull::BoundingSphere,
    render::{
        components::GpuInstances,
        cpu_times::{CpuClock, CpuStage},
        meshlets::MeshletMesh3d,
    },
};
use bevy::{
    camera::primitives::MeshAabb, ecs::query::QueryData, platform::collections::HashSet, prelude::*,
};
use std::sync::Arc;

/// The levels of an entity that are loaded.
#[derive(Component, Clone)]
pub(in crate::render) struct SetLods {
    pub levels: Arc<[SetLod]>,
    /// See [`InstanceLods::fade`].
    pub fade: f32,
    /// Boxes around the levels' meshes: center, half extents.
    pub boxes: Vec<(Vec3, Vec3)>,
}

/// A level of an entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::render) struct SetLod {
    pub mesh: AssetId<Mesh>,
    pub error: f32,
}

impl SetLods {
    /// The sphere around the entity's mesh, enlarged around the meshes of the levels.
    pub fn enlarge(&self, mut sphere: BoundingSphere) -> BoundingSphere {
        for (center, half_extents) in &self.boxes {
            let away = (*center - sphere.center).abs() + *half_extents;
            sphere.radius = sphere.radius.max(away.length());
        }
        sphere
    }
}

/// Entities whose levels may have changed.
type LodsChanged = Or<(
    Changed<InstanceLods>,
    Added<GpuInstances>,
    Added<MeshletMesh3d>,
)>;

/// An entity with levels.
#[derive(QueryData)]
pub(in crate::render) struct LodEntity {
    entity: Entity,
    lods: &'static InstanceLods,
    known: Option<&'static SetLods>,
    has_meshlets: Has<MeshletMesh3d>,
}

/// Notes which levels are loaded, when the levels or one of their meshes change.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn resolve_lods(
    mut commands: Commands,
    changed: Query<Entity, (With<InstanceLods>, LodsChanged)>,
    all: Query<LodEntity, With<GpuInstances>>,
    mut removed: RemovedComponents<InstanceLods>,
    still_there: Query<(), With<InstanceLods>>,
    mut events: MessageReader<AssetEvent<Mesh>>,
    meshes: Res<Assets<Mesh>>,
    mut told: Local<HashSet<Entity>>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    for entity in removed.read() {
        // The component may have been removed and inserted again.
        if !still_there.contains(entity)
            && let Ok(mut entity) = commands.get_entity(entity)
        {
            entity.try_remove::<SetLods>();
        }
    }
    let changed_meshes: HashSet<_> = events.read().filter_map(changed_mesh).collect();
    if changed_meshes.is_empty() && changed.is_empty() {
        return;
    }
    for LodEntityItem {
        entity,
        lods,
        known,
        has_meshlets,
    } in &all
    {
        let is_of_changed = |level: &InstanceLod| changed_meshes.contains(&level.mesh.id());
        if !changed.contains(entity) && !lods.levels.iter().any(is_of_changed) {
            continue;
        }
        if let Some(problem) = problem_of(lods, has_meshlets)
            && told.insert(entity)
        {
            warn!("InstanceLods on {entity}: {problem}");
        }
        let mut error = 0.0;
        let (mut levels, mut boxes) = (Vec::new(), Vec::new());
        for level in lods.levels.iter().take(InstanceLods::MOST) {
            let Some(mesh) = meshes.get(&level.mesh).filter(|_| !has_meshlets) else {
                continue;
            };
            if !level.error.is_finite() || level.error < error {
                continue;
            }
            error = level.error;
            levels.push(SetLod {
                mesh: level.mesh.id(),
                error,
            });
            if let Some(aabb) = mesh.compute_aabb() {
                boxes.push((aabb.center.into(), aabb.half_extents.into()));
            }
        }
        // Not a number is no share.
        let fade = if lods.fade > 0.0 {
            lods.fade.min(1.0)
        } else {
            0.0
        };
        let is_same = known.is_some_and(|known| {
            *known.levels == *levels && known.fade == fade && known.boxes == boxes
        });
        if !is_same {
            let set = SetLods {
                levels: levels.into(),
                fade,
                boxes,
            };
            commands.entity(entity).try_insert(set);
        }
    }
}

/// The mesh that was loaded, changed or removed.
fn changed_mesh(event: &AssetEvent<Mesh>) -> Option<AssetId<Mesh>> {
    match event {
        AssetEvent::Added { id }
        | AssetEvent::Modified { id }
        | AssetEvent::Removed { id }
        | AssetEvent::LoadedWithDependencies { id } => Some(*id),
        // The last handle was dropped. The mesh is there until it is removed.
        AssetEvent::Unused { .. } => None,
    }
}

/// What is wrong with the levels, and what to do about it.
fn problem_of(lods: &InstanceLods, has_meshlets: bool) -> Option<String> {
    if has_meshlets {
        return Some(
            "they are ignored, because the set is drawn by meshlets, whose mesh has its own levels \
             (MeshletSettings::lods). Remove either InstanceLods or MeshletMesh3d"
                .to_owned(),
        );
    }
    let mut before = 0.0;
    for (number, level) in (1..).zip(&lods.levels) {
        // Not a number is no error, either.
        if !(before..f32::INFINITY).contains(&level.error) {
            return Some(format!(
                "level {number} is ignored: its error is {}, which must be finite and at least {before}, the \
                 error of the level before",
                level.error
            ));
        }
        before = level.error;
    }
    if !(0.0..=1.0).contains(&lods.fade) {
        return Some(format!(
            "fade is {}, and must be between 0 and 1: the nearest of both is used",
            lods.fade
        ));
    }
    (lods.levels.len() > InstanceLods::MOST).then(|| {
        format!(
            "{} levels are given, of which the first {} are drawn. Leave some out",
            lods.levels.len(),
            InstanceLods::MOST
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::ecs::system::SystemId;

    fn lods(errors: &[f32]) -> InstanceLods {
        let level = |error: &f32| InstanceLod {
            error: *error,
            ..InstanceLod::default()
        };
        InstanceLods {
            levels: errors.iter().map(level).collect(),
            ..InstanceLods::default()
        }
    }

    #[test]
    fn problems_name_level_value_and_remedy() {
        assert_eq!(problem_of(&lods(&[0.0, 0.1, 0.1, 2.0]), false), None);
        for (errors, named) in [
            (&[0.1, 0.05][..], "level 2"),
            (&[f32::NAN], "level 1"),
            (&[-1.0], "-1"),
            (&[f32::INFINITY], "inf"),
            (&[0.1; 8], "8 levels"),
        ] {
            let problem = problem_of(&lods(errors), false).unwrap_or_default();
            assert!(problem.contains(named), "{errors:?}: {problem}");
        }
        let fades = InstanceLods {
            fade: f32::NAN,
            ..lods(&[0.1])
        };
        let problem = problem_of(&fades, false).unwrap_or_default();
        assert!(problem.contains("fade is NaN"), "{problem}");
        let problem = problem_of(&lods(&[0.1]), true).unwrap_or_default();
        assert!(problem.contains("MeshletMesh3d"), "{problem}");
    }

    #[test]
    fn the_sphere_grows_around_the_meshes_of_all_levels() {
        let sphere = BoundingSphere {
            center: Vec3::ZERO,
            radius: 1.0,
        };
        let levels = SetLods {
            levels: Arc::new([]),
            fade: 0.0,
            boxes: vec![
                (Vec3::ZERO, Vec3::splat(0.1)),
                (Vec3::X, Vec3::new(2.0, 4.0, 0.0)),
            ],
        };
        assert_eq!(levels.enlarge(sphere).radius, 5.0);
    }

    /// A world with the system, an entity with one level, and the level's mesh.
    fn world_with_level() -> (World, SystemId, Entity, AssetId<Mesh>) {
        let mut world = World::new();
        world.init_resource::<Assets<Mesh>>();
        world.init_resource::<Messages<AssetEvent<Mesh>>>();
        world.init_resource::<CpuClock>();
        let system = world.register_system(resolve_lods);
        let mesh = world
            .resource_mut::<Assets<Mesh>>()
            .add(Cuboid::from_length(1.0));
        let id = mesh.id();
        let levels = vec![InstanceLod { mesh, error: 0.1 }];
        let lods = InstanceLods {
            levels,
            ..default()
        };
        let entity = world.spawn((lods, GpuInstances::default())).id();
        (world, system, entity, id)
    }

    /// Half the extents of the level's box.
    fn half_extents(world: &World, entity: Entity) -> Option<f32> {
        Some(world.get::<SetLods>(entity)?.boxes.first()?.1.x)
    }

    #[test]
    fn levels_are_resolved_again_if_one_of_their_own_meshes_changes() -> Result {
        let (mut world, system, entity, id) = world_with_level();
        world.run_system(system)?;
        assert_eq!(half_extents(&world, entity), Some(0.5));

        // Changed without an event: to be seen only if the levels are resolved again.
        let mut meshes = world.resource_mut::<Assets<Mesh>>();
        let other = meshes.add(Cuboid::from_length(3.0)).id();
        let mesh = meshes.get_mut_untracked(id).ok_or("the mesh is gone")?;
        *mesh = Cuboid::from_length(4.0).into();
        world.write_message(AssetEvent::Added { id: other });
        world.write_message(AssetEvent::Unused { id });
        world.run_system(system)?;
        assert_eq!(half_extents(&world, entity), Some(0.5));

        world.write_message(AssetEvent::Modified { id });
        world.run_system(system)?;
        assert_eq!(half_extents(&world, entity), Some(2.0));
        Ok(())
    }

    #[test]
    fn levels_that_are_removed_and_inserted_again_in_one_frame_stay() -> Result {
        let (mut world, system, entity, _) = world_with_level();
        world.run_system(system)?;
        let lods = world
            .entity_mut(entity)
            .take::<InstanceLods>()
            .ok_or("no levels")?;
        world.entity_mut(entity).insert(lods);
        world.run_system(system)?;
        assert!(world.entity(entity).contains::<SetLods>());

        world.entity_mut(entity).remove::<InstanceLods>();
        world.run_system(system)?;
        assert!(!world.entity(entity).contains::<SetLods>());
        Ok(())
    }
}
