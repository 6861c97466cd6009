//! A set looks like the same scene of Bevy's own entities, and still does when things change.
//!
//! It is a separate program, because it makes hundreds of apps, and lavapipe keeps memory of each
//! pipeline.
#![cfg(all(feature = "bevy", feature = "study"))]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic and tell what it saw"
)]

mod aggregate;
#[cfg(all(feature = "animation", feature = "gltf"))]
mod animation;
mod baked;
mod batch_sets;
mod changes;
mod city;
mod counters;
mod detach;
mod detail;
mod far;
mod far_first;
mod frozen;
#[cfg(feature = "gltf")]
mod gltf;
#[cfg(feature = "gltf")]
#[path = "../scene/gltf_file.rs"]
mod gltf_file;
mod groups;
mod impostors;
mod levels;
#[path = "../scene/log.rs"]
mod log;
mod looks;
mod many;
mod materials;
mod offsets;
mod order;
mod ranges;
mod refused;
mod reports;
mod scatter;
#[path = "../scene/mod.rs"]
mod scene;
mod scenes;
#[cfg(feature = "meshlets")]
mod soak;
mod streams;
mod views;

use crate::scene::{How, Stage};
use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;

/// Where cameras look from.
fn eye() -> Transform {
    Transform::from_xyz(0.0, 3.0, 7.0).looking_at(Vec3::new(0.5, 0.0, 0.0), Vec3::Y)
}

/// A place of sets, rotated and scaled.
fn moved() -> Transform {
    Transform::from_xyz(0.5, -0.3, -1.0)
        .with_rotation(Quat::from_rotation_y(0.3))
        .with_scale(Vec3::new(1.1, 0.8, 1.2))
}

fn red() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.9, 0.3, 0.2),
        perceptual_roughness: 0.4,
        ..default()
    }
}

/// A box without two equal sides.
fn box_mesh() -> Cuboid {
    Cuboid::new(0.5, 0.4, 0.6)
}

/// Spawns a set of red boxes.
fn red_boxes(stage: &mut Stage, set: &InstanceSet, at: Transform) -> Entity {
    let mesh = stage.mesh(box_mesh());
    let material = stage.standard(red());
    stage.spawn_set(set, (mesh, material), at)
}

/// The picture of the same scene drawn by a set on a tier, and by entities.
fn both(tier: Option<CullingTier>, build: impl Fn(&mut Stage)) -> (RgbaImage, RgbaImage) {
    let draw = |how| {
        let mut stage = Stage::new(how);
        build(&mut stage);
        stage.picture()
    };
    (draw(How::Set(tier)), draw(How::Entities))
}
