//! Two cameras, each with half of the screen. Both are tested in the same compute pass.

mod common;

use bevy::{
    camera::{RenderTarget, Viewport},
    prelude::*,
    window::PrimaryWindow,
};
use bevy_gpu_culling::prelude::*;

fn main() -> AppExit {
    common::run(|app| {
        app.add_systems(Startup, spawn)
            .add_systems(Update, halve_the_target);
    })
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
    let set = InstanceSet::from_transforms(common::waves(120, 1.2))?.sorted();
    commands.spawn((
        Mesh3d(meshes.add(Sphere::new(0.4).mesh().ico(1)?)),
        MeshMaterial3d(materials.add(Color::srgb(0.3, 0.7, 0.9))),
        GpuInstances(sets.add(set)),
    ));
    commands.spawn(common::sun(false));
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

/// Gives each camera its half of the target's current size.
fn halve_the_target(
    mut cameras: Query<(&mut Camera, &RenderTarget, &Half)>,
    windows: Query<&Window, With<PrimaryWindow>>,
    images: Res<Assets<Image>>,
) {
    for (mut camera, target, half) in &mut cameras {
        let size = match target {
            RenderTarget::Image(image) => images.get(&image.handle).map(Image::size),
            _ => windows.single().ok().map(Window::physical_size),
        };
        if let Some(size) = size {
            let size = UVec2::new(size.x / 2, size.y).max(UVec2::ONE);
            camera.viewport = Some(Viewport {
                physical_position: UVec2::new(size.x * half.0, 0),
                physical_size: size,
                ..default()
            });
        }
    }
}
