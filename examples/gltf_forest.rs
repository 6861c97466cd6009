//! A forest: a hundred thousand trees from a glTF file, and boulders from a file of meshlets.
//!
//! The entity with the scene of the tree has the places of all trees. Each primitive of the file
//! becomes a child with its mesh, its material and the offset of its node, and gets its own levels
//! of detail, which are built in the background.
//!
//! It needs a feature, `cargo run --example gltf_forest --features meshlets`, and Bevy's
//! `free_camera`.

use bevy::{
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    light::CascadeShadowConfigBuilder,
    mesh::VertexAttributeValues,
    prelude::*,
};
use bevy_gpu_culling::prelude::*;
use core::f32::consts::TAU;

/// Square meters per tree.
const ROOM: f32 = 30.0;
/// Boulders per meter of the forest's side.
const BOULDERS: f32 = 1.2;
const SKY: Color = Color::srgb(0.66, 0.78, 0.9);

fn main() -> AppExit {
    App::new()
        .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), scene))
        .insert_resource(Count(100_000))
        .run()
}

/// Number of trees.
#[derive(Resource)]
pub struct Count(pub u32);

/// The example, as a plugin.
pub fn scene(app: &mut App) {
    app.add_plugins(FreeCameraPlugin)
        .insert_resource(ClearColor(SKY))
        .add_systems(Startup, (plant, spawn_world));
}

/// Trees and boulders.
fn plant(
    mut commands: Commands,
    server: Res<AssetServer>,
    count: Res<Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) -> Result {
    let tree = server.load("tree.glb#Scene0");
    let boulder = server.load("boulder.meshlets");
    let trees = count.0;
    let forest = places(trees, 0)
        .filter(|place| from_glade(place.translation) > 6.0)
        .take(trees as usize);
    commands
        .spawn((
            InstanceScene(tree),
            GpuInstances(sets.add(InstanceSet::from_transforms(forest)?.sorted())),
        ))
        .observe(build_levels);

    // Along the glade; most are small, and all lie in the ground.
    let boulders = places(trees, 1)
        .filter(|place| (1.5..10.0).contains(&from_glade(place.translation)))
        .map(|place| place.with_scale(place.scale * place.scale * place.scale * 0.8))
        .take((side(trees) * BOULDERS) as usize);
    commands.spawn((
        MeshletMesh3d(boulder),
        MeshMaterial3d(materials.add(StandardMaterial {
            base_color: Color::srgb(0.42, 0.41, 0.39),
            perceptual_roughness: 0.9,
            ..default()
        })),
        GpuInstances(sets.add(InstanceSet::from_transforms(boulders)?.sorted())),
    ));
    Ok(())
}

/// Has levels of detail built for the parts of the tree when they are spawned.
fn build_levels(ready: On<InstanceSceneReady>, mut commands: Commands) {
    for part in &ready.parts {
        commands.entity(*part).insert(BuildLods::default());
    }
}

/// Transforms on the ground, evenly spread over a forest of `trees` trees, without end.
pub fn places(trees: u32, seed: u32) -> impl Iterator<Item = Transform> {
    let side = side(trees);
    // The R2 sequence: each point is far from those before. Martin Roberts, "The Unreasonable
    // Effectiveness of Quasirandom Sequences", 2018,
    // https://extremelearning.com.au/unreasonable-effectiveness-of-quasirandom-sequences/
    let steps = [0.754_877_666_246_69, 0.569_840_290_998_05];
    (0..).map(move |i: u32| {
        let [x, z] =
            steps.map(|step| (f64::from(i) * step + 0.5).fract() as f32 * side - side / 2.0);
        // Less regular.
        let random = |use_of_it: u32| random(i.wrapping_mul(8) + use_of_it + seed);
        let (x, z) = (x + 5.0 * (random(0) - 0.5), z + 5.0 * (random(1) - 0.5));
        let lean = Quat::from_rotation_x(0.12 * (random(2) - 0.5));
        // Some are tall, some stout.
        let (size, tall) = (0.6 + 0.8 * random(4), 0.8 + 0.5 * random(5));
        Transform::from_xyz(x, height(x, z), z)
            .with_rotation(Quat::from_rotation_y(random(3) * TAU) * lean)
            .with_scale(Vec3::new(size, size * tall, size))
    })
}

/// A number from 0 to 1: PCG's output function.
fn random(seed: u32) -> f32 {
    let state = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (((word >> 22) ^ word) >> 8) as f32 / 16_777_216.0
}

/// The side of a forest of `trees` trees, in meters.
pub fn side(trees: u32) -> f32 {
    (trees.max(100) as f32 * ROOM).sqrt()
}

/// The distance from the middle of the glade, a winding strip without trees.
pub fn from_glade(place: Vec3) -> f32 {
    (place.x - glade(place.z)).abs()
}

/// The middle of the glade.
pub fn glade(z: f32) -> f32 {
    16.0 * (z * 0.03).sin() + 5.0 * (z * 0.083).sin()
}

/// Gentle hills in a wide valley.
pub fn height(x: f32, z: f32) -> f32 {
    let valley = 0.000_15 * (x * x + z * z);
    let hills = (x * 0.011).sin() * (z * 0.009).cos() * 8.0;
    valley + hills + (x * 0.031 + z * 0.017).sin() * 3.0 + (z * 0.043 - x * 0.012).sin() * 1.5
}

/// The hills under a forest of `trees` trees.
pub fn ground(trees: u32) -> Mesh {
    let side = side(trees);
    let mut ground = Plane3d::new(Vec3::Y, Vec2::splat(side * 0.75))
        .mesh()
        .subdivisions(300)
        .build();
    let mut grays = Vec::new();
    if let Some(VertexAttributeValues::Float32x3(positions)) =
        ground.attribute_mut(Mesh::ATTRIBUTE_POSITION)
    {
        for (index, [x, y, z]) in (0..).zip(positions) {
            *y = height(*x, *z);
            let gray = 0.75 + 0.25 * random(index);
            grays.push([gray, gray, 0.9 * gray, 1.0]);
        }
    }
    ground.insert_attribute(Mesh::ATTRIBUTE_COLOR, grays);
    ground.with_computed_normals()
}

/// The material of the hills.
pub fn ground_material() -> StandardMaterial {
    StandardMaterial {
        base_color: Color::srgb(0.24, 0.33, 0.12),
        perceptual_roughness: 1.0,
        reflectance: 0.1,
        ..default()
    }
}

/// Ground, sun and camera.
fn spawn_world(
    mut commands: Commands,
    count: Res<Count>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    commands.spawn((
        Mesh3d(meshes.add(ground(count.0))),
        MeshMaterial3d(materials.add(ground_material())),
    ));
    commands.spawn((
        DirectionalLight {
            color: Color::srgb(1.0, 0.93, 0.8),
            illuminance: 10_000.0,
            shadow_maps_enabled: true,
            ..default()
        },
        CascadeShadowConfigBuilder {
            num_cascades: 3,
            first_cascade_far_bound: 30.0,
            maximum_distance: 200.0,
            ..default()
        }
        .build(),
        Transform::default().looking_to(Vec3::new(0.8, -0.7, -0.3), Vec3::Y),
    ));
    let [eye, ahead] = [(60.0, 6.0), (20.0, 2.0)].map(|(z, above)| {
        let x = glade(z);
        Vec3::new(x, height(x, z) + above, z)
    });
    commands.spawn((
        Camera3d::default(),
        FreeCamera {
            walk_speed: 15.0,
            run_speed: 60.0,
            ..default()
        },
        AmbientLight {
            color: SKY,
            brightness: 350.0,
            ..default()
        },
        DistanceFog {
            color: SKY,
            falloff: FogFalloff::from_visibility_color(1_200.0, SKY),
            ..default()
        },
        Transform::from_translation(eye).looking_at(ahead, Vec3::Y),
    ));
}
