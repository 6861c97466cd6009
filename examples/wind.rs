//! A meadow in the wind: `Wind` bends grass and poplars, in the picture and in the shadow maps.
//!
//! The places of the plants come from the crates `rand` and `rand_chacha`.

use bevy::{
    asset::RenderAssetUsages,
    light::CascadeShadowConfigBuilder,
    mesh::{Indices, MeshMergeError, PrimitiveTopology},
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Blades of a tuft of grass. Its height is 1.
const BLADES: u32 = 6;
/// Height of a poplar.
const POPLAR: f32 = 5.0;
/// Half the side of the meadow.
const MEADOW: f32 = 26.0;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(16_000))
        .run()
}

/// Number of tufts of grass.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.insert_resource(ClearColor(Color::srgb(0.55, 0.72, 0.9)))
        .add_systems(Startup, (plant, spawn));
}

fn plant(
    mut commands: Commands,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
    count: Res<Count>,
) -> Result {
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let mut places = |count: u32| -> Result<InstanceSet> {
        let places = (0..count).map(|_| {
            let mut unit = || dice.random_range(-1.0f32..1.0);
            Transform::from_xyz(unit() * MEADOW, 0.0, unit() * MEADOW)
                .with_rotation(Quat::from_rotation_y(unit() * TAU))
                .with_scale(Vec3::splat(0.8 + 0.25 * unit()))
        });
        Ok(InstanceSet::from_transforms(places)?.sorted())
    };
    let material = MeshMaterial3d(materials.add(StandardMaterial {
        // Blades have two sides, and are lit as the ground is.
        cull_mode: None,
        perceptual_roughness: 0.9,
        ..default()
    }));
    let wind = |strength: f32, height: f32| Wind {
        direction: Vec3::new(0.8, 0.0, 0.6),
        strength,
        height,
        wavelength: 25.0,
        calm_beyond: 80.0,
        ..default()
    };
    commands.spawn((
        Mesh3d(meshes.add(tuft())),
        material.clone(),
        GpuInstances(sets.add(places(count.0)?)),
        wind(0.6, 1.0),
    ));
    commands.spawn((
        Mesh3d(meshes.add(tree()?)),
        material,
        GpuInstances(sets.add(places(60)?)),
        wind(0.8, POPLAR),
    ));
    Ok(())
}

fn spawn(
    mut commands: Commands,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    commands.spawn((
        Mesh3d(meshes.add(Plane3d::new(Vec3::Y, Vec2::splat(MEADOW)))),
        MeshMaterial3d(materials.add(StandardMaterial {
            base_color: Color::srgb(0.16, 0.22, 0.07),
            perceptual_roughness: 1.0,
            ..default()
        })),
    ));
    commands.spawn((
        Camera3d::default(),
        Transform::from_xyz(0.0, 3.2, 15.0).looking_at(Vec3::new(0.0, 1.4, 0.0), Vec3::Y),
    ));
    let cascades = CascadeShadowConfigBuilder {
        num_cascades: 1,
        maximum_distance: 35.0,
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
}

/// Blades that taper and get lighter upwards.
fn tuft() -> Mesh {
    let (mut points, mut colors, mut triangles) = (Vec::new(), Vec::new(), Vec::new());
    for blade in 0..BLADES {
        let turn = Quat::from_rotation_y(blade as f32 * TAU * 0.38);
        let first = points.len() as u32;
        for [height, width] in [[0.0, 0.035], [0.5, 0.025], [1.0, 0.0]] {
            let height = height * (1.0 - 0.06 * blade as f32);
            for side in [-width, width] {
                let out = 0.05 + 0.18 * height * height;
                points.push(turn * Vec3::new(side, height, out));
                let light = 0.25 + 0.75 * height;
                colors.push([0.12 * light, 0.27 * light, 0.04 * light, 1.0]);
            }
        }
        for [a, b, c] in [[0, 1, 2], [2, 1, 3], [2, 3, 4]] {
            triangles.extend([first + a, first + b, first + c]);
        }
    }
    let up = vec![Vec3::Y; points.len()];
    Mesh::new(
        PrimitiveTopology::TriangleList,
        RenderAssetUsages::default(),
    )
    .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, points)
    .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, up)
    .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
    .with_inserted_indices(Indices::U32(triangles))
}

/// A trunk and a slender crown.
fn tree() -> Result<Mesh, MeshMergeError> {
    let crown = Sphere::new(0.5).mesh().uv(12, 12);
    let crown = crown.scaled_by(Vec3::new(1.0, 0.8 * POPLAR, 1.0));
    let crown = crown.translated_by(Vec3::Y * 0.6 * POPLAR);
    let trunk = Cylinder::new(0.12, 0.4 * POPLAR).mesh().resolution(8);
    let trunk = trunk.build().translated_by(Vec3::Y * 0.2 * POPLAR);
    let mut tree = colored(trunk, [0.2, 0.12, 0.07, 1.0]);
    tree.merge(&colored(crown, [0.05, 0.16, 0.04, 1.0]))?;
    Ok(tree)
}

/// The mesh with positions, normals and this color.
fn colored(mut mesh: Mesh, color: [f32; 4]) -> Mesh {
    mesh.remove_attribute(Mesh::ATTRIBUTE_UV_0);
    let colors = vec![color; mesh.count_vertices()];
    mesh.with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
}
