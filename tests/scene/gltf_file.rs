//! glTF files in the making: a box, drawn once per node or with `EXT_mesh_gpu_instancing`.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic, and not every test uses every helper"
)]

use bevy::{mesh::VertexAttributeValues, prelude::*};
use serde_json::{Value, json};

/// A file in the making: its JSON without accessors, and its buffer.
#[derive(Default)]
pub struct File {
    pub accessors: Vec<Value>,
    pub views: Vec<Value>,
    pub binary: Vec<u8>,
    /// The mesh instead of a box.
    pub shape: Option<Mesh>,
}

impl File {
    /// Adds an accessor of `count` values. Returns its index.
    pub fn accessor(&mut self, bytes: &[u8], count: usize, description: Value) -> usize {
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

    pub fn floats<const N: usize>(&mut self, values: &[[f32; N]]) -> usize {
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
        let mesh = self.shape.take();
        let mesh = mesh.unwrap_or_else(|| Cuboid::new(0.5, 0.4, 0.6).into());
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
    pub fn finish(self, nodes: Vec<Value>, roots: usize) -> Vec<u8> {
        self.finish_with(nodes, roots, |_| ())
    }

    /// The same after a change of the JSON.
    pub fn finish_with(
        mut self,
        nodes: Vec<Value>,
        roots: usize,
        change: impl FnOnce(&mut Value),
    ) -> Vec<u8> {
        let mesh = self.mesh();
        let roots: Vec<_> = (0..roots).collect();
        let mut json = json!({
            "asset": { "version": "2.0" },
            "extensionsUsed": ["EXT_mesh_gpu_instancing"],
            "scene": 0, "scenes": [{ "nodes": roots }], "nodes": nodes, "meshes": [mesh],
            "materials": [{ "pbrMetallicRoughness": {
                "baseColorFactor": [0.9, 0.2, 0.1, 1.0], "metallicFactor": 0.0
            }}],
            "accessors": self.accessors, "bufferViews": self.views,
            "buffers": [{ "byteLength": self.binary.len() }]
        });
        change(&mut json);
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

/// A node that draws the box once per value of accessors.
pub fn instanced(mut node: Value, attributes: Value) -> Value {
    node["mesh"] = json!(0);
    node["extensions"] = json!({ "EXT_mesh_gpu_instancing": { "attributes": attributes } });
    node
}
