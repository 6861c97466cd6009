//! Files from outside: whatever their bytes are, they end in an error or are valid, nothing panics,
//! and no memory is asked for that the bytes do not need.
//!
//! * `corpus`: hostile files of each format, in `tests/hostile/corpus/`. `UPDATE_ASSETS=1` writes
//!   them.
//! * `fuzzed`: what a fuzzer with coverage found, in `tests/hostile/fuzzed/`.
//! * `memory`: an allocator that counts, which is the whole program's.
//! * `mutations`: valid files with random changes.
#![cfg(all(
    feature = "bevy",
    feature = "gltf",
    feature = "meshlets",
    feature = "study"
))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../scene/allocator.rs"]
mod allocator;
mod corpus;
mod fuzzed;
#[path = "../scene/gltf_file.rs"]
mod gltf_file;
#[path = "../scene/log.rs"]
mod log;
mod memory;
mod mutations;
#[path = "../scene/mod.rs"]
mod scene;

use bevy::{
    asset::{Asset, AssetPlugin, LoadState, UntypedHandle},
    gltf::{GltfLoaderSettings, GltfPlugin},
    log::LogPlugin,
    prelude::*,
    render::{RenderPlugin, settings::WgpuSettings},
    window::ExitCondition,
    winit::WinitPlugin,
};
use bevy_gpu_culling::{meshlet::MeshLods, prelude::*};
use corpus::Case;
use log::Log;
use scene::{How, Stage, field};
use std::path::Path;

/// The most that a small file may ask for.
const MAX: usize = 64 << 20;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/corpus"))
}

/// The bytes of a case in the repository.
fn saved(case: &Case) -> Vec<u8> {
    std::fs::read(folder().join(case.name)).unwrap_or_default()
}

#[test]
fn inputs_of_the_fuzzer_are_read_as_before() {
    type Target = fn(&[u8]);
    let targets: [(&str, Target); 3] = [
        ("instances", fuzzed::instances),
        ("meshlets", fuzzed::meshlets),
        ("lods", fuzzed::lods),
    ];
    for (name, target) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/fuzzed");
        // One per line, in hexadecimal.
        let inputs = std::fs::read_to_string(folder.join(format!("{name}.hex"))).unwrap();
        assert!(inputs.lines().count() > 100, "{name}");
        for input in inputs.lines() {
            let bytes = (0..input.len()).step_by(2);
            let bytes = bytes.map(|at| u8::from_str_radix(&input[at..at + 2], 16).unwrap());
            let bytes: Vec<_> = bytes.collect();
            let (_, max) = memory::measure(|| target(&bytes));
            assert!(max < MAX, "{name}, {input}: {max} bytes");
        }
    }
}

#[test]
fn the_corpus_is_what_is_generated() {
    let mut files: Vec<_> = (std::fs::read_dir(folder()).unwrap())
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let cases = corpus::all();
    if std::env::var_os("UPDATE_ASSETS").is_some() {
        for case in &cases {
            std::fs::write(folder().join(case.name), &case.bytes).unwrap();
        }
        return;
    }
    let mut names: Vec<_> = cases.iter().map(|case| case.name.to_owned()).collect();
    names.sort();
    assert_eq!(files, names);
    for case in &cases {
        assert!(
            case.bytes.len() < 8192,
            "{}: {} bytes",
            case.name,
            case.bytes.len()
        );
        let is_same = saved(case) == case.bytes;
        // meshoptimizer is not asked, so the bytes are the same on all machines.
        assert!(
            is_same,
            "{} is not what tests/hostile makes: UPDATE_ASSETS=1",
            case.name
        );
    }
}

/// The parsers alone.
#[test]
fn small_files_ask_for_little_memory_and_are_errors() {
    for case in corpus::all() {
        let bytes = saved(&case);
        let (error, max) = memory::measure(|| match case.extension() {
            "instances" => (InstanceSet::from_bytes(&bytes).err()).map(|error| error.to_string()),
            "meshlets" => (MeshletMesh::from_bytes(&bytes).err()).map(|error| error.to_string()),
            "lods" => (MeshLods::from_bytes(&bytes).err()).map(|error| error.to_string()),
            _ => Some(case.part.to_owned()),
        });
        let error = error.unwrap_or_default();
        assert!(
            error.contains(case.part),
            "{}: {error:?} lacks {:?}",
            case.name,
            case.part
        );
        assert!(max < MAX, "{} asks for {max} bytes", case.name);
    }
}

/// An app that loads assets and draws nothing. The plugin is added before glTF's.
fn app(folder: &Path) -> App {
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
    let files = AssetPlugin {
        file_path: folder.to_str().unwrap().into(),
        ..default()
    };
    app.add_plugins(
        DefaultPlugins
            .set(renderer)
            .set(window)
            .set(files)
            .disable::<WinitPlugin>()
            .disable::<LogPlugin>()
            .add_before::<GltfPlugin>(GpuCullingPlugin::default()),
    );
    app.finish();
    app.cleanup();
    app
}

/// Updates the app until the file is loaded or refused. Returns what is wrong with it.
fn outcome(app: &mut App, handle: &UntypedHandle) -> Option<String> {
    let server = app.world().resource::<AssetServer>().clone();
    for _ in 0..4000 {
        app.update();
        match server.load_state(handle) {
            LoadState::Failed(error) => return Some(error.to_string()),
            LoadState::Loaded if server.is_loaded_with_dependencies(handle) => return None,
            _ => std::thread::sleep(core::time::Duration::from_millis(2)),
        }
    }
    panic!("{:?}: it takes too long", handle.path());
}

fn start<A: Asset>(app: &App, name: &'static str) -> UntypedHandle {
    let server = app.world().resource::<AssetServer>();
    server.load::<A>(name).untyped()
}

#[test]
fn an_app_names_hostile_files_and_stays_small() {
    let log = Log::start();
    let mut app = app(folder());
    // With RUST_BACKTRACE, the first error reads the names of all functions of this program.
    drop(std::backtrace::Backtrace::force_capture().to_string());
    app.update();
    for case in corpus::all() {
        let (error, max) = memory::measure(|| {
            let handle = match case.extension() {
                "instances" => start::<InstanceSet>(&app, case.name),
                "meshlets" => start::<MeshletMesh>(&app, case.name),
                "lods" => start::<MeshLods>(&app, case.name),
                _ => {
                    let server = app.world().resource::<AssetServer>().clone();
                    let validate = case.validate;
                    let builder = server.load_builder().with_settings(
                        move |settings: &mut GltfLoaderSettings| settings.validate = validate,
                    );
                    let scene: Handle<WorldAsset> = builder.load(format!("{}#Scene0", case.name));
                    app.world_mut().spawn(WorldAssetRoot(scene.clone()));
                    scene.untyped()
                }
            };
            outcome(&mut app, &handle)
        });
        assert!(max < MAX, "{} asks for {max} bytes", case.name);
        if case.extension() != "glb" {
            let error = error.unwrap_or_default();
            let parts = [case.name, case.part];
            assert!(
                parts.iter().all(|part| error.contains(part)),
                "{error:?} lacks {parts:?}"
            );
            continue;
        }
        // The node's mesh is drawn once, and nothing else is wrong.
        assert_eq!(error, None, "{}", case.name);
        app.update();
        let world = app.world_mut();
        let sets = world.query::<&GpuInstances>().iter(world).count();
        let meshes = world.query::<&Mesh3d>().iter(world).count();
        assert_eq!((sets, meshes), (0, 1), "{}", case.name);
        log.assert_once(&[case.name, "node 0 (hostile)", "drawn once", case.part]);
        let mut roots = world.query_filtered::<Entity, With<WorldAssetRoot>>();
        let roots: Vec<_> = roots.iter(world).collect();
        for root in roots {
            world.despawn(root);
        }
        app.update();
    }
}

/// A good file, in an app whose plugin was added before the loader's.
#[test]
fn the_order_of_plugins_does_not_matter() {
    let (_log, _alone) = (Log::start(), memory::alone());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.glb"), corpus::good_glb()).unwrap();
    let mut app = app(folder.path());
    let server = app.world().resource::<AssetServer>();
    let handle: Handle<WorldAsset> = server.load("good.glb#Scene0");
    app.world_mut().spawn(WorldAssetRoot(handle.clone()));
    assert_eq!(outcome(&mut app, &handle.untyped()), None);
    app.update();
    let world = app.world_mut();
    assert_eq!(world.query::<&GpuInstances>().iter(world).count(), 1);
}

/// With a renderer, which quits the app if a pipeline is refused.
#[test]
fn an_app_that_draws_survives() {
    let (log, _alone) = (Log::start(), memory::alone());
    let mut stage = Stage::with_files(How::Set(None), folder());
    stage.lights(true);
    let eye = Transform::from_xyz(1.0, 5.0, 14.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    let server = stage.app.world().resource::<AssetServer>().clone();
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let set = GpuInstances(stage.add(field(60, false)));
    let mut handles = Vec::new();
    for case in corpus::all() {
        let material = stage.standard(StandardMaterial::default());
        match case.extension() {
            "meshlets" => {
                let meshlets: Handle<MeshletMesh> = server.load(case.name);
                handles.push((case.name, meshlets.clone().untyped()));
                stage.spawn((MeshletMesh3d(meshlets), material, set.clone()));
            }
            "lods" => {
                let lods: Handle<MeshLods> = server.load(case.name);
                handles.push((case.name, lods.clone().untyped()));
                let mesh = Mesh3d(mesh.clone());
                stage.spawn((mesh, MeshLods3d(lods), material, set.clone()));
            }
            _ => {}
        }
    }
    for (name, handle) in &handles {
        assert!(outcome(&mut stage.app, handle).is_some(), "{name}");
    }
    let picture = stage.picture();
    stage.assert_runs("hostile files");
    // The sets of the levels are drawn without them.
    assert!(
        picture
            .pixels()
            .any(|pixel| pixel != picture.get_pixel(0, 0))
    );
    drop(log);
}
