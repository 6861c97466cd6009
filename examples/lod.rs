//! Levels of detail: a field of knots of 10,400 triangles, each drawn with as few as its distance
//! allows. Each level has its own color; what is drawn in full is gray. The levels are built in the
//! background when the app starts.
//!
//! The key `L` switches the levels off and on, `C` the colors.
//!
//! It needs a feature, `cargo run --example lod --features meshlets`, and Bevy's `free_camera`.

use bevy::{
    asset::RenderAssetUsages,
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    input::common_conditions::input_just_pressed,
    mesh::{Indices, PrimitiveTopology},
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;

/// Steps along the knot, and around its tube.
const STEPS: [u32; 2] = [260, 20];
/// Radius of the tube.
const TUBE: f32 = 0.11;

/// The colors of the levels, the full mesh first.
const COLORS: [Srgba; 8] = [
    Srgba::rgb(0.8, 0.8, 0.8),
    Srgba::rgb(0.2, 0.7, 0.3),
    Srgba::rgb(0.75, 0.75, 0.1),
    Srgba::rgb(0.95, 0.55, 0.1),
    Srgba::rgb(0.9, 0.2, 0.15),
    Srgba::rgb(0.8, 0.2, 0.6),
    Srgba::rgb(0.45, 0.25, 0.9),
    Srgba::rgb(0.15, 0.45, 0.95),
];

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(40_000))
        .run()
}

/// Number of instances.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(FreeCameraPlugin)
        .insert_resource(Colored(true))
        .add_systems(Startup, spawn)
        .add_systems(
            Update,
            (
                switch_levels.run_if(input_just_pressed(KeyCode::KeyL)),
                switch_colors.run_if(input_just_pressed(KeyCode::KeyC)),
            ),
        )
        // The levels come from the background in the color of the full mesh.
        .add_observer(|_: On<LodsBuilt>, mut commands: Commands| {
            commands.run_system_cached(paint);
        });
}

/// Whether each level has its own color.
#[derive(Resource)]
struct Colored(bool);

fn spawn(
    mut commands: Commands,
    count: Res<Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let side = count.0.isqrt();
    // A square grid, in gentle waves.
    let places = (0..side * side).map(|i| {
        let middle = side as f32 / 2.0;
        let (x, z) = ((i % side) as f32 - middle, (i / side) as f32 - middle);
        let height = (x * 0.15).sin() + (z * 0.11).cos();
        Transform::from_xyz(x * 1.8, height, z * 1.8).with_rotation(Quat::from_rotation_y(i as f32))
    });
    let set = InstanceSet::from_transforms(places)?.sorted();
    commands.spawn((
        Mesh3d(meshes.add(knot())),
        MeshMaterial3d(materials.add(StandardMaterial {
            perceptual_roughness: 0.6,
            ..default()
        })),
        GpuInstances(sets.add(set)),
        BuildLods(LodSettings {
            max_levels: COLORS.len() as u32 - 1,
            ..default()
        }),
    ));
    commands.spawn((
        Camera3d::default(),
        FreeCamera::default(),
        Transform::from_xyz(0.0, 4.2, 5.0).looking_at(Vec3::new(0.0, 1.2, -3.0), Vec3::Y),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    info!("L switches levels of detail, C switches their colors");
    Ok(())
}

/// If no error is allowed, all knots are drawn in full.
fn switch_levels(mut settings: ResMut<GpuCullingSettings>) {
    settings.lod_pixels = if settings.lod_pixels > 0.0 { 0.0 } else { 1.0 };
    info!("lod_pixels is {}", settings.lod_pixels);
}

fn switch_colors(mut commands: Commands, mut colored: ResMut<Colored>) {
    colored.0 = !colored.0;
    commands.run_system_cached(paint);
}

/// Gives the full mesh and its levels their colors.
fn paint(
    colored: Res<Colored>,
    sets: Query<(&Mesh3d, &InstanceLods)>,
    mut meshes: ResMut<Assets<Mesh>>,
) {
    for (Mesh3d(full), InstanceLods { levels, .. }) in &sets {
        let coarser = levels.iter().filter_map(|level| level.mesh.handle());
        for (mesh, color) in [full].into_iter().chain(coarser).zip(COLORS) {
            let Some(mut mesh) = meshes.get_mut(mesh) else {
                continue;
            };
            let color = if colored.0 { color } else { COLORS[0] };
            let vertices = mesh.count_vertices();
            let colors = vec![LinearRgba::from(color).to_f32_array(); vertices];
            mesh.insert_attribute(Mesh::ATTRIBUTE_COLOR, colors);
        }
    }
}

/// A tube along a trefoil knot. It is closed and has no seam: all its edges can go.
fn knot() -> Mesh {
    let [along, around] = STEPS;
    let (mut points, mut normals, mut indices) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..along {
        let center = trefoil(i as f32 / along as f32);
        let ahead = trefoil((i + 1) as f32 / along as f32) - center;
        // Two directions across the tube. No part of the knot is parallel to the axis.
        let side = ahead.cross(Vec3::Y).normalize();
        let up = side.cross(ahead).normalize();
        for j in 0..around {
            let turn = Vec2::from_angle(j as f32 / around as f32 * TAU);
            let normal = side * turn.x + up * turn.y;
            points.push(center + normal * TUBE);
            normals.push(normal);
            let corner = |i: u32, j: u32| i % along * around + j % around;
            let [a, b] = [corner(i, j), corner(i, j + 1)];
            let [c, d] = [corner(i + 1, j), corner(i + 1, j + 1)];
            indices.extend([a, c, b, b, c, d]);
        }
    }
    let colors = vec![LinearRgba::from(COLORS[0]).to_f32_array(); points.len()];
    Mesh::new(
        PrimitiveTopology::TriangleList,
        RenderAssetUsages::default(),
    )
    .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, points)
    .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, normals)
    .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, colors)
    .with_inserted_indices(Indices::U32(indices))
}

/// A point of the knot, in a sphere of radius 0.7.
fn trefoil(turns: f32) -> Vec3 {
    let angle = turns * TAU;
    let [once, twice, thrice] = [1.0, 2.0, 3.0].map(|times| Vec2::from_angle(angle * times));
    Vec3::new(once.y + 2.0 * twice.y, -thrice.y, once.x - 2.0 * twice.x) * 0.2
}
