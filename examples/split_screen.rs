//! Two cameras, each with half of the screen. Both are tested in the same compute pass.

use bevy::{camera::Viewport, prelude::*};
use bevy_gpu_culling::prelude::*;

/// Instances along a side of the field.
const SIDE: u32 = 120;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_systems(Startup, spawn)
        .add_systems(Update, halve_the_window);
}

/// The half that a camera draws to: 0 is left, 1 is right.
#[derive(Component)]
struct Half(u32);

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
    let set = InstanceSet::from_transforms(places)?.sorted();
    commands.spawn((
        Mesh3d(meshes.add(Sphere::new(0.4).mesh().ico(1)?)),
        MeshMaterial3d(materials.add(Color::srgb(0.3, 0.7, 0.9))),
        GpuInstances(sets.add(set)),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    for (half, eye) in [Vec3::new(0.0, 3.0, 20.0), Vec3::new(30.0, 40.0, 0.0)]
        .into_iter()
        .enumerate()
    {
        commands.spawn((
            Camera3d::default(),
            Camera {
                order: half as isize,
                ..default()
            },
            Half(half as u32),
            Transform::from_translation(eye).looking_at(Vec3::ZERO, Vec3::Y),
        ));
    }
    Ok(())
}

/// Gives each camera its half of the window, whatever its size.
fn halve_the_window(window: Single<&Window>, mut cameras: Query<(&mut Camera, &Half)>) {
    let size = window.physical_size();
    let size = UVec2::new(size.x / 2, size.y).max(UVec2::ONE);
    for (mut camera, half) in &mut cameras {
        camera.viewport = Some(Viewport {
            physical_position: UVec2::new(size.x * half.0, 0),
            physical_size: size,
            ..default()
        });
    }
}
