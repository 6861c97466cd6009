//! The bounds of a set: the sphere around its mesh, and the box around all of its instances.

use super::{
    clock::{CpuClock, CpuStage},
    components::{CullingRadius, GpuInstances},
};
use crate::{cull::BoundingSphere, instance::InstanceSet};
use bevy::{
    camera::primitives::{Aabb, MeshAabb},
    mesh::skinning::SkinnedMesh,
    prelude::*,
};

/// The sphere by which each instance of the entity's set is culled.
#[derive(Component, Clone, Copy, PartialEq)]
pub(super) struct SetSphere(pub BoundingSphere);

type Changed3d = Or<(
    Changed<GpuInstances>,
    AssetChanged<GpuInstances>,
    Changed<Mesh3d>,
    AssetChanged<Mesh3d>,
    Changed<CullingRadius>,
)>;

/// Recomputes the bounds of sets whose instances, mesh or radius changed.
pub(super) fn update_bounds(
    mut commands: Commands,
    changed: Query<(Entity, &GpuInstances, &Mesh3d, Option<&CullingRadius>), Changed3d>,
    mut radius_removed: RemovedComponents<CullingRadius>,
    all: Query<(Entity, &GpuInstances, &Mesh3d, Option<&CullingRadius>)>,
    (sets, meshes): (Res<Assets<InstanceSet>>, Res<Assets<Mesh>>),
    skinned: Query<(), With<SkinnedMesh>>,
    clock: Res<CpuClock>,
) {
    let _running = clock.start(CpuStage::Main);
    let removed = radius_removed
        .read()
        .filter_map(|entity| all.get(entity).ok());
    for (entity, instances, mesh, radius) in changed.iter().chain(removed) {
        let (Some(set), Some(mesh)) = (sets.get(&instances.0), meshes.get(&mesh.0)) else {
            continue;
        };
        if skinned.contains(entity) || mesh.try_has_morph_targets().unwrap_or(false) {
            error!(
                "{entity}: GpuInstances cannot draw a skinned or morphed mesh; the set is not drawn"
            );
            commands.entity(entity).try_remove::<(SetSphere, Aabb)>();
            continue;
        }
        let sphere = match radius {
            Some(CullingRadius(radius)) => BoundingSphere {
                centre: Vec3::ZERO,
                radius: *radius,
            },
            None => match mesh.compute_aabb() {
                Some(aabb) => {
                    BoundingSphere::around_box(aabb.center.into(), aabb.half_extents.into())
                }
                None => continue,
            },
        };
        commands
            .entity(entity)
            .try_insert((SetSphere(sphere), set_aabb(set, sphere)));
    }
}

/// A box around the spheres of all instances, whatever their rotation.
fn set_aabb(set: &InstanceSet, sphere: BoundingSphere) -> Aabb {
    let Some(bounds) = set.bounds() else {
        return Aabb::default();
    };
    let reach = Vec3::splat((sphere.centre.length() + sphere.radius) * bounds.max_scale);
    Aabb::from_min_max(bounds.min - reach, bounds.max + reach)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::InstanceTransform;

    #[test]
    fn the_box_reaches_around_the_largest_instance_at_any_rotation() {
        let set = InstanceSet::from_transforms([
            InstanceTransform::from(Vec3::new(-1.0, 0.0, 0.0)),
            InstanceTransform::from(Vec3::new(3.0, 5.0, 0.0)).with_scale(2.0),
        ])
        .unwrap_or_default();
        let aabb = set_aabb(
            &set,
            BoundingSphere {
                centre: Vec3::Y,
                radius: 0.5,
            },
        );
        assert_eq!(Vec3::from(aabb.min()), Vec3::new(-4.0, -3.0, -3.0));
        assert_eq!(Vec3::from(aabb.max()), Vec3::new(6.0, 8.0, 3.0));
        assert_eq!(
            set_aabb(
                &InstanceSet::new(),
                BoundingSphere {
                    centre: Vec3::ZERO,
                    radius: 1.0
                }
            ),
            Aabb::default()
        );
    }
}
