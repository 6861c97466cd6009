//! The sphere around a mesh whose instances are tested by a radius.

use crate::{
    cull::BoundingSphere,
    render::components::{CullingRadius, GpuInstances},
};
use bevy::{camera::primitives::MeshAabb, prelude::*};

/// The sphere around the mesh of an entity with a [`CullingRadius`], in the mesh's units.
#[derive(Component)]
pub(super) struct MeshSphere(pub BoundingSphere);

/// What changes the sphere of a set's mesh.
type SphereChanged = (
    With<GpuInstances>,
    Or<(Added<CullingRadius>, Changed<Mesh3d>, AssetChanged<Mesh3d>)>,
);

/// Measures meshes that are on the CPU.
pub(super) fn measure_meshes(
    mut commands: Commands,
    changed: Query<(Entity, &Mesh3d), (With<CullingRadius>, SphereChanged)>,
    meshes: Res<Assets<Mesh>>,
) {
    for (entity, mesh) in &changed {
        let aabb = meshes.get(&mesh.0).and_then(Mesh::get_aabb);
        let Ok(mut entity) = commands.get_entity(entity) else {
            continue;
        };
        match aabb {
            Some(aabb) => {
                let (center, half) = (aabb.center.into(), aabb.half_extents.into());
                entity.try_insert(MeshSphere(BoundingSphere::around_box(center, half)));
            }
            None => {
                entity.try_remove::<MeshSphere>();
            }
        }
    }
}
