//! Instances in a glTF file (`EXT_mesh_gpu_instancing`) look like a file in which each is a node.

use crate::scene::{How, Stage, assert_same_picture, field_of};
use bevy::{mesh::VertexAttributeValues, prelude::*};
use bevy_gpu_culling::prelude::*;
use image::RgbaImage;
use serde_json::{Value, json};

/// A file in the making: its JSON without accessors, and its buffer.
#[derive(Default)]
struct File {
    accessors: Vec<Value>,
    views: Vec<Value>,
    binary: Vec<u8>,
}

impl File {
    /// Adds an accessor of `count` values. Returns its index.
    fn accessor(&mut self, bytes: &[u8], count: usize, description: Value) -> usize {
        let place = json!({
            "buffer": 0, "byteOffset": self.binary.len(), "byteLength": bytes.len()
        });
        self.binary.extend_from_slice(bytes);
        let mut accessor = description;
        accessor["bufferView"] = json!(self.views.len());
        accessor["count"] = json!(count);
        self.views.push(place);
        self.accessors.push(accessor);
        self.accessors.len() - 1
    }

    fn floats<const N: usize>(&mut self, values: &[[f32; N]]) -> usize {
        let bytes: Vec<_> = values
            .iter()
            .flatten()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let bound = |pick: fn(f32, f32) -> f32| {
            let fold = |a: [f32; N], b: &[f32; N]| core::array::from_fn(|i| pick(a[i], b[i]));
            values.iter().fold(values[0], fold).to_vec()
        };
        let description = json!({
            "componentType": 5126, "type": format!("VEC{N}"),
            "min": bound(f32::min), "max": bound(f32::max)
        });
        self.accessor(&bytes, values.len(), description)
    }

    /// A box of three sides. Returns the mesh.
    fn mesh(&mut self) -> Value {
        let mesh = Mesh::from(Cuboid::new(0.5, 0.4, 0.6));
        let mut values = |attribute| {
            let values = mesh.attribute(attribute);
            let Some(VertexAttributeValues::Float32x3(values)) = values else {
                panic!("three floats")
            };
            self.floats(values)
        };
        let positions = values(Mesh::ATTRIBUTE_POSITION);
        let normals = values(Mesh::ATTRIBUTE_NORMAL);
        let indices: Vec<_> = mesh.indices().unwrap().iter().collect();
        let bytes: Vec<_> = indices
            .iter()
            .flat_map(|i| (*i as u32).to_le_bytes())
            .collect();
        let description = json!({ "componentType": 5125, "type": "SCALAR" });
        let indices = self.accessor(&bytes, indices.len(), description);
        json!({ "primitives": [{
            "attributes": { "POSITION": positions, "NORMAL": normals },
            "indices": indices, "material": 0
        }]})
    }

    /// The bytes of the binary form, with a scene of these nodes, of which the first are roots.
    fn finish(mut self, nodes: Vec<Value>, roots: usize) -> Vec<u8> {
        let mesh = self.mesh();
        let roots: Vec<_> = (0..roots).collect();
        let json = json!({
            "asset": { "version": "2.0" },
            "extensionsUsed": ["EXT_mesh_gpu_instancing"],
            "scene": 0, "scenes": [{ "nodes": roots }], "nodes": nodes, "meshes": [mesh],
            "materials": [{ "pbrMetallicRoughness": {
                "baseColorFactor": [0.9, 0.2, 0.1, 1.0], "metallicFactor": 0.0
            }}],
            "accessors": self.accessors, "bufferViews": self.views,
            "buffers": [{ "byteLength": self.binary.len() }]
        });
        let mut text = json.to_string().into_bytes();
        text.resize(text.len().next_multiple_of(4), b' ');
        self.binary.resize(self.binary.len().next_multiple_of(4), 0);
        let mut bytes = b"glTF".to_vec();
        let len = 12 + 8 + text.len() + 8 + self.binary.len();
        bytes.extend([2, len as u32].iter().flat_map(|word| word.to_le_bytes()));
        for (kind, chunk) in [(b"JSON", &text), (b"BIN\0", &self.binary)] {
            bytes.extend((chunk.len() as u32).to_le_bytes());
            bytes.extend(kind);
            bytes.extend(chunk);
        }
        bytes
    }
}

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

/// The nodes that hold the instances. The first one stretches them.
fn holders() -> [Value; 2] {
    let turn = Quat::from_rotation_x(0.3).to_array();
    [
        json!({ "translation": [0.5, -0.3, -1.0], "rotation": turn, "scale": [1.1, 0.8, 1.2] }),
        json!({ "translation": [0.0, 0.5, 0.0] }),
    ]
}

fn with_extension(all: &[Vec<Transform>; 2]) -> Vec<u8> {
    let mut file = File::default();
    let mut nodes = Vec::new();
    for (at, (instances, mut node)) in all.iter().zip(holders()).enumerate() {
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
        node["mesh"] = json!(0);
        node["extensions"] = json!({ "EXT_mesh_gpu_instancing": { "attributes": attributes } });
        nodes.push(node);
    }
    file.finish(nodes, 2)
}

/// The same with a node per instance.
fn expanded(all: &[Vec<Transform>; 2]) -> Vec<u8> {
    let mut nodes = holders().to_vec();
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

/// The picture of a file, and how many entities with sets it has.
fn draw(how: How, file: &[u8]) -> (RgbaImage, usize) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file.glb"), file).unwrap();
    let mut stage = Stage::with_files(how, folder.path());
    stage.lights(true);
    let eye = Transform::from_xyz(0.0, 3.0, 12.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    let server = stage.app.world().resource::<AssetServer>().clone();
    let scene = server.load("file.glb#Scene0");
    stage.spawn(WorldAssetRoot(scene.clone()));
    for _ in 0..2000 {
        stage.update(1);
        if server.is_loaded_with_dependencies(&scene) {
            break;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    stage.update(3);
    let picture = stage.picture();
    let world = stage.app.world_mut();
    let sets = world.query::<&GpuInstances>().iter(world).count();
    (picture, sets)
}

#[test]
fn instances_of_a_file_look_like_nodes() {
    let all = instances();
    let (expected, none) = draw(How::Entities, &expanded(&all));
    let (picture, sets) = draw(How::Set(None), &with_extension(&all));
    assert_eq!((sets, none), (2, 0));
    assert_same_picture("gltf-instances", &picture, &expected);
}

#[test]
fn scales_that_mirror_are_refused() {
    let mut all = instances();
    all[0][7].scale.y *= -1.5;
    let (_, sets) = draw(How::Set(None), &with_extension(&all));
    assert_eq!(sets, 1, "the other node's");
}
