//! The minimum that draws a set: a mesh, a material and a hundred thousand places.

use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

/// Instances along a side of the field.
const SIDE: u32 = 316;

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
        Transform::from_xyz(x * 1.2, height, z * 1.2).with_rotation(Quat::from_rotation_y(i as f32))
    });
    // Neighbors in space become neighbors in memory, so that whole blocks are rejected at once.
    let set = InstanceSet::from_transforms(places)?.sorted();
    commands.spawn((
        Mesh3d(meshes.add(Cuboid::from_length(0.6))),
        MeshMaterial3d(materials.add(Color::srgb(0.9, 0.5, 0.3))),
        GpuInstances(sets.add(set)),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 12.0, 30.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}
