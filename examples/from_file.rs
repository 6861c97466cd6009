//! A tower of bricks from a file, `assets/tower.instances`. When the file changes, so does what is
//! drawn: press R to load it again.

use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

const TOWER: &str = "tower.instances";

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_systems(Startup, spawn).add_systems(Update, reload);
}

fn spawn(
    mut commands: Commands,
    server: Res<AssetServer>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    let bricks = StandardMaterial {
        base_color: Color::srgb(0.75, 0.42, 0.28),
        perceptual_roughness: 0.9,
        ..default()
    };
    commands.spawn((
        Mesh3d(meshes.add(Cuboid::new(0.45, 0.55, 0.98))),
        MeshMaterial3d(materials.add(bricks)),
        GpuInstances(server.load(TOWER)),
    ));
    commands.spawn((
        Mesh3d(meshes.add(Plane3d::default().mesh().size(200.0, 200.0))),
        MeshMaterial3d(materials.add(Color::srgb(0.35, 0.4, 0.25))),
        Transform::from_xyz(0.0, -0.3, 0.0),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(-13.0, 9.0, 45.0).looking_at(Vec3::new(3.0, 13.0, 0.0), Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
}

/// With Bevy's feature `file_watcher`, this happens whenever the file is written.
fn reload(keys: Res<ButtonInput<KeyCode>>, server: Res<AssetServer>) {
    if keys.just_pressed(KeyCode::KeyR) {
        server.reload(TOWER);
    }
}
