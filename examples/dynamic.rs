//! A few of a hundred thousand instances move. Only what changed is uploaded.

mod common;

use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

const SIDE: u32 = 316;
/// The row that moves. The others stand still.
const MOVING: u32 = SIDE / 2 + 4;

fn main() -> AppExit {
    common::run(|app| {
        app.add_systems(Startup, spawn)
            .add_systems(Update, (wave, tell));
    })
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    commands.spawn((
        Mesh3d(meshes.add(Cuboid::from_length(0.6))),
        MeshMaterial3d(materials.add(Color::srgb(0.5, 0.8, 0.4))),
        GpuInstances(sets.add(InstanceSet::from_transforms(common::waves(SIDE, 1.0))?)),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 10.0, 24.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn(common::sun(false));
    Ok(())
}

/// Lifts a row out of the field. `InstanceSet::set` records what changed.
fn wave(
    time: Res<Time>,
    instances: Single<&GpuInstances>,
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    let Some(mut set) = sets.get_mut(&instances.0) else {
        return Ok(());
    };
    for i in 0..SIDE {
        let x = i as f32 - SIDE as f32 / 2.0;
        let height = 3.0 + (x * 0.3 + time.elapsed_secs() * 3.0).sin();
        let place = Transform::from_xyz(x, height, MOVING as f32 - SIDE as f32 / 2.0);
        set.set(MOVING * SIDE + i, place)?;
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
