//! Which levels of an entity are loaded, and the sphere around their meshes.

use super::InstanceLods;
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

/// Notes which levels are loaded, when the levels or some mesh change.
#[expect(
    clippy::too_many_arguments,
    reason = "a system's parameters are its data"
)]
pub(in crate::render) fn resolve_lods(
    mut commands: Commands,
    changed: Query<Entity, (With<InstanceLods>, LodsChanged)>,
    all: Query<LodEntity, With<GpuInstances>>,
    mut removed: RemovedComponents<InstanceLods>,
    mut events: MessageReader<AssetEvent<Mesh>>,
    meshes: Res<Assets<Mesh>>,
    mut told: Local<HashSet<Entity>>,
    clock: Res<CpuClock>,
) {
    let _timer = clock.start(CpuStage::Main);
    for entity in removed.read() {
        if let Ok(mut entity) = commands.get_entity(entity) {
            entity.try_remove::<SetLods>();
        }
    }
    // A mesh that was loaded or changed may be a level's.
    let has_changed = |event: &AssetEvent<Mesh>| !matches!(event, AssetEvent::Unused { .. });
    let meshes_changed = events
        .read()
        .fold(false, |any, event| any | has_changed(event));
    if !meshes_changed && changed.is_empty() {
        return;
    }
    for LodEntityItem {
        entity,
        lods,
        known,
        has_meshlets,
    } in &all
    {
        if !meshes_changed && !changed.contains(entity) {
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
        let is_same = known.is_some_and(|known| *known.levels == *levels && known.boxes == boxes);
        if !is_same {
            let levels = levels.into();
            commands
                .entity(entity)
                .try_insert(SetLods { levels, boxes });
        }
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
    use crate::render::InstanceLod;

    fn lods(errors: &[f32]) -> InstanceLods {
        let level = |error: &f32| InstanceLod {
            error: *error,
            ..InstanceLod::default()
        };
        InstanceLods {
            levels: errors.iter().map(level).collect(),
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
            boxes: vec![
                (Vec3::ZERO, Vec3::splat(0.1)),
                (Vec3::X, Vec3::new(2.0, 4.0, 0.0)),
            ],
        };
        assert_eq!(levels.enlarge(sphere).radius, 5.0);
    }
}
