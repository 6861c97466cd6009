//! A field that is edited while it is drawn. A digger removes what is in its way, and new cubes
//! grow behind it. Cubes under a wandering cloud are hidden for a while. Travelers circle above,
//! and keep their ids however the others are moved. Only what changes is uploaded.

use bevy::{light::CascadeShadowConfigBuilder, prelude::*};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;
use std::collections::VecDeque;

/// Cubes along a side of the field.
const SIDE: i32 = 144;
const TRAVELERS: u32 = 48;
/// Radius of the digger and of the cloud, in cubes.
const RADII: [i32; 2] = [3, 11];
/// Steps until new cubes grow behind the digger.
const FALLOW: usize = 150;
/// Steps that have gone when the app starts, and go per second.
const STEPS: [f32; 2] = [250.0, 60.0];

/// The cubes by their ids, which last. Indices change when others are removed.
#[derive(Resource, Default)]
struct Field {
    /// The cube in each place of the grid, if there is one.
    cubes: Vec<Option<InstanceId>>,
    travelers: Vec<InstanceId>,
    /// What the cloud hides.
    hidden: Vec<InstanceId>,
    /// The last places of the digger.
    trench: VecDeque<IVec2>,
    steps: u32,
}

/// Marks the entity of the set.
#[derive(Component)]
struct Cubes;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(InstanceTintPlugin)
        .init_resource::<Field>()
        .add_systems(Startup, spawn)
        .add_systems(Update, edit);
}

fn spawn(
    mut commands: Commands,
    mut field: ResMut<Field>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut tinted: ResMut<Assets<TintedMaterial>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let cubes = (0..SIDE * SIDE).map(|at| (cube(at), InstanceTint::tag(grass(at, 0.3))));
    let gold = InstanceTint::tag(Color::srgb(1.0, 0.7, 0.1));
    let travelers = (0..TRAVELERS).map(|i| (traveler(i, 0), gold));
    let set = InstanceSet::from_tagged(cubes.chain(travelers))?.with_ids();
    let count = (SIDE * SIDE) as u32;
    field.cubes = (0..count).map(|index| set.id_of(index)).collect();
    field.travelers = (0..TRAVELERS)
        .filter_map(|i| set.id_of(count + i))
        .collect();
    commands.spawn((
        Cubes,
        Mesh3d(meshes.add(Cuboid::from_length(0.85))),
        MeshMaterial3d(tinted.add(InstanceTint::material(Color::WHITE))),
        // Neighbors in space become neighbors in memory. Ids name the same cubes as before.
        GpuInstances(sets.add(set.sorted())),
    ));
    commands.spawn((
        Mesh3d(meshes.add(Plane3d::new(Vec3::Y, Vec2::splat(SIDE as f32 / 2.0)))),
        MeshMaterial3d(materials.add(Color::srgb(0.3, 0.2, 0.13))),
        Transform::from_xyz(0.0, -1.5, 0.0),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 34.0, 48.0).looking_at(Vec3::new(0.0, 0.0, 4.0), Vec3::Y),
    ));
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 1,
        maximum_distance: 100.0,
        ..default()
    };
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        cascades.build(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    Ok(())
}

fn edit(
    time: Res<Time>,
    instances: Single<&GpuInstances, With<Cubes>>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut field: ResMut<Field>,
) -> Result {
    let Some(mut set) = sets.get_mut(&instances.0) else {
        return Ok(());
    };
    let steps = (STEPS[0] + STEPS[1] * time.elapsed_secs()) as u32;
    while field.steps < steps {
        field.steps += 1;
        // A refused edit is logged. An error without a severity would end the app.
        dig(&mut set, &mut field).with_severity(Severity::Error)?;
        cover(&mut set, &mut field).with_severity(Severity::Error)?;
    }
    for (i, id) in (0..).zip(&field.travelers) {
        if let Some(index) = set.index_of(*id) {
            set.set(index, traveler(i, field.steps))
                .with_severity(Severity::Error)?;
        }
    }
    Ok(())
}

/// Removes what is in the digger's way. Something new grows in the places of long ago.
fn dig(set: &mut InstanceSet, field: &mut Field) -> Result<(), InstanceError> {
    let along = field.steps as f32 * 0.02;
    let place = Vec2::new((along * 1.1).sin() * 34.0, (along * 1.7).cos() * 18.0).as_ivec2();
    for at in disc(place, RADII[0]) {
        let id = field.cubes[at].take();
        if let Some(index) = id.and_then(|id| set.index_of(id)) {
            // The last instance takes its place, and keeps its id.
            set.swap_remove(index)?;
        }
    }
    field.trench.push_back(place);
    if field.trench.len() > FALLOW {
        for at in field
            .trench
            .pop_front()
            .into_iter()
            .flat_map(|place| disc(place, RADII[0]))
        {
            if field.cubes[at].is_none() {
                let young = InstanceTint::tag(grass(at as i32, 0.6));
                let index = set.push_tagged(cube(at as i32), young)?;
                field.cubes[at] = set.id_of(index);
            }
        }
    }
    Ok(())
}

/// Hides what is under the cloud, and shows what no longer is.
fn cover(set: &mut InstanceSet, field: &mut Field) -> Result<(), InstanceError> {
    let along = field.steps as f32 * 0.015;
    let place = Vec2::new(along.cos() * 30.0, along.sin() * 14.0 + 4.0).as_ivec2();
    let under: Vec<_> = disc(place, RADII[1])
        .filter_map(|at| field.cubes[at])
        .collect();
    for id in std::mem::replace(&mut field.hidden, under) {
        // What was removed meanwhile has no index.
        if let Some(index) = set.index_of(id) {
            set.show(index)?;
        }
    }
    for id in &field.hidden {
        if let Some(index) = set.index_of(*id) {
            set.hide(index)?;
        }
    }
    Ok(())
}

/// The places of the grid around a point of the world.
fn disc(center: IVec2, radius: i32) -> impl Iterator<Item = usize> {
    let square =
        (-radius..=radius).flat_map(move |y| (-radius..=radius).map(move |x| IVec2::new(x, y)));
    square
        .filter(move |offset| offset.length_squared() <= radius * radius)
        .map(move |offset| center + offset + SIDE / 2)
        .filter(|at| at.min_element() >= 0 && at.max_element() < SIDE)
        .map(|at| (at.y * SIDE + at.x) as usize)
}

/// The cube in a place of the grid.
fn cube(at: i32) -> Transform {
    let place = (IVec2::new(at % SIDE, at / SIDE) - SIDE / 2).as_vec2();
    let height = 0.4 * (place.x * 0.21).sin() + 0.4 * (place.y * 0.17).cos();
    Transform::from_xyz(place.x, height, place.y)
}

fn grass(at: i32, lightness: f32) -> Hsla {
    let shade = 0.05 * ((at % SIDE) as f32 * 0.3).sin();
    Hsla::hsl(105.0, 0.5, lightness + shade)
}

/// A traveler after some steps.
fn traveler(i: u32, steps: u32) -> Transform {
    let along = i as f32 / TRAVELERS as f32 * TAU + steps as f32 * 0.01;
    let height = 6.0 + 2.0 * (4.0 * along).sin();
    Transform::from_xyz(along.cos() * 20.0, height, along.sin() * 20.0)
        .with_rotation(Quat::from_rotation_y(3.0 * along))
}
