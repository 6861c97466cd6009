//! A forest: a hundred thousand trees from a glTF file, and boulders from a file of meshlets.
//!
//! Each primitive of the file becomes one entity, with its mesh, its material and a set. Primitives of
//! one node share the set, whose transforms include the node's.
//!
//! It needs a feature: `cargo run --example gltf_forest --features meshlets`. `--count N` plants more
//! or fewer trees.

mod common;

use bevy::{
    camera_controller::free_camera::{FreeCamera, FreeCameraPlugin},
    gltf::{Gltf, GltfMesh, GltfNode},
    light::CascadeShadowConfigBuilder,
    prelude::*,
};
use bevy_gpu_culling::prelude::*;

/// Square meters per tree.
const ROOM: f32 = 30.0;
/// Trees per boulder.
const TREES_PER_BOULDER: u32 = 40;
const SKY: Color = Color::srgb(0.66, 0.78, 0.9);

fn main() -> AppExit {
    common::run(|app| {
        app.add_plugins(FreeCameraPlugin)
            .insert_resource(ClearColor(SKY))
            .add_systems(Startup, (load, spawn_world))
            .add_systems(Update, plant.run_if(resource_exists::<Tree>));
    })
}

/// The file with the tree, until it is loaded.
#[derive(Resource)]
struct Tree(Handle<Gltf>);

fn load(
    mut commands: Commands,
    server: Res<AssetServer>,
    count: Res<common::Count>,
    mut sets: ResMut<Assets<InstanceSet>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
    mut awaited: ResMut<common::Awaited>,
) -> Result {
    let tree = server.load("tree.glb");
    let boulder = server.load("boulder.meshlets");
    awaited.0 = vec![tree.clone().into(), boulder.clone().into()];
    commands.insert_resource(Tree(tree));

    let trees = count.or(100_000);
    let boulders = places(trees, trees / TREES_PER_BOULDER, 1).map(|place| Transform {
        translation: place.translation - Vec3::Y * 0.3,
        scale: place.scale * place.scale * place.scale * 0.9,
        ..place
    });
    commands.spawn((
        MeshletMesh3d(boulder),
        MeshMaterial3d(materials.add(StandardMaterial {
            base_color: Color::srgb(0.42, 0.41, 0.39),
            perceptual_roughness: 0.9,
            ..default()
        })),
        GpuInstances(sets.add(InstanceSet::from_transforms(boulders)?.sorted().0)),
    ));
    Ok(())
}

/// Spawns the primitives of the tree when the file is loaded.
fn plant(
    mut commands: Commands,
    tree: Res<Tree>,
    server: Res<AssetServer>,
    count: Res<common::Count>,
    (gltfs, nodes, meshes): (
        Res<Assets<Gltf>>,
        Res<Assets<GltfNode>>,
        Res<Assets<GltfMesh>>,
    ),
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    let Some(gltf) = gltfs
        .get(&tree.0)
        .filter(|_| server.is_loaded_with_dependencies(&tree.0))
    else {
        return Ok(());
    };
    let trees = count.or(100_000);
    for (node, node_transform) in world_transforms(gltf, &nodes) {
        let Some(mesh) = node.mesh.as_ref().and_then(|mesh| meshes.get(mesh)) else {
            continue;
        };
        let transforms = places(trees, trees, 0).map(|place| place * node_transform);
        let set = sets.add(InstanceSet::from_transforms(transforms)?.sorted().0);
        for primitive in &mesh.primitives {
            let material = primitive.material.as_ref().and_then(Handle::path);
            let Some(material) = material else {
                continue;
            };
            commands.spawn((
                Mesh3d(primitive.mesh.clone()),
                // Bevy's label of the `StandardMaterial`.
                MeshMaterial3d::<StandardMaterial>(server.load(format!("{material}/std"))),
                GpuInstances(set.clone()),
            ));
        }
    }
    commands.remove_resource::<Tree>();
    Ok(())
}

/// The nodes of a file, each with its transform relative to the file's root.
fn world_transforms<'a>(
    gltf: &Gltf,
    nodes: &'a Assets<GltfNode>,
) -> Vec<(&'a GltfNode, Transform)> {
    let all: Vec<_> = gltf
        .nodes
        .iter()
        .filter_map(|node| nodes.get(node))
        .collect();
    let is_child = |index: usize| {
        let mut children = all.iter().flat_map(|node| &node.children);
        children.any(|child| nodes.get(child).is_some_and(|child| child.index == index))
    };
    let roots = all.iter().filter(|node| !is_child(node.index));
    let mut found: Vec<_> = roots.map(|node| (*node, node.transform)).collect();
    let mut next = 0;
    while let Some(&(node, transform)) = found.get(next) {
        let children = node.children.iter().filter_map(|child| nodes.get(child));
        found.extend(children.map(|child| (child, transform * child.transform)));
        next += 1;
    }
    found
}

/// Places on the ground, spread evenly over a forest of `trees` trees, except in its glade.
fn places(trees: u32, count: u32, kind: u32) -> impl Iterator<Item = Transform> {
    let side = side(trees);
    // The R2 sequence: each point is far from those before. Martin Roberts, "The Unreasonable
    // Effectiveness of Quasirandom Sequences", 2018,
    // https://extremelearning.com.au/unreasonable-effectiveness-of-quasirandom-sequences/
    let place = move |i: u64| {
        let i = (i + u64::from(kind) * 500_000_000) as f64;
        let [x, z, turn, size] = [0.754_877_666, 0.569_840_291, 0.618_033_989, 0.414_213_562]
            .map(|step| (i * step).fract() as f32);
        let (x, z) = ((x - 0.5) * side, (z - 0.5) * side);
        Transform::from_xyz(x, height(x, z), z)
            .with_rotation(Quat::from_rotation_y(turn * core::f32::consts::TAU))
            .with_scale(Vec3::splat(0.65 + 0.75 * size))
    };
    (0..)
        .map(place)
        .filter(|place| !is_glade(place.translation))
        .take(count as usize)
}

/// The side of a forest of `trees` trees, in meters.
fn side(trees: u32) -> f32 {
    (trees.max(100) as f32 * ROOM).sqrt()
}

/// A winding strip without trees, in front of the camera.
fn is_glade(place: Vec3) -> bool {
    let middle = 14.0 * (place.z * 0.035).sin() + 5.0 * (place.z * 0.083).sin();
    (place.x - middle).abs() < 6.0 + 2.0 * (place.z * 0.21).sin()
}

/// Gentle hills.
fn height(x: f32, z: f32) -> f32 {
    let hills = (x * 0.011).sin() * (z * 0.009).cos() * 14.0;
    hills + (x * 0.031 + z * 0.017).sin() * 3.0 + (z * 0.043 - x * 0.012).sin() * 1.5
}

/// Ground, sun and camera.
fn spawn_world(
    mut commands: Commands,
    count: Res<common::Count>,
    mut meshes: ResMut<Assets<Mesh>>,
    mut materials: ResMut<Assets<StandardMaterial>>,
) {
    let side = side(count.or(100_000));
    let mut ground = Plane3d::new(Vec3::Y, Vec2::splat(side * 0.75))
        .mesh()
        .subdivisions(300)
        .build();
    if let Some(positions) = ground.attribute_mut(Mesh::ATTRIBUTE_POSITION)
        && let bevy::mesh::VertexAttributeValues::Float32x3(positions) = positions
    {
        for [x, y, z] in positions {
            *y = height(*x, *z);
        }
    }
    commands.spawn((
        Mesh3d(meshes.add(ground.with_computed_normals())),
        MeshMaterial3d(materials.add(StandardMaterial {
            base_color: Color::srgb(0.24, 0.33, 0.12),
            perceptual_roughness: 1.0,
            reflectance: 0.1,
            ..default()
        })),
    ));
    commands.spawn((
        DirectionalLight {
            color: Color::srgb(1.0, 0.93, 0.8),
            illuminance: 9_000.0,
            shadow_maps_enabled: true,
            ..default()
        },
        CascadeShadowConfigBuilder {
            first_cascade_far_bound: 25.0,
            maximum_distance: 300.0,
            ..default()
        }
        .build(),
        Transform::default().looking_to(Vec3::new(0.8, -0.75, -0.35), Vec3::Y),
    ));
    let eye = Vec3::new(0.0, height(0.0, 60.0) + 9.0, 60.0);
    commands.spawn((
        Camera3d::default(),
        FreeCamera::default(),
        AmbientLight {
            color: SKY,
            brightness: 500.0,
            ..default()
        },
        DistanceFog {
            color: SKY,
            falloff: FogFalloff::from_visibility_color(900.0, SKY),
            ..default()
        },
        Transform::from_translation(eye).looking_at(Vec3::new(0.0, eye.y - 6.0, 0.0), Vec3::Y),
    ));
}
