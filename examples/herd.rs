//! A herd of foxes: clips of a skinned glTF file, played on the GPU. Rings of foxes walk, run and
//! walk again; in the middle, each looks around at its own time.

use bevy::{light::CascadeShadowConfigBuilder, prelude::*};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;

/// The clips by their indices in [`BakeAnimation`].
const WALK: u8 = 0;
const RUN: u8 = 1;
/// World units per second of the clips.
const PACES: [f32; 2] = [0.9, 4.2];
/// A fox of the file is 155 units long.
const SCALE: f32 = 0.01;
/// Rings that walk and run alike.
const RINGS: u32 = 4;
/// Seconds between two changes of pace.
const CHANGE: f32 = 5.0;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(10_000))
        .run()
}

/// Number of foxes.
#[derive(Resource)]
pub struct Count(pub u32);

/// A few rings around the middle, which turn together.
#[derive(Component)]
struct Rings {
    number: u32,
    clip: u8,
    pace: f32,
    radius: f32,
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.insert_resource(ClearColor(Color::srgb(0.6, 0.75, 0.9)))
        .add_systems(Startup, (gather, spawn))
        .add_systems(Update, (change_pace, turn));
}

/// Whether all foxes have poses.
pub fn is_ready(world: &mut World) -> bool {
    let mut parts = world.query::<&InstanceAnimation>();
    let poses = world.resource::<Assets<AnimationPoses>>();
    let mut parts = parts.iter(world).peekable();
    parts.peek().is_some() && parts.all(|part| poses.contains(&part.poses))
}

fn gather(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    assets: Res<AssetServer>,
    count: Res<Count>,
) -> Result {
    let clip = |number: u32| assets.load(format!("fox.glb#Animation{number}"));
    let fox = InstanceScene(assets.load("fox.glb#Scene0"));
    // Without states, each plays the first clip at its own time.
    let watchers = (0..24).map(|i| {
        let at = Quat::from_rotation_y(i as f32 * 2.4) * Vec3::Z * (i as f32).sqrt() * 0.8;
        placed(at, i as f32 * 1.7)
    });
    commands.spawn((
        fox.clone(),
        BakeAnimation::looping([clip(0)]),
        GpuInstances(sets.add(InstanceSet::from_transforms(watchers)?)),
    ));
    let mut left = count.0.saturating_sub(24);
    for number in 0.. {
        let (set, radius) = rings(number, &mut left)?;
        if set.is_empty() {
            break;
        }
        commands.spawn((
            fox.clone(),
            BakeAnimation::looping([clip(1), clip(2)]).with_states_in_data(0),
            GpuInstances(sets.add(set)),
            Rings {
                number,
                clip: WALK,
                pace: PACES[0],
                radius,
            },
        ));
    }
    Ok(())
}

/// A fox at a place, which looks along an angle.
fn placed(at: Vec3, angle: f32) -> Transform {
    Transform::from_translation(at)
        .with_rotation(Quat::from_rotation_y(angle))
        .with_scale(Vec3::splat(SCALE))
}

/// As many foxes of `left` as fit on some rings, and the radius of the middle one.
fn rings(number: u32, left: &mut u32) -> Result<(InstanceSet, f32), InstanceError> {
    let mut places = Vec::new();
    for ring in number * RINGS..(number + 1) * RINGS {
        let radius = 7.0 + 1.6 * ring as f32;
        let fits = (radius * TAU / 2.4) as u32;
        let count = fits.min(*left);
        *left -= count;
        places.extend((0..count).map(|i| {
            let angle = (i as f32 + 0.3 * (random(ring, i) - 0.5)) * TAU / fits as f32;
            placed(Quat::from_rotation_y(angle) * Vec3::X * radius, angle)
        }));
    }
    let walk = |i| {
        let begun = core::time::Duration::from_secs_f32(random(number, i));
        AnimationState::play(WALK, default()).begun_before(begun)
    };
    let states = (0..places.len() as u32).map(walk).collect();
    let set = InstanceSet::from_transforms(places)?.with_data(states)?;
    Ok((set, 7.0 + 1.6 * (number as f32 + 0.5) * RINGS as f32))
}

/// A number from 0 to 1.
fn random(a: u32, b: u32) -> f32 {
    let state = (a ^ b.wrapping_mul(0x9e37_79b9)).wrapping_mul(747_796_405);
    ((state ^ (state >> 15)).wrapping_mul(277_803_737) >> 8) as f32 / (1 << 24) as f32
}

/// Has rings walk or run. The GPU plays the clips: only a change is written.
fn change_pace(
    time: Res<Time>,
    mut rings: Query<(&mut Rings, &GpuInstances, &Children)>,
    parts: Query<&InstanceAnimation>,
    poses: Res<Assets<AnimationPoses>>,
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    for (mut rings, instances, children) in &mut rings {
        let turn = (time.elapsed_secs() / CHANGE) as u32 + rings.number;
        let clip = if turn.is_multiple_of(2) { WALK } else { RUN };
        let part = parts.iter_many(children).flatten().next();
        let Some(poses) = part.and_then(|part| poses.get(&part.poses)) else {
            continue;
        };
        if clip == rings.clip {
            continue;
        }
        let Some(mut set) = sets.get_mut(&instances.0) else {
            continue;
        };
        rings.clip = clip;
        for index in 0..set.len() as u32 {
            if let Some(state) = set.data::<AnimationState>(index) {
                // A refused edit is logged. An error without a severity would end the app.
                set.set_data(index, state.change_to(clip, time.elapsed(), poses))
                    .with_severity(Severity::Error)?;
            }
        }
    }
    Ok(())
}

/// Turns the rings as fast as their foxes step.
fn turn(time: Res<Time>, mut rings: Query<(&mut Rings, &mut Transform)>) {
    for (mut rings, mut transform) in &mut rings {
        let wanted = PACES[usize::from(rings.clip)];
        let step = 4.0 * time.delta_secs();
        rings.pace += (wanted - rings.pace).clamp(-step, step);
        transform.rotate_y(-rings.pace / rings.radius * time.delta_secs());
    }
}

fn spawn(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    commands.spawn((
        Mesh3d(meshes.add(Plane3d::new(Vec3::Y, Vec2::splat(400.0)))),
        MeshMaterial3d(materials.add(Color::srgb(0.32, 0.42, 0.2))),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 4.5, 16.0).looking_at(Vec3::new(0.0, 0.0, 2.0), Vec3::Y),
    ));
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 2,
        first_cascade_far_bound: 15.0,
        maximum_distance: 60.0,
        ..default()
    };
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        cascades.build(),
        Transform::default().looking_to(Vec3::new(1.0, -1.2, -0.6), Vec3::Y),
    ));
}
