//! Occlusion: a canyon of boulders of 5,120 triangles. Its walls hide most of them, and what is
//! hidden is not drawn. The app says how many are in the picture.
//!
//! The key `O` switches occlusion off and on. `F` freezes culling: fly up, and only what the camera
//! saw is there.
//!
//! It needs Bevy's feature `free_camera`. The places of the boulders come from the crates `rand`
//! and `rand_chacha`.

use bevy::{
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    input::common_conditions::input_just_pressed,
    math::ops,
    mesh::VertexAttributeValues,
    prelude::*,
    time::common_conditions::on_timer,
};
use bevy_gpu_culling::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Half the width of the ground, and the distance from the middle at which the walls end, in world
/// units.
const WALLS: [f32; 2] = [6.0, 40.0];
/// Height of the walls in world units.
const HEIGHT: f32 = 40.0;
/// Height of the camera over the ground.
const EYES: f32 = 3.0;
/// Cuts of each edge of the icosahedron: 20 * 16^2 triangles.
const CUTS: u32 = 15;
const SEED: u64 = 19;

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(200_000))
        .run()
}

/// Number of boulders.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(FreeCameraPlugin)
        .insert_resource(ClearColor(Color::srgb(0.55, 0.7, 0.85)))
        .add_systems(Startup, spawn)
        .add_systems(
            Update,
            (
                switch_occlusion.run_if(input_just_pressed(KeyCode::KeyO)),
                switch_freezing.run_if(input_just_pressed(KeyCode::KeyF)),
                tell.run_if(on_timer(Duration::from_secs(1))),
            ),
        );
}

fn spawn(
    mut commands: Commands,
    count: Res<Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let boulders = boulders(count.0);
    let set = InstanceSet::from_transforms(boulders)?.sorted();
    commands.spawn((
        GpuInstances(sets.add(set)),
        Mesh3d(meshes.add(boulder())),
        MeshMaterial3d(materials.add(rock())),
    ));
    commands.spawn((
        Camera3d::default(),
        InstanceOcclusion::default(),
        FreeCamera::default(),
        eye(),
    ));
    commands.spawn((
        DirectionalLight::default(),
        Transform::default().looking_to(Vec3::new(1.0, -1.5, -0.7), Vec3::Y),
    ));
    info!("O switches occlusion, F freezes culling");
    Ok(())
}

fn switch_occlusion(
    mut commands: Commands,
    camera: Single<(Entity, Has<InstanceOcclusion>), With<Camera3d>>,
) {
    let (camera, is_on) = *camera;
    if is_on {
        commands.entity(camera).remove::<InstanceOcclusion>();
    } else {
        commands.entity(camera).insert(InstanceOcclusion::default());
    }
}

fn switch_freezing(
    mut commands: Commands,
    camera: Single<(Entity, Has<FreezeCulling>), With<Camera3d>>,
) {
    let (camera, is_frozen) = *camera;
    if is_frozen {
        commands.entity(camera).remove::<FreezeCulling>();
    } else {
        commands.entity(camera).insert(FreezeCulling::default());
    }
}

fn tell(report: Res<CullingReport>) {
    let (tested, visible) = report.cameras();
    info!("{visible} of {tested} boulders are drawn");
}

/// The middle of the canyon at a distance along it.
fn middle(z: f32) -> f32 {
    45.0 * ops::sin(z / 70.0) + 12.0 * ops::sin(z / 23.0 + 1.0)
}

/// Height of the land, and how steep it is.
fn land(x: f32, z: f32) -> (f32, f32) {
    let [foot, edge] = WALLS;
    let across = (x - middle(z)).abs();
    let share = ((across - foot) / (edge - foot)).clamp(0.0, 1.0);
    let slope = 6.0 * share * (1.0 - share) * HEIGHT / (edge - foot);
    let hills = ops::sin(x / 31.0) + ops::cos(z / 27.0);
    (
        HEIGHT * share * share * (3.0 - 2.0 * share) + share * hills,
        slope,
    )
}

/// Boulders that cover a square of land, of an area that grows with the count. They lie so close
/// that they hide what is behind them.
pub fn boulders(count: u32) -> impl Iterator<Item = Transform> {
    let side = count.isqrt().max(1);
    let mut dice = ChaCha8Rng::seed_from_u64(SEED);
    (0..count).map(move |i| {
        let mut unit = || dice.random_range(-1.0f32..1.0);
        let cell = Vec2::new((i % side) as f32, (i / side) as f32) - side as f32 / 2.0;
        let [x, z] = [cell.x + 0.3 * unit(), cell.y + 0.3 * unit()];
        let (y, slope) = land(x, z);
        // On a steep wall, the next boulder is farther away.
        let size = (0.85 + 0.2 * unit()) * ops::sqrt(1.0 + slope * slope);
        let rotation = Quat::from_xyzw(unit(), unit(), unit(), 1.5).normalize();
        Transform::from_xyz(x, y, z)
            .with_rotation(rotation)
            .with_scale(Vec3::splat(size))
    })
}

/// A boulder of 5,120 triangles and radius 1: a sphere with bumps and edges.
pub fn boulder() -> Mesh {
    let sphere = Sphere::new(1.0).mesh();
    let mut mesh = match sphere.ico(CUTS) {
        Ok(mesh) => mesh,
        // Only a sphere with more vertices than a `u32` counts is refused.
        Err(_) => sphere.uv(64, 40),
    };
    if let Some(points) = mesh.attribute_mut(Mesh::ATTRIBUTE_POSITION)
        && let VertexAttributeValues::Float32x3(points) = points
    {
        for point in points {
            *point = (Vec3::from(*point) * radius(Vec3::from(*point))).into();
        }
    }
    mesh.compute_smooth_normals();
    mesh
}

/// The boulder's radius in a direction: at most 1.
fn radius(direction: Vec3) -> f32 {
    let waves = |frequency: f32| {
        let Vec3 { x, y, z } = direction * frequency;
        ops::sin(x + 1.3 * y) + ops::sin(y - 0.7 * z + 2.0) + ops::sin(z + 0.9 * x + 4.0)
    };
    0.86 + 0.035 * waves(2.1) - 0.03 * waves(4.3).abs() + 0.008 * waves(11.0)
}

/// The rock of the boulders.
pub fn rock() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.62, 0.38, 0.26),
        perceptual_roughness: 0.9,
        ..default()
    }
}

/// The place of a camera that looks along the canyon.
pub fn eye() -> Transform {
    let place = |z: f32| Vec3::new(middle(z), EYES, z);
    Transform::from_translation(place(0.0)).looking_at(place(-30.0), Vec3::Y)
}
