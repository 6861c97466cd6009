//! The files in `assets/`: how they are made, and that they are what is committed.
//!
//! * `tree`: `tree.glb`, a glTF file (`glb`) of two meshes, four materials and nodes with
//!   transforms.
//! * `boulder`: `boulder.meshlets`, a mesh of meshlets.
//! * `tower`: `tower.instances`, a set.
//! * `shape`: what they are made of.
//!
//! Nothing here calls `sin` or its kin, whose last bits differ between systems: the files are the
//! same everywhere. `cargo xtask assets` writes them.

mod boulder;
mod glb;
mod shape;
mod tower;
mod tree;

use bevy::{
    asset::LoadState,
    gltf::{Gltf, GltfMesh, GltfNode, GltfPlugin},
    log::LogPlugin,
    prelude::*,
    render::{RenderPlugin, settings::WgpuSettings},
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::prelude::*;
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

const TREE: &str = "tree.glb";
const BOULDER: &str = "boulder.meshlets";
const TOWER: &str = "tower.instances";

/// Compares a file with what is generated, or writes it if `UPDATE_ASSETS` is set.
fn check(name: &str, generated: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("assets")
        .join(name);
    if std::env::var_os("UPDATE_ASSETS").is_some() {
        std::fs::write(&path, generated).unwrap();
        return;
    }
    assert!(
        std::fs::read(&path).unwrap_or_default() == generated,
        "assets/{name} is not what tests/app/assets makes: cargo xtask assets"
    );
}

#[test]
fn the_tree_is_what_is_generated() {
    check(TREE, &tree::file());
}

/// The C++ compilers of other processors round differently (they fuse multiplications and
/// additions).
#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "meshoptimizer rounds differently"
)]
fn the_boulder_is_what_is_generated() {
    let bytes = boulder::file();
    assert!(bytes.len() < 300_000, "{} bytes", bytes.len());
    check(BOULDER, &bytes);
}

#[test]
fn the_tower_is_what_is_generated() {
    let bytes = tower::file();
    assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
    check(TOWER, &bytes);
}

/// An app that loads assets and draws nothing.
fn app() -> App {
    let mut app = App::new();
    let renderer = RenderPlugin {
        render_creation: WgpuSettings {
            backends: None,
            ..default()
        }
        .into(),
        ..default()
    };
    let window = WindowPlugin {
        primary_window: None,
        exit_condition: ExitCondition::DontExit,
        ..default()
    };
    app.add_plugins((
        DefaultPlugins
            .set(renderer)
            .set(window)
            .disable::<WinitPlugin>()
            .disable::<LogPlugin>(),
        GpuCullingPlugin::default(),
    ));
    app.finish();
    app.cleanup();
    app
}

/// Updates the app until the asset and all that it depends on are loaded.
fn load<A: Asset>(app: &mut App, path: &'static str) -> Handle<A> {
    let server = app.world().resource::<AssetServer>().clone();
    let handle = server.load::<A>(path);
    let begin = Instant::now();
    while !server.is_loaded_with_dependencies(&handle) {
        if let LoadState::Failed(error) = server.load_state(&handle) {
            panic!("{path}: {error}");
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{path} takes too long"
        );
        app.update();
        std::thread::sleep(Duration::from_millis(2));
    }
    handle
}

fn get<A: Asset + Clone>(app: &App, handle: &Handle<A>) -> A {
    app.world()
        .resource::<Assets<A>>()
        .get(handle)
        .unwrap()
        .clone()
}

#[test]
fn bevy_loads_the_tree() {
    let mut app = app();
    assert!(app.is_plugin_added::<GltfPlugin>());
    let tree: Handle<Gltf> = load(&mut app, TREE);
    let gltf = app.world().resource::<Assets<Gltf>>().get(&tree).unwrap();
    let named = |name: &str| gltf.named_nodes[name].clone();
    let (root, trunk, crown) = (named("Tree"), named("Trunk"), named("Crown"));
    assert_eq!(
        get::<GltfNode>(&app, &root).children,
        [trunk, crown.clone()]
    );
    let crown = get::<GltfNode>(&app, &crown);
    assert_ne!(crown.transform, Transform::IDENTITY);
    let mut triangles = 0;
    let primitives = ["Wood", "Leaves"].map(|name| {
        let gltf = app.world().resource::<Assets<Gltf>>().get(&tree).unwrap();
        let mesh = get::<GltfMesh>(&app, &gltf.named_meshes[name]);
        for primitive in &mesh.primitives {
            assert!(primitive.material.is_some());
            let mesh = get::<Mesh>(&app, &primitive.mesh);
            triangles += mesh.indices().unwrap().len() / 3;
        }
        mesh.primitives.len()
    });
    assert_eq!(primitives, [1, 3]);
    assert!((300..900).contains(&triangles), "{triangles} triangles");
}

#[test]
fn the_plugin_loads_the_tower() {
    let mut app = app();
    let tower: Handle<InstanceSet> = load(&mut app, TOWER);
    let sets = app.world().resource::<Assets<InstanceSet>>();
    let tower = sets.get(&tower).unwrap();
    assert!((3_000..5_000).contains(&tower.len()), "{}", tower.len());
    assert!(tower.has_scales() && !tower.has_tags());
}

#[test]
fn the_plugin_loads_the_boulder() {
    let mut app = app();
    let boulder = load(&mut app, BOULDER);
    let boulder = get::<MeshletMesh>(&app, &boulder);
    assert_eq!(boulder.triangle_count(), 5120);
    assert!(boulder.meshlets().len() > 40);
    assert!(boulder.to_mesh().is_ok());
    // Each level has at most half of the triangles of the level before.
    let triangles = (0..boulder.levels().len()).map(|level| {
        let range = boulder.level_range(level).unwrap();
        range.len() / 3
    });
    let triangles: Vec<_> = triangles.collect();
    assert_eq!(triangles.len(), 6);
    assert!(
        triangles.is_sorted_by(|finer, coarser| *coarser <= finer / 2 + 1),
        "{triangles:?}"
    );
}
