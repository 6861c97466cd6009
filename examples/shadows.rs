//! Three kinds of light with shadows. Cascades, cube faces and a spot light's map are each tested
//! with their own planes, in the same compute pass.

use bevy::{light::CascadeShadowConfigBuilder, prelude::*};
use bevy_gpu_culling::prelude::*;

/// Instances along a side of the field.
const SIDE: u32 = 60;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_systems(Startup, spawn);
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    // A square grid, in gentle waves.
    let places = (0..SIDE * SIDE).map(|i| {
        let middle = SIDE as f32 / 2.0;
        let (x, z) = ((i % SIDE) as f32 - middle, (i / SIDE) as f32 - middle);
        let height = (x * 0.15).sin() + (z * 0.11).cos();
        Transform::from_xyz(x * 1.5, height, z * 1.5).with_rotation(Quat::from_rotation_y(i as f32))
    });
    let set = InstanceSet::from_transforms(places)?;
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
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        CascadeShadowConfigBuilder {
            maximum_distance: 60.0,
            ..default()
        }
        .build(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
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
