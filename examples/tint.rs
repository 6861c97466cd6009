//! A field whose instances have their own colors, without a shader. Brushes wander over it and
//! paint what they touch.
//!
//! `--count N` draws more or fewer.

mod common;

use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

const BRUSHES: u32 = 7;
/// Radius of a brush, in instances.
const RADIUS: i32 = 2;
/// Frames before the picture without a window.
const PAINTED_FRAMES: u32 = 70;

fn main() -> AppExit {
    common::run(|app| {
        app.add_plugins(InstanceTintPlugin)
            .insert_resource(common::Busy(true))
            .add_systems(Startup, spawn)
            .add_systems(Update, paint);
    })
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<TintedMaterial>>,
    count: Res<common::Count>,
) -> Result {
    let side = count.or(250_000).isqrt();
    let grass = |i: u32| {
        let patch = ((i % side) as f32 * 0.07).sin() * ((i / side) as f32 * 0.05).cos();
        InstanceTint::tag(Hsla::hsl(95.0 + 35.0 * patch, 0.35, 0.35 + 0.1 * patch))
    };
    let set = InstanceSet::from_transforms(common::waves(side, 1.0))?
        .with_tags((0..side * side).map(grass).collect())?;
    commands.spawn((
        Mesh3d(meshes.add(Cuboid::from_length(0.7))),
        MeshMaterial3d(materials.add(InstanceTint::material(StandardMaterial {
            perceptual_roughness: 0.6,
            ..default()
        }))),
        GpuInstances(sets.add(set)),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 22.0, 36.0).looking_at(Vec3::ZERO, Vec3::Y),
    ));
    commands.spawn(common::sun(true));
    Ok(())
}

/// Moves the brushes. Only the tags that change are uploaded.
fn paint(
    instances: Single<&GpuInstances>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut busy: ResMut<common::Busy>,
    mut frame: Local<u32>,
) -> Result {
    let Some(mut set) = sets.get_mut(&instances.0) else {
        return Ok(());
    };
    let side = set.len().isqrt() as i32;
    for brush in 0..BRUSHES {
        let hue = brush as f32 * 360.0 / BRUSHES as f32;
        let tag = InstanceTint::tag(Hsla::hsl(hue, 0.85, 0.55));
        let along = *frame as f32 * 0.025 + brush as f32 * 2.1;
        let place = Vec2::new((along * 1.3).sin() * 26.0, (along * 0.8).cos() * 20.0);
        let center = place.as_ivec2() + side / 2;
        for offset in -RADIUS..=RADIUS {
            for row in -RADIUS..=RADIUS {
                let at = center + IVec2::new(offset, row);
                let is_round = offset * offset + row * row <= RADIUS * RADIUS;
                if is_round && at.min_element() >= 0 && at.max_element() < side {
                    set.set_tag((at.y * side + at.x) as u32, tag)?;
                }
            }
        }
    }
    *frame += 1;
    busy.0 = *frame < PAINTED_FRAMES;
    Ok(())
}
