//! The canyon of the example `occlusion`, seen by a camera on its ground, which turns.

#[path = "../../../examples/occlusion.rs"]
#[allow(dead_code, reason = "the app of the example is not run here")]
mod example;

use bevy::prelude::*;
use bevy_gpu_culling::{
    instance::{InstanceError, InstanceSet},
    meshlet::MeshletError,
    prelude::{InstanceLods, LodSettings},
};
use std::f32::consts::TAU;

pub use example::{boulder as mesh, eye, rock as material};

/// The boulders, sorted along the Morton curve.
pub fn set(count: u32) -> Result<InstanceSet, InstanceError> {
    let set = InstanceSet::from_transforms(example::boulders(count))?;
    Ok(set.sorted())
}

/// The coarser levels of a boulder, with their errors.
pub fn levels() -> Result<Vec<(Mesh, f32)>, MeshletError> {
    InstanceLods::simplified_meshes(&mesh(), &LodSettings::default())
}

/// The lens of a camera that sees to the end of the land.
pub fn lens(count: u32) -> PerspectiveProjection {
    PerspectiveProjection {
        far: count as f32,
        ..default()
    }
}

/// The camera's rotation after a share of one turn.
pub fn pose(share: f32) -> Quat {
    Quat::from_rotation_y(share * TAU) * eye().rotation
}
