//! Spheres in a cube around the camera, which turns.

use crate::{
    case::Scene,
    field::{PART, each_core},
};
use bevy::{math::ops, prelude::*};
use bevy_gpu_culling::instance::{InstanceError, InstanceSet, PackedInstance};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f32::consts::TAU;

/// Radius of a sphere in world units.
pub const RADIUS: f32 = 0.5;
const SEED: u64 = 3;

/// Side of the cube in world units. It grows with the cube root of the count, so that the density
/// stays.
pub fn side(scene: Scene, count: u32) -> f32 {
    let spacing = if scene == Scene::Dense { 1.5 } else { 4.0 };
    spacing * ops::cbrt(count as f32)
}

/// Spheres at random places of the cube, sorted along the Morton curve.
pub fn set(scene: Scene, count: u32) -> Result<InstanceSet, InstanceError> {
    let half = side(scene, count) / 2.0;
    let mut instances = vec![PackedInstance::default(); count as usize];
    each_core(
        instances.chunks_mut(PART).enumerate(),
        |(part, instances)| {
            let mut dice = ChaCha8Rng::seed_from_u64(SEED);
            dice.set_stream(part as u64);
            for instance in instances {
                let mut unit = || dice.random_range(-1.0f32..1.0);
                let place = Vec3::new(unit(), unit(), unit()) * half;
                let rotation = Quat::from_xyzw(unit(), unit(), unit(), 1.5).normalize();
                *instance = PackedInstance::new(place, rotation);
            }
        },
    );
    Ok(InstanceSet::from_packed(instances)?.sorted())
}

/// A sphere of 80 triangles.
pub fn mesh() -> Mesh {
    let sphere = Sphere::new(RADIUS).mesh();
    match sphere.ico(1) {
        Ok(mesh) => mesh,
        // Only a sphere with more vertices than a `u32` counts is refused.
        Err(_) => sphere.uv(16, 8),
    }
}

pub fn material() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.55, 0.68, 0.85),
        perceptual_roughness: 0.6,
        ..default()
    }
}

/// The lens of a camera that sees to the corners of the cube.
pub fn lens(side: f32) -> PerspectiveProjection {
    PerspectiveProjection {
        far: side,
        ..default()
    }
}

/// The camera's rotation after a share of one turn.
pub fn pose(share: f32) -> Quat {
    Quat::from_rotation_y(share * TAU)
}
