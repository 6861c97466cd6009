//! Three kinds of light with shadows. Cascades, cube faces and a spot light's map are each tested
//! with their own planes, in the same compute pass.

mod common;

use bevy::{light::CascadeShadowConfigBuilder, prelude::*};
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
    let set = InstanceSet::from_transforms(common::waves(60, 1.5))?;
    commands.spawn((
        Mesh3d(meshes.add(Cuboid::new(0.4, 1.2, 0.4))),
        MeshMaterial3d(materials.add(Color::srgb(0.85, 0.8, 0.75))),
        GpuInstances(sets.add(set)),
        Transform::from_xyz(0.0, 2.5, 0.0),
    ));
    // An ordinary mesh receives the set's shadows.
    commands.spawn((
        Mesh3d(meshes.add(Plane3d::new(Vec3::Y, Vec2::splat(60.0)))),
        MeshMaterial3d(materials.add(Color::srgb(0.4, 0.45, 0.4))),
    ));
    commands.spawn((
        common::sun(true),
        CascadeShadowConfigBuilder {
            maximum_distance: 60.0,
            ..default()
        }
        .build(),
    ));
    commands.spawn((
        PointLight {
            intensity: 4_000_000.0,
            range: 25.0,
            color: Color::srgb(1.0, 0.5, 0.2),
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(-4.0, 5.0, 8.0),
    ));
    commands.spawn((
        SpotLight {
            intensity: 40_000_000.0,
            range: 40.0,
            color: Color::srgb(0.3, 0.5, 1.0),
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::from_xyz(12.0, 14.0, 8.0).looking_at(Vec3::new(6.0, 0.0, 0.0), Vec3::Y),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 9.0, 20.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    Ok(())
}
