//! Rays and pointers hit single instances, and regions find them (feature `picking`).
//!
//! `ray_cast` and `query` are the searches, `backend` reports what is under a pointer to
//! `bevy_picking`.

mod backend;
mod hit;
mod indices;
mod query;
mod ray_cast;

pub use backend::{InstancePickingPlugin, InstancePickingSettings};
pub use hit::InstanceHit;
pub use query::InstanceQuery;
pub use ray_cast::InstanceRayCast;

use indices::{SpatialIndices, forget_indices};

use super::components::GpuInstances;
use crate::instance::InstanceSet;
use bevy::{
    asset::uuid_handle, log::debug, picking::mesh_picking::ray_cast::SimplifiedMesh, prelude::*,
};

/// A mesh that never exists. Bevy's `MeshRayCast` uses it in place of a set's mesh, which is not
/// drawn at the entity's own place.
const NO_MESH: Handle<Mesh> = uuid_handle!("0c61d3f8-6fd5-4bb4-9d4e-0f2f8d1f7c10");

/// Keeps Bevy's own ray casts from meshes of sets.
pub(super) fn build(app: &mut App) {
    let added = app
        .world_mut()
        .try_register_required_components_with::<GpuInstances, SimplifiedMesh>(|| {
            SimplifiedMesh(NO_MESH)
        });
    if let Err(error) = added {
        debug!("sets keep their SimplifiedMesh: {error}");
    }
    app.init_resource::<SpatialIndices>()
        .register_type::<InstanceHit>()
        .add_systems(
            PreUpdate,
            (
                restore_meshes,
                forget_indices.run_if(resource_exists::<Assets<InstanceSet>>),
            ),
        );
}

/// An entity that has no set any more is an ordinary mesh, also for rays.
fn restore_meshes(
    mut commands: Commands,
    mut removed: RemovedComponents<GpuInstances>,
    meshes: Query<&SimplifiedMesh, Without<GpuInstances>>,
) {
    for entity in removed.read() {
        if meshes.get(entity).is_ok_and(|mesh| mesh.0 == NO_MESH) {
            commands.entity(entity).try_remove::<SimplifiedMesh>();
        }
    }
}
