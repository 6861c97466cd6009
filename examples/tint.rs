//! A field whose instances have their own colors, without a shader. Brushes wander over it and
//! paint what they touch.

use bevy::prelude::*;
use bevy_gpu_culling::prelude::*;

const BRUSHES: u32 = 7;
/// Radius of a brush, in instances.
const RADIUS: i32 = 2;
/// Steps that the brushes have gone when the app starts, and go per second.
const STEPS: [f32; 2] = [100.0, 60.0];

/// Marks the entity of the set.
#[derive(Component)]
struct Field;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(250_000))
        .run()
}

/// Number of instances.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(InstanceTintPlugin)
        .add_systems(Startup, spawn)
        .add_systems(Update, paint);
}

fn spawn(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<TintedMaterial>>,
    count: Res<Count>,
) -> Result {
    let side = count.0.isqrt();
    let grass = |i: u32| {
        let patch = ((i % side) as f32 * 0.07).sin() * ((i / side) as f32 * 0.05).cos();
        InstanceTint::tag(Hsla::hsl(95.0 + 35.0 * patch, 0.35, 0.35 + 0.1 * patch))
    };
    // A square grid, in gentle waves.
    let places = (0..side * side).map(|i| {
        let middle = side as f32 / 2.0;
        let (x, z) = ((i % side) as f32 - middle, (i / side) as f32 - middle);
        let height = (x * 0.15).sin() + (z * 0.11).cos();
        Transform::from_xyz(x, height, z).with_rotation(Quat::from_rotation_y(i as f32))
    });
    let set =
        InstanceSet::from_transforms(places)?.with_tags((0..side * side).map(grass).collect())?;
    commands.spawn((
        Field,
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
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}

/// Moves the brushes. Only the tags that change are uploaded.
fn paint(
    time: Res<Time>,
    instances: Single<&GpuInstances, With<Field>>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut painted: Local<u32>,
) -> Result {
    let Some(mut set) = sets.get_mut(&instances.0) else {
        return Ok(());
    };
    let side = set.len().isqrt() as i32;
    let steps = (STEPS[0] + STEPS[1] * time.elapsed_secs()) as u32;
    for step in *painted..steps {
        for brush in 0..BRUSHES {
            let along = step as f32 * 0.025 + brush as f32 * 2.1;
            let place = Vec2::new((along * 1.3).sin() * 26.0, (along * 0.8).cos() * 20.0);
            let hue = brush as f32 * 360.0 / BRUSHES as f32;
            let tag = InstanceTint::tag(Hsla::hsl(hue, 0.85, 0.55));
            for index in disc(place.as_ivec2() + side / 2, side) {
                // A refused edit is logged. An error without a severity would end the app.
                set.set_tag(index, tag).with_severity(Severity::Error)?;
            }
        }
    }
    *painted = steps;
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
