//! Two wheels of turning blocks and a camera with motion blur. The set of the left wheel keeps the
//! previous frame's instances, so its blocks have motion vectors and blur. Without them, the blocks
//! of the right wheel stay sharp.

use bevy::{post_process::motion_blur::MotionBlur, prelude::*};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;

/// Rings of a wheel, and blocks of its innermost ring. Each ring has as many more.
const RINGS: u32 = 9;
const BLOCKS: u32 = 4;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_systems(Startup, spawn).add_systems(Update, turn);
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let mesh = meshes.add(Cuboid::new(0.75, 0.75, 0.75));
    for (side, keeps, color) in [
        (-1.0, true, Color::srgb(0.95, 0.55, 0.2)),
        (1.0, false, Color::srgb(0.3, 0.6, 0.95)),
    ] {
        let set = InstanceSet::from_transforms(wheel(0.0))?.keep_previous(keeps);
        commands.spawn((
            Mesh3d(mesh.clone()),
            MeshMaterial3d(materials.add(color)),
            GpuInstances(sets.add(set)),
            Transform::from_xyz(side * 10.5, 0.0, 0.0),
        ));
    }
    commands.spawn((
        Camera3d::default(),
        MotionBlur {
            // The shutter is open from frame to frame.
            shutter_angle: 1.0,
            samples: 8,
        },
        // Bevy's effect reads a depth buffer of one sample everywhere.
        Msaa::Off,
        Transform::from_xyz(0.0, 20.0, 22.0).looking_at(Vec3::new(0.0, 0.0, 1.5), Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}

/// Moves every block of both wheels.
fn turn(
    time: Res<Time>,
    wheels: Query<&GpuInstances>,
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    for wheel_set in &wheels {
        if let Some(mut set) = sets.get_mut(&wheel_set.0) {
            // A refused edit is logged. An error without a severity would end the app.
            set.set_range(0, wheel(time.elapsed_secs()))
                .with_severity(Severity::Error)?;
        }
    }
    Ok(())
}

/// The blocks at a time. Inner rings turn faster, and every second one the other way.
fn wheel(time: f32) -> impl Iterator<Item = Transform> {
    (0..RINGS).flat_map(move |ring| {
        let radius = 1.5 + ring as f32;
        let speed = if ring % 2 == 0 { 32.0 } else { -32.0 } / radius;
        let blocks = BLOCKS * (ring + 1);
        (0..blocks).map(move |block| {
            let angle = block as f32 / blocks as f32 * TAU + speed * time;
            Transform::from_rotation(Quat::from_rotation_y(angle))
                * Transform::from_xyz(radius, 0.0, 0.0)
        })
    })
}
