//! Meshlets that are built in the background or loaded from files.

use super::{eyes, red, torus};
use crate::scene::{How, Stage, assert_same_picture, field};
use bevy::{
    mesh::{Indices, PrimitiveTopology},
    prelude::*,
};
use bevy_gpu_culling::{
    meshlet::{MeshletError, MeshletMesh, MeshletSettings},
    render::{BuildMeshlets, MeshletBuilds, MeshletsBuilt},
};
use std::sync::{Arc, Mutex};

type Outcomes = Arc<Mutex<Vec<MeshletsBuilt>>>;

fn watch(stage: &mut Stage) -> Outcomes {
    let outcomes = Outcomes::default();
    let into = outcomes.clone();
    stage.app.add_observer(move |built: On<MeshletsBuilt>| {
        into.lock().unwrap().push(built.event().clone());
    });
    outcomes
}

#[test]
fn meshlets_are_built_in_the_background() {
    let mut stage = Stage::new(How::Set(None));
    let outcomes = watch(&mut stage);
    stage.lights(false);
    stage.camera(eyes()[1].1, ());
    let material = stage.standard(red());
    let mesh = stage.mesh(torus());
    let set = field(150, true);
    // Two sets with one mesh, and a mesh that cannot be divided into meshlets.
    let at = Transform::from_xyz(0.0, 1.0, 0.0);
    for at in [Transform::IDENTITY, at] {
        let entity = stage.spawn_set(&set, (mesh.clone(), material.clone()), at);
        stage.entity(entity).insert(BuildMeshlets::default());
    }
    let mut lines = Mesh::new(PrimitiveTopology::LineList, default());
    lines.insert_attribute(Mesh::ATTRIBUTE_POSITION, vec![[0.0f32; 3]; 2]);
    lines.insert_indices(Indices::U32(vec![0, 1]));
    let lines = stage.mesh(lines);
    stage.spawn((Mesh3d(lines), BuildMeshlets::default()));
    let whole = stage.picture();
    for _ in 0..500 {
        stage.update(1);
        if outcomes.lock().unwrap().len() == 3 {
            break;
        }
        let builds = stage.app.world().resource::<MeshletBuilds>();
        let progress = builds.progress(mesh.id());
        assert!(progress.is_none_or(|progress| (0.0..=1.0).contains(&progress)));
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    let outcomes = outcomes.lock().unwrap().clone();
    let built: Vec<_> = outcomes
        .iter()
        .filter_map(|o| o.result.clone().ok())
        .collect();
    assert_eq!(built.len(), 2, "{outcomes:?}");
    assert_eq!(built[0], built[1], "both entities share the built meshlets");
    let refused = outcomes.iter().find_map(|o| o.result.clone().err());
    assert!(
        matches!(refused, Some(MeshletError::Topology { .. })),
        "{refused:?}"
    );
    assert!(stage.app.world().resource::<MeshletBuilds>().is_empty());
    assert_same_picture("built", &stage.picture(), &whole);
    assert!(stage.report().meshlets.culled_by_cone > 0);
}

#[test]
fn files_are_loaded_and_damaged_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let meshlets = MeshletMesh::from_mesh(&torus(), &MeshletSettings::default()).unwrap();
    let bytes = meshlets.to_bytes().unwrap();
    std::fs::write(folder.path().join("torus.meshlets"), &bytes).unwrap();
    std::fs::write(
        folder.path().join("short.meshlets"),
        &bytes[..bytes.len() / 2],
    )
    .unwrap();
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        AssetPlugin {
            file_path: folder.path().to_str().unwrap().into(),
            ..default()
        },
        bevy::mesh::MeshPlugin,
        ImagePlugin::default(),
    ));
    app.init_asset::<MeshletMesh>();
    app.register_asset_loader(bevy_gpu_culling::render::MeshletMeshLoader);
    let server = app.world().resource::<AssetServer>().clone();
    let good: Handle<MeshletMesh> = server.load("torus.meshlets");
    let bad: Handle<MeshletMesh> = server.load("short.meshlets");
    for _ in 0..500 {
        app.update();
        if server.load_state(&good).is_loaded() && server.load_state(&bad).is_failed() {
            break;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    let assets = app.world().resource::<Assets<MeshletMesh>>();
    assert_eq!(assets.get(&good), Some(&meshlets));
    let bevy::asset::LoadState::Failed(error) = server.load_state(&bad) else {
        panic!("{:?}", server.load_state(&bad))
    };
    let text = format!("{error:?}{error}");
    assert!(text.contains("damaged"), "{text}");
}
