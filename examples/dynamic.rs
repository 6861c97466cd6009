//! A few of a hundred thousand instances move. Only what changed is uploaded.

use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

/// Instances along a side of the field.
const SIDE: u32 = 316;
/// The row that moves. The others stand still.
const MOVING: u32 = SIDE / 2 + 4;

/// Marks the entity of the set.
#[derive(Component)]
struct Field;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_systems(Startup, spawn)
        .add_systems(Update, (wave, tell));
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
        Transform::from_xyz(x, height, z).with_rotation(Quat::from_rotation_y(i as f32))
    });
    commands.spawn((
        Field,
        Mesh3d(meshes.add(Cuboid::from_length(0.6))),
        MeshMaterial3d(materials.add(Color::srgb(0.5, 0.8, 0.4))),
        GpuInstances(sets.add(InstanceSet::from_transforms(places)?)),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 10.0, 24.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}

/// Lifts a row out of the field. `InstanceSet::set` records what changed.
fn wave(
    time: Res<Time>,
    instances: Single<&GpuInstances, With<Field>>,
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    let Some(mut set) = sets.get_mut(&instances.0) else {
        return Ok(());
    };
    for i in 0..SIDE {
        let x = i as f32 - SIDE as f32 / 2.0;
        let height = 3.0 + (x * 0.3 + time.elapsed_secs() * 3.0).sin();
        let place = Transform::from_xyz(x, height, MOVING as f32 - SIDE as f32 / 2.0);
        // A refused edit is logged. An error without a severity would end the app.
        set.set(MOVING * SIDE + i, place)
            .with_severity(Severity::Error)?;
    }
    Ok(())
}

/// Logs once how much was uploaded.
fn tell(report: Res<CullingReport>, mut frames: Local<u32>) {
    *frames += 1;
    if *frames == 5 {
        info!(
            "{} bytes uploaded in a frame, of {} on the GPU",
            report.uploaded_bytes, report.gpu_bytes
        );
    }
}
