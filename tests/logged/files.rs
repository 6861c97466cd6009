//! Instance files in an app: loaded, reloaded and saved, and what the log says of bad ones.

use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, field},
};
use bevy::{
    asset::{
        LoadState, RenderAssetUsages,
        saver::{SavedAsset, save_using_saver},
    },
    prelude::*,
};
use bevy_gpu_culling::{
    instance::InstanceFileError,
    prelude::*,
    render::{InstanceSetLoaderSettings, InstanceSetSaver},
};
use image::RgbaImage;
use std::path::Path;

fn write(folder: &Path, name: &str, set: &InstanceSet) {
    std::fs::write(folder.join(name), set.to_bytes().unwrap()).unwrap();
}

/// Updates the app until the condition holds.
fn wait(stage: &mut Stage, what: &str, holds: impl Fn(&World) -> bool) {
    for _ in 0..2000 {
        stage.update(1);
        if holds(stage.app.world()) {
            return;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    panic!("waited too long: {what}");
}

fn furnish(stage: &mut Stage) -> (Mesh3d, MeshMaterial3d<StandardMaterial>) {
    stage.lights(true);
    let eye = Transform::from_xyz(1.0, 5.0, 14.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    let mesh = stage.mesh(Cuboid::new(0.5, 0.4, 0.6));
    let material = stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2)));
    (Mesh3d(mesh), material)
}

/// The picture of a set that no file is read for.
fn picture_of(set: &InstanceSet) -> RgbaImage {
    let mut stage = Stage::new(How::Set(None));
    let parts = furnish(&mut stage);
    let set = GpuInstances(stage.add(set.clone()));
    stage.spawn((parts, set));
    stage.picture()
}

/// The same whether the data stays on the CPU or not. A damaged file leaves what is drawn.
#[test]
fn a_file_is_drawn_and_so_is_what_replaces_it() {
    let sets = [field(300, true), field(500, false)];
    let pictures = [picture_of(&sets[0]), picture_of(&sets[1])];
    for usage in [
        RenderAssetUsages::default(),
        RenderAssetUsages::RENDER_WORLD,
    ] {
        let log = Log::start();
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "rocks.instances", &sets[0]);
        let mut stage = Stage::with_files(How::Set(None), folder.path());
        let server = stage.app.world().resource::<AssetServer>().clone();
        let parts = furnish(&mut stage);
        let settings = move |settings: &mut InstanceSetLoaderSettings| settings.asset_usage = usage;
        let handle: Handle<InstanceSet> = server
            .load_builder()
            .with_settings(settings)
            .load("rocks.instances");
        stage.spawn((parts, GpuInstances(handle.clone())));
        let len = |world: &World| {
            let assets = world.resource::<Assets<InstanceSet>>();
            assets.get(&handle).map(InstanceSet::len)
        };
        wait(&mut stage, "the file", |world| len(world) == Some(300));
        assert_same_picture("from a file", &stage.picture(), &pictures[0]);
        let assets = stage.app.world().resource::<Assets<InstanceSet>>();
        let is_released = assets.get(&handle).is_some_and(InstanceSet::is_released);
        assert_eq!(is_released, usage == RenderAssetUsages::RENDER_WORLD);

        write(folder.path(), "rocks.instances", &sets[1]);
        server.reload("rocks.instances");
        wait(&mut stage, "the reload", |world| len(world) == Some(500));
        assert_same_picture("reloaded", &stage.picture(), &pictures[1]);
        assert_eq!(log.lines(), Vec::<String>::new());

        std::fs::write(folder.path().join("rocks.instances"), b"GPUINSTS").unwrap();
        server.reload("rocks.instances");
        wait(&mut stage, "the damaged file", |_| !log.lines().is_empty());
        assert_same_picture("damaged", &stage.picture(), &pictures[1]);
        // Bevy logs a failed reload twice.
        for line in log.lines() {
            let parts = ["rocks.instances", "has 8 bytes", "damaged"];
            assert!(parts.iter().all(|part| line.contains(part)), "{line}");
        }
    }
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let log = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let good = field(100, true).to_bytes().unwrap();
    let mut newer = good.clone();
    newer[8] += 1;
    let mut damaged = good.clone();
    damaged[100] ^= 1;
    let files: [(&str, &[u8], &str); 4] = [
        ("short.instances", &good[..good.len() / 2], "get it again"),
        ("damaged.instances", &damaged, "checksum"),
        ("newer.instances", &newer, "update bevy_gpu_culling"),
        (
            "picture.instances",
            b"\x89PNG\r\n\x1a\n",
            "not a file of instances",
        ),
    ];
    for (name, bytes, _) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let mut stage = Stage::with_files(How::Set(None), folder.path());
    let server = stage.app.world().resource::<AssetServer>().clone();
    let handles = files.map(|(name, ..)| server.load::<InstanceSet>(name));
    for handle in &handles {
        // A set that is not there draws nothing, and nothing else complains.
        let parts = furnish(&mut stage);
        stage.spawn((parts, GpuInstances(handle.clone())));
    }
    wait(&mut stage, "the files", |_| {
        handles
            .iter()
            .all(|handle| server.load_state(handle).is_failed())
    });
    stage.update(3);
    for ((name, _, advice), handle) in files.into_iter().zip(&handles) {
        log.assert_once(&[name, advice]);
        let LoadState::Failed(error) = server.load_state(handle) else {
            panic!("{:?}", server.load_state(handle));
        };
        let text = error.to_string();
        assert!(text.contains(name) && text.contains(advice), "{text}");
    }
    assert_eq!(log.lines().len(), files.len(), "{:#?}", log.lines());
    stage.assert_runs("bad files");
}

/// What a saver writes, the loader reads: data, settings, and which side keeps the data.
#[test]
fn a_saved_set_is_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::with_files(How::Set(None), folder.path());
    let server = stage.app.world().resource::<AssetServer>().clone();
    let save = |set: &InstanceSet, name: &'static str| {
        pollster::block_on(save_using_saver(
            server.clone(),
            &InstanceSetSaver,
            &name.into(),
            SavedAsset::from_asset(set),
            &(),
        ))
    };
    let set = field(200, true).with_tags((0..200).collect()).unwrap();
    let usage = RenderAssetUsages::MAIN_WORLD;
    let set = set.keep_previous(true).with_asset_usage(usage);
    save(&set, "saved.instances").unwrap();
    let written = std::fs::read(folder.path().join("saved.instances")).unwrap();
    assert_eq!(written, set.to_bytes().unwrap());

    // The second file is the same without its settings.
    std::fs::write(folder.path().join("bare.instances"), written).unwrap();
    let saved: Handle<InstanceSet> = server.load("saved.instances");
    let bare: Handle<InstanceSet> = server
        .load_builder()
        .with_settings(|settings: &mut InstanceSetLoaderSettings| {
            settings.keep_previous = Some(false);
        })
        .load("bare.instances");
    wait(&mut stage, "both files", |_| {
        [&saved, &bare]
            .iter()
            .all(|handle| server.load_state(*handle).is_loaded())
    });
    let assets = stage.app.world().resource::<Assets<InstanceSet>>();
    let expected = [
        (&saved, usage, true),
        (&bare, RenderAssetUsages::default(), false),
    ];
    for (handle, usage, previous) in expected {
        let again = assets.get(handle).unwrap();
        assert_eq!(again.packed(), set.packed());
        assert_eq!((again.scales(), again.tags()), (set.scales(), set.tags()));
        assert_eq!(
            (again.asset_usage, again.keeps_previous()),
            (usage, previous)
        );
    }

    let mut released = field(5, false);
    drop(released.release());
    let error = save(&released, "released.instances")
        .unwrap_err()
        .to_string();
    let expected = InstanceFileError::Released.to_string();
    assert!(error.contains(&expected), "{error}");
}
