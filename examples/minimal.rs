//! The minimum that draws a set: a mesh, a material and a hundred thousand places.

mod common;

use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

fn main() -> AppExit {
    common::run(|app| {
        app.add_systems(Startup, spawn);
    })
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    // Neighbors in space become neighbors in memory, so that whole blocks are rejected at once.
    let set = InstanceSet::from_transforms(common::waves(316, 1.2))?.sorted();
    commands.spawn((
        Mesh3d(meshes.add(Cuboid::from_length(0.6))),
        MeshMaterial3d(materials.add(Color::srgb(0.9, 0.5, 0.3))),
        GpuInstances(sets.add(set)),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 12.0, 30.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn(common::sun(false));
    Ok(())
}
