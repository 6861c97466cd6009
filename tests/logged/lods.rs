//! Levels of detail that are made in the background or loaded from files: pictures and log.

use crate::{
    log::Log,
    scene::{How, Stage, assert_same_picture, field},
};
use bevy::{
    mesh::{Indices, PrimitiveTopology},
    prelude::*,
};
use bevy_gpu_culling::{meshlet::MeshletError, prelude::*, render::LodBuilds};
use std::sync::{Arc, Mutex};

type Outcomes = Arc<Mutex<Vec<LodsBuilt>>>;

fn watch(stage: &mut Stage) -> Outcomes {
    let outcomes = Outcomes::default();
    let into = outcomes.clone();
    stage.app.add_observer(move |built: On<LodsBuilt>| {
        into.lock().unwrap().push(built.event().clone());
    });
    outcomes
}

/// Waits until `count` builds have ended, and returns how they ended.
fn wait_for(stage: &mut Stage, outcomes: &Outcomes, count: usize) -> Vec<LodsBuilt> {
    for _ in 0..2000 {
        stage.update(1);
        let outcomes = outcomes.lock().unwrap();
        if outcomes.len() == count {
            return outcomes.clone();
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    panic!("{:?}", outcomes.lock().unwrap());
}

fn torus() -> Mesh {
    let torus = Torus::new(0.15, 0.45);
    torus
        .mesh()
        .minor_resolution(24)
        .major_resolution(48)
        .build()
}

/// Where the sets stand.
fn places() -> [Transform; 2] {
    [0.0, 1.0].map(|y| Transform::from_xyz(0.3, y, -1.0).with_scale(Vec3::splat(0.8)))
}

fn furnish(stage: &mut Stage) -> (Handle<Mesh>, MeshMaterial3d<StandardMaterial>) {
    stage.lights(true);
    let eye = Transform::from_xyz(1.0, 5.0, 14.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    let mesh = stage.mesh(torus());
    (
        mesh,
        stage.standard(StandardMaterial::from(Color::srgb(0.9, 0.3, 0.2))),
    )
}

fn levels_of_camera(stage: &mut Stage) -> usize {
    let report = stage.report();
    let camera = report.views.iter().find(|view| view.name == "camera");
    camera.unwrap().levels.len()
}

#[test]
fn levels_are_built_in_the_background() {
    let log = Log::start();
    let set = field(150, true);
    let settings = LodSettings {
        max_levels: 3,
        ..default()
    };
    let mut at_once = Stage::new(How::Set(None));
    let parts = furnish(&mut at_once);
    let mut meshes = at_once.app.world_mut().resource_mut::<Assets<Mesh>>();
    let lods = InstanceLods::simplified(&torus(), &settings, &mut meshes).unwrap();
    for at in places() {
        let entity = at_once.spawn_set(&set, parts.clone(), at);
        at_once.entity(entity).insert(lods.clone());
    }
    let with_levels = at_once.picture();
    assert!(levels_of_camera(&mut at_once) > 1);

    let mut stage = Stage::new(How::Set(None));
    let outcomes = watch(&mut stage);
    let (mesh, material) = furnish(&mut stage);
    let sets = places().map(|at| stage.spawn_set(&set, (mesh.clone(), material.clone()), at));
    let in_full = stage.picture();
    // While the levels are being built, the sets are drawn as before.
    for entity in sets {
        stage.entity(entity).insert(BuildLods(settings));
    }
    assert_same_picture("not built yet", &stage.picture_now(), &in_full);
    // A mesh that has no levels, and one whose settings are out of range.
    let mut lines = Mesh::new(PrimitiveTopology::LineList, default());
    lines.insert_attribute(Mesh::ATTRIBUTE_POSITION, vec![[0.0f32; 3]; 2]);
    lines.insert_indices(Indices::U32(vec![0, 1]));
    let lines = stage.mesh(lines);
    let no_levels = stage.spawn((Mesh3d(lines), BuildLods::default()));
    let kept = LodSettings {
        kept: 0.9,
        ..default()
    };
    let bad_settings = stage.spawn((Mesh3d(mesh.clone()), BuildLods(kept)));

    let ended = wait_for(&mut stage, &outcomes, 4);
    let of = |entity| {
        let built = ended.iter().find(|built| built.entity == entity);
        built.unwrap().result.clone()
    };
    let [one, other] = sets.map(|entity| of(entity).unwrap());
    assert_eq!(one, other, "both sets share the meshes of the levels");
    assert_eq!(one.levels.len(), 3);
    assert_eq!(stage.entity(sets[1]).get::<InstanceLods>(), Some(&one));
    for (entity, expected) in [(no_levels, "LineList"), (bad_settings, "0.75")] {
        let error: MeshletError = of(entity).unwrap_err();
        let parts = [&format!("BuildLods on {entity}:"), "the Mesh", expected];
        log.assert_once(&parts);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!stage.entity(entity).contains::<BuildLods>());
    }
    assert_eq!(log.lines().len(), 2, "{:#?}", log.lines());
    assert!(stage.app.world().resource::<LodBuilds>().is_empty());
    assert_same_picture("built", &stage.picture(), &with_levels);
    assert_eq!(levels_of_camera(&mut stage), levels_of_camera(&mut at_once));
}

/// The entity waits for its mesh, and the build says how far it is.
#[test]
fn a_mesh_that_is_not_loaded_yet_gets_its_levels_later() {
    let mut stage = Stage::new(How::Set(None));
    let outcomes = watch(&mut stage);
    let meshes = stage.app.world().resource::<Assets<Mesh>>();
    let mesh = meshes.reserve_handle();
    let entity = stage.spawn((Mesh3d(mesh.clone()), BuildLods::default()));
    stage.update(3);
    assert!(stage.entity(entity).contains::<BuildLods>());
    assert!(stage.app.world().resource::<LodBuilds>().is_empty());

    let mut meshes = stage.app.world_mut().resource_mut::<Assets<Mesh>>();
    meshes.insert(&mesh, torus()).unwrap();
    stage.update(1);
    let builds = stage.app.world().resource::<LodBuilds>();
    let progress = builds.progress(mesh.id());
    assert!(progress.is_none_or(|progress| (0.0..=1.0).contains(&progress)));
    let built = wait_for(&mut stage, &outcomes, 1).remove(0);
    assert!(built.result.is_ok_and(|lods| lods.levels.len() == 5));
    assert!(!stage.entity(entity).contains::<BuildLods>());
    assert!(stage.entity(entity).contains::<InstanceLods>());
}

#[test]
fn files_are_loaded_and_damaged_ones_refused() {
    let log = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let lods = MeshLods::from_mesh(&torus(), &LodSettings::default()).unwrap();
    let bytes = lods.to_bytes().unwrap();
    std::fs::write(folder.path().join("torus.lods"), &bytes).unwrap();
    std::fs::write(folder.path().join("short.lods"), &bytes[..200]).unwrap();
    // A level that no mesh can be made of: no format has this code.
    let mut levels = lods.levels().to_vec();
    for attribute in &mut levels[0].data.attributes[1..] {
        attribute.format = 1000;
    }
    let odd = MeshLods::from_levels(levels).unwrap().to_bytes().unwrap();
    std::fs::write(folder.path().join("odd.lods"), odd).unwrap();

    let set = field(150, true);
    let draw = |stage: &mut Stage, lods: &dyn Fn(&mut Stage, Entity)| {
        let parts = furnish(stage);
        let sets = places().map(|at| stage.spawn_set(&set, parts.clone(), at));
        for entity in sets {
            lods(stage, entity);
        }
        sets
    };
    let mut at_once = Stage::new(How::Set(None));
    let mut meshes = at_once.app.world_mut().resource_mut::<Assets<Mesh>>();
    let expected =
        InstanceLods::simplified(&torus(), &LodSettings::default(), &mut meshes).unwrap();
    draw(&mut at_once, &|stage, entity| {
        stage.entity(entity).insert(expected.clone());
    });
    let expected = at_once.picture();

    let mut stage = Stage::with_files(How::Set(None), folder.path());
    let server = stage.app.world().resource::<AssetServer>().clone();
    let [good, bad, odd]: [Handle<MeshLods>; 3] =
        ["torus.lods", "short.lods", "odd.lods"].map(|path| server.load(path));
    let sets = draw(&mut stage, &|stage, entity| {
        stage.entity(entity).insert(MeshLods3d(good.clone()));
    });
    let without = [&bad, &odd].map(|lods| stage.spawn(MeshLods3d(lods.clone())));
    for _ in 0..2000 {
        stage.update(1);
        let states = [&good, &bad, &odd].map(|handle| server.load_state(handle));
        if states[0].is_loaded() && states[1].is_failed() && states[2].is_loaded() {
            break;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    stage.update(2);
    let assets = stage.app.world().resource::<Assets<MeshLods>>();
    assert_eq!(assets.get(&good), Some(&lods));
    for entity in without {
        assert!(!stage.entity(entity).contains::<InstanceLods>());
    }
    let parts = [
        &format!("MeshLods3d on {}:", without[1]),
        "\"odd.lods\"",
        "unknown format 1000",
    ];
    log.assert_once(&parts);
    // The other line is Bevy's, of the short file.
    log.assert_once(&["short.lods", "damaged"]);
    assert_eq!(log.lines().len(), 2, "{:#?}", log.lines());
    let [one, other] = sets.map(|entity| stage.entity(entity).get::<InstanceLods>().cloned());
    assert!(one.is_some() && one == other, "the sets share the levels");
    assert_same_picture("from a file", &stage.picture(), &expected);

    // Fewer levels: the sets get them.
    let fewer = MeshLods::from_levels(lods.levels()[..1].to_vec()).unwrap();
    let mut assets = stage.app.world_mut().resource_mut::<Assets<MeshLods>>();
    assets.insert(&good, fewer).unwrap();
    stage.update(2);
    for entity in sets {
        let lods = stage.entity(entity).get::<InstanceLods>().cloned();
        assert!(lods.is_some_and(|lods| lods.levels.len() == 1));
    }
}

/// A set that cannot be thinned out or bent is drawn as without the component, and the log says
/// why.
#[test]
fn components_that_are_ignored_are_logged_once() {
    let detail = |below_pixels| AggregateDetail { below_pixels };
    ignored("AggregateDetail", [detail(100.0), detail(f32::NAN)], "NaN");
    let high = |height| Wind {
        strength: 2.0,
        height,
        ..default()
    };
    ignored("Wind", [high(0.2), high(-1.0)], "height is -1");
}

/// A component that is ignored on a set drawn from mesh uniforms, and a `bad` one, which the log
/// describes in this way.
fn ignored<C: Component + Copy>(name: &str, [good, bad]: [C; 2], text: &str) {
    let log = Log::start();
    let mut stage = Stage::new(How::Set(None));
    let parts = furnish(&mut stage);
    let set = field(200, true);
    let [uniforms, plain] = places().map(|at| stage.spawn_set(&set, parts.clone(), at));
    stage.entity(uniforms).insert(InstanceMeshUniforms);
    let before = stage.picture();
    stage.entity(uniforms).insert(good);
    stage.entity(plain).insert(bad);
    let after = stage.picture();
    assert_same_picture(&format!("ignored {name}"), &after, &before);
    log.assert_once(&[&format!("{name} on {uniforms} is ignored"), "MeshUniform"]);
    log.assert_once(&[&format!("{name} on {plain} is ignored"), text]);
    stage.entity(plain).insert(good);
    assert_ne!(stage.picture(), after, "a valid one shows");
}
