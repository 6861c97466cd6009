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
/// Steps of the first frame. Later frames take one.
const FIRST_STEPS: u32 = 100;

fn main() -> AppExit {
    common::run(|app| {
        app.add_plugins(InstanceTintPlugin)
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
    mut painted: Local<u32>,
) -> Result {
    let Some(mut set) = sets.get_mut(&instances.0) else {
        return Ok(());
    };
    let side = set.len().isqrt() as i32;
    let steps = if *painted == 0 { FIRST_STEPS } else { 1 };
    for step in *painted..*painted + steps {
        for brush in 0..BRUSHES {
            let along = step as f32 * 0.025 + brush as f32 * 2.1;
            let place = Vec2::new((along * 1.3).sin() * 26.0, (along * 0.8).cos() * 20.0);
            let hue = brush as f32 * 360.0 / BRUSHES as f32;
            let tag = InstanceTint::tag(Hsla::hsl(hue, 0.85, 0.55));
            for index in disc(place.as_ivec2() + side / 2, side) {
                set.set_tag(index, tag)?;
            }
        }
    }
    *painted += steps;
    Ok(())
}

/// The instances around a place of the field.
fn disc(center: IVec2, side: i32) -> impl Iterator<Item = u32> {
    let offsets =
        (-RADIUS..=RADIUS).flat_map(|y| (-RADIUS..=RADIUS).map(move |x| IVec2::new(x, y)));
    offsets
        .filter(|offset| offset.length_squared() <= RADIUS * RADIUS)
        .map(move |offset| center + offset)
        .filter(move |at| at.min_element() >= 0 && at.max_element() < side)
        .map(move |at| (at.y * side + at.x) as u32)
}
