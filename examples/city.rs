//! A city of many meshes: one set per mesh, all with one material, drawn by a few multi-draws. Cars
//! move as sets, too. What stands behind houses is left out.

use bevy::{light::CascadeShadowConfigBuilder, prelude::*};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::{FRAC_PI_2, PI};

/// Number of different houses.
const MESHES: u32 = 300;
/// Crossings along a side of the city.
const STREETS: u32 = 40;
/// Distance of streets.
const BLOCK: f32 = 30.0;
/// Houses along a side of a block.
const HOUSES: u32 = 3;
/// Distance of the cars of a street.
const GAP: f32 = 25.0;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .run()
}

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_systems(Startup, (spawn_houses, spawn_cars, spawn_ground))
        .add_systems(Update, drive);
}

/// A number that looks random, from 0 to 1.
fn noise(seed: u32) -> f32 {
    let mixed = seed.wrapping_mul(0x9e37_79b9) ^ (seed >> 3).wrapping_mul(0x85eb_ca6b);
    (mixed ^ mixed >> 15) as f32 / u32::MAX as f32
}

fn spawn_houses(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    // The same material for all, so that their draws are joined.
    let material = materials.add(StandardMaterial {
        base_color: Color::srgb(0.75, 0.7, 0.65),
        perceptual_roughness: 0.9,
        ..default()
    });
    let mut places = vec![Vec::new(); MESHES as usize];
    let side = STREETS * HOUSES;
    for number in 0..side * side {
        let (x, z) = (number % side, number / side);
        // Houses stand in the middle of their block.
        let along = |i: u32| {
            let block = (i / HOUSES) as f32 - STREETS as f32 / 2.0;
            block * BLOCK + 7.0 + (i % HOUSES) as f32 * 8.0
        };
        let turn = (noise(number) * 4.0).floor() * FRAC_PI_2;
        let mesh = (noise(number + 7_919) * MESHES as f32) as usize % places.len();
        places[mesh].push(
            Transform::from_xyz(along(x), 0.0, along(z)).with_rotation(Quat::from_rotation_y(turn)),
        );
    }
    for (number, places) in (0..).zip(places) {
        let size = Vec3::new(
            4.0 + noise(number * 3) * 3.0,
            6.0 + noise(number * 3 + 1).powi(3) * 40.0,
            4.0 + noise(number * 3 + 2) * 3.0,
        );
        let middle = Vec3::Y * size.y / 2.0;
        let full = match number % 3 {
            0 => Cylinder::new(size.x / 2.0, size.y)
                .mesh()
                .resolution(24)
                .build(),
            1 => Mesh::from(Cuboid::from_size(size)),
            _ => Capsule3d::new(size.x / 2.0, size.y)
                .mesh()
                .longitudes(24)
                .build(),
        };
        let box_of_it = Mesh::from(Cuboid::from_size(size));
        commands.spawn((
            Mesh3d(meshes.add(full.translated_by(middle))),
            MeshMaterial3d(material.clone()),
            GpuInstances(sets.add(InstanceSet::from_transforms(places)?)),
            // Far houses are boxes.
            InstanceLods {
                levels: vec![InstanceLod::new(
                    meshes.add(box_of_it.translated_by(middle)),
                    0.6,
                )],
                ..default()
            },
        ));
    }
    Ok(())
}

/// The cars of a street.
#[derive(Component)]
struct Cars {
    home: Vec3,
    along: Vec3,
    speed: f32,
}

fn spawn_cars(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let material = materials.add(StandardMaterial {
        base_color: Color::srgb(0.7, 0.1, 0.1),
        metallic: 0.4,
        ..default()
    });
    let length = STREETS as f32 * BLOCK;
    let cars = (length / GAP) as u32;
    for street in 0..2 * STREETS {
        let is_crosswise = street % 2 == 1;
        let aside = (street / 2) as f32 * BLOCK - length / 2.0;
        let (along, at) = match is_crosswise {
            true => (Vec3::X, Vec3::new(0.0, 0.6, aside + 1.5)),
            false => (Vec3::Z, Vec3::new(aside - 1.5, 0.6, 0.0)),
        };
        let places = (0..cars).map(|car| along * (car as f32 * GAP - length / 2.0));
        let turn = Quat::from_rotation_y(if is_crosswise { FRAC_PI_2 } else { 0.0 });
        let places = places.map(|place| Transform::from_translation(place).with_rotation(turn));
        let longer = 0.2 * (street % 5) as f32;
        commands.spawn((
            Mesh3d(meshes.add(Cuboid::new(1.6, 1.2, 3.6 + longer))),
            MeshMaterial3d(material.clone()),
            GpuInstances(sets.add(InstanceSet::from_transforms(places)?)),
            Transform::from_translation(at),
            Cars {
                home: at,
                along,
                speed: 8.0 + (street % 7) as f32,
            },
        ));
    }
    Ok(())
}

/// Moves the entities, not their instances. After a gap, each car is where the next one was.
fn drive(time: Res<Time>, mut cars: Query<(&mut Transform, &Cars)>) {
    for (mut place, cars) in &mut cars {
        let way = (time.elapsed_secs() * cars.speed) % GAP;
        place.translation = cars.home + cars.along * way;
    }
}

fn spawn_ground(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    commands.spawn((
        Mesh3d(meshes.add(Plane3d::new(Vec3::Y, Vec2::splat(STREETS as f32 * BLOCK)))),
        MeshMaterial3d(materials.add(Color::srgb(0.25, 0.26, 0.28))),
    ));
    commands.spawn((
        DirectionalLight {
            shadow_maps_enabled: true,
            ..default()
        },
        CascadeShadowConfigBuilder {
            maximum_distance: 400.0,
            ..default()
        }
        .build(),
        Transform::from_rotation(Quat::from_euler(EulerRot::YXZ, 0.3 * PI, -0.9, 0.0)),
    ));
    commands.spawn((
        Camera3d::default(),
        InstanceOcclusion::default(),
        Transform::from_xyz(-1.0, 34.0, 130.0).looking_at(Vec3::new(20.0, 8.0, 0.0), Vec3::Y),
    ));
}
