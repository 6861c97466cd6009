//! Instances in a glTF file (`EXT_mesh_gpu_instancing`) look like a file in which each is a node.

use crate::{
    gltf_file::{File, instanced},
    log::Log,
    scene::{How, Stage, assert_same_picture, field_of},
};
use bevy::{gltf::GltfLoaderSettings, prelude::*};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;
use serde_json::{Value, json};

/// Instances with scales, and instances of right angles.
fn instances() -> [Vec<Transform>; 2] {
    let scaled = field_of(60, ScaleKind::NonUniform)
        .iter()
        .map(Transform::from)
        .collect();
    let turned = (0..30).map(|i| {
        let turn = Quat::from_rotation_y(core::f32::consts::FRAC_PI_2 * (i % 4) as f32);
        Transform::from_xyz(i as f32 * 0.4 - 6.0, 2.5, 0.0).with_rotation(turn)
    });
    [scaled, turned.collect()]
}

/// The nodes that hold the instances. The first one stretches them, and has this scale along x.
fn holders(x: f32) -> [Value; 2] {
    let turn = Quat::from_rotation_x(0.3).to_array();
    [
        json!({ "translation": [0.5, -0.3, -1.0], "rotation": turn, "scale": [x, 0.8, 1.2] }),
        json!({ "translation": [0.0, 0.5, 0.0] }),
    ]
}

fn with_extension(all: &[Vec<Transform>; 2], x: f32) -> Vec<u8> {
    let mut file = File::default();
    let mut nodes = Vec::new();
    for (at, (instances, node)) in all.iter().zip(holders(x)).enumerate() {
        let translations: Vec<_> = instances.iter().map(|t| t.translation.to_array()).collect();
        let rotations: Vec<_> = instances.iter().map(|t| t.rotation.to_array()).collect();
        let scales: Vec<_> = instances.iter().map(|t| t.scale.to_array()).collect();
        let mut attributes = json!({ "TRANSLATION": file.floats(&translations) });
        if at == 0 {
            attributes["ROTATION"] = json!(file.floats(&rotations));
            attributes["SCALE"] = json!(file.floats(&scales));
        } else {
            let codes = rotations
                .iter()
                .flatten()
                .map(|v| (v * 32767.0).round() as i16);
            let bytes: Vec<_> = codes.flat_map(i16::to_le_bytes).collect();
            let short = json!({ "componentType": 5122, "type": "VEC4", "normalized": true });
            attributes["ROTATION"] = json!(file.accessor(&bytes, rotations.len(), short));
        }
        nodes.push(instanced(node, attributes));
    }
    file.finish(nodes, 2)
}

/// The same with a node per instance.
fn expanded(all: &[Vec<Transform>; 2], x: f32) -> Vec<u8> {
    let mut nodes = holders(x).to_vec();
    for (at, instances) in all.iter().enumerate() {
        let first = nodes.len();
        nodes.extend(instances.iter().map(|instance| {
            json!({
                "mesh": 0, "translation": instance.translation.to_array(),
                "rotation": instance.rotation.to_array(), "scale": instance.scale.to_array()
            })
        }));
        nodes[at]["children"] = json!((first..nodes.len()).collect::<Vec<_>>());
    }
    File::default().finish(nodes, 2)
}

/// A stage that draws a file.
fn load(
    how: How,
    file: &[u8],
    settings: impl Fn(&mut GltfLoaderSettings) + Send + Sync + Clone + 'static,
) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file.glb"), file).unwrap();
    let mut stage = Stage::with_files(how, folder.path());
    stage.lights(true);
    let eye = Transform::from_xyz(0.0, 3.0, 12.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    let server = stage.app.world().resource::<AssetServer>().clone();
    let builder = server.load_builder().with_settings(settings);
    let scene = builder.load("file.glb#Scene0");
    stage.spawn(WorldAssetRoot(scene.clone()));
    for _ in 0..2000 {
        stage.update(1);
        let state = server.load_state(&scene);
        if server.is_loaded_with_dependencies(&scene) || state.is_failed() {
            break;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    stage.update(3);
    stage
}

/// The sets of a stage.
fn sets(stage: &mut Stage) -> Vec<InstanceSet> {
    let world = stage.app.world_mut();
    let handles: Vec<_> = (world.query::<&GpuInstances>().iter(world))
        .map(|instances| instances.0.clone())
        .collect();
    // Without the plugin, there are none.
    let assets = world.get_resource::<Assets<InstanceSet>>();
    let sets = handles.iter().filter_map(|handle| assets?.get(handle));
    sets.cloned().collect()
}

/// The picture of a file, and how many entities with sets it has.
fn draw(how: How, file: &[u8]) -> (RgbaImage, usize) {
    let mut stage = load(how, file, |_| ());
    (stage.picture(), sets(&mut stage).len())
}

#[test]
fn instances_of_a_file_look_like_nodes() {
    let all = instances();
    let (expected, none) = draw(How::Entities, &expanded(&all, 1.1));
    let (picture, sets) = draw(How::Set(None), &with_extension(&all, 1.1));
    assert_eq!((sets, none), (2, 0));
    assert_same_picture("gltf-instances", &picture, &expected);
}

/// Two negative axes are a turn; one or three mirror, and need another set. In a node that mirrors,
/// too.
#[test]
fn instances_that_mirror_look_like_nodes() {
    let mut all = instances();
    for (at, instance) in all[0].iter_mut().enumerate() {
        let sign = |axis: usize| if at >> axis & 1 == 0 { 1.0 } else { -1.0 };
        instance.scale *= Vec3::from_array([0, 1, 2].map(sign));
    }
    let (expected, _) = draw(How::Entities, &expanded(&all, 1.1));
    let log = Log::start();
    let (picture, sets) = draw(How::Set(None), &with_extension(&all, 1.1));
    assert_eq!(sets, 3, "the first node's are two");
    assert_same_picture("gltf-mirrored", &picture, &expected);
    // Other tests log meanwhile.
    let lines = log.lines();
    assert_eq!(lines.iter().find(|line| line.contains("gltf")), None);
    drop(log);

    // A file of mirrored instances only, in a node that mirrors.
    let all = all.map(|part| {
        let mirrored = |t: &Transform| t.scale.cmplt(Vec3::ZERO).bitmask().count_ones() % 2 == 1;
        part.into_iter().filter(mirrored).collect::<Vec<_>>()
    });
    assert!(all[0].len() > 20 && all[1].is_empty());
    let all = [all[0].clone(), vec![Transform::from_xyz(0.0, 4.0, 0.0)]];
    let (expected, _) = draw(How::Entities, &expanded(&all, -1.1));
    let (picture, sets) = draw(How::Set(None), &with_extension(&all, -1.1));
    assert_eq!(sets, 2);
    assert_same_picture("gltf-only-mirrored", &picture, &expected);
}

/// As gltfpack and others write them.
#[test]
fn a_file_that_requires_the_extension_is_loaded_without_validation() {
    let all = instances();
    let mut file = File::default();
    let translations: Vec<_> = all[1].iter().map(|t| t.translation.to_array()).collect();
    let attributes = json!({ "TRANSLATION": file.floats(&translations) });
    let node = instanced(json!({}), attributes);
    let file = file.finish_with(vec![node], 1, |json| {
        json["extensionsRequired"] = json!(["EXT_mesh_gpu_instancing"]);
    });
    let mut refused = load(How::Set(None), &file, |_| ());
    assert_eq!(sets(&mut refused).len(), 0);
    let mut stage = load(How::Set(None), &file, |settings| settings.validate = false);
    assert_eq!(
        sets(&mut stage).iter().map(InstanceSet::len).sum::<usize>(),
        30
    );
    let picture = stage.picture();
    assert_ne!(picture, refused.picture());
}
