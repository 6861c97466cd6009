//! Hostile files.

use crate::{
    fuzzed::sealed,
    gltf_file::{File, instanced},
};
use serde::Serialize;
use serde_json::{Value, json};

/// A file, and what its error must say.
pub struct Case {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub part: &'static str,
    /// Whether Bevy validates the file, if it is a glTF file.
    pub validate: bool,
}

impl Case {
    pub fn extension(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap()
    }
}

fn case(name: &'static str, part: &'static str, bytes: Vec<u8>) -> Case {
    Case {
        name,
        bytes,
        part,
        validate: true,
    }
}

fn instances(count: u32, flags: u32, more: &[u8]) -> Vec<u8> {
    let mut payload = [count.to_le_bytes(), flags.to_le_bytes()].concat();
    payload.extend(more);
    sealed(b"GPUINSTS", 1, &payload)
}

fn packed(value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, Vec::new()).unwrap()
}

fn meshlets(payload: &[u8]) -> Vec<u8> {
    sealed(b"GPUMSHLT", 2, payload)
}

fn lods(payload: &[u8]) -> Vec<u8> {
    sealed(b"GPUMLODS", 1, payload)
}

/// An attribute as the files have it: id, format, stride, bytes.
type Attribute = (u64, u32, u32, Vec<u8>);

/// Three vertices: positions, and other attributes of these ids, codes of formats and sizes.
fn attributes(more: &[(u64, u32, u32)]) -> Vec<Attribute> {
    let positions = [0.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let positions = positions.iter().flat_map(|value| value.to_le_bytes());
    let mut all = vec![(0, 0, 12, positions.collect())];
    let more = more.iter();
    all.extend(
        more.map(|&(id, format, stride)| (id, format, stride, vec![0; 3 * stride as usize])),
    );
    all
}

fn triangle_of_meshlets(attributes: &[Attribute]) -> Vec<u8> {
    let sphere = ([0.0f32, 0.0, 0.0, 2.0], 0u32, 1u32);
    meshlets(&packed(&(
        3u32,
        attributes,
        vec![0u32, 1, 2],
        vec![sphere],
        vec![(1u32, 0.0f32)],
    )))
}

fn triangle_of_lods(attributes: &[Attribute]) -> Vec<u8> {
    lods(&packed(&vec![(3u32, attributes, vec![0u32, 1, 2], 0.5f32)]))
}

/// Codes of formats, same as `src/render/meshlets/formats.rs` has them.
const FLOAT_32X2: u32 = 1;
const FLOAT_32X4: u32 = 2;
const UINT_8: u32 = 28;
const UINT_16: u32 = 32;

/// A box that is drawn once per value of accessors.
fn glb(attributes: Value, accessors: impl FnOnce(&mut File) -> Vec<Value>) -> Vec<u8> {
    glb_with(attributes, accessors, |_| ())
}

fn glb_with(
    attributes: Value,
    accessors: impl FnOnce(&mut File) -> Vec<Value>,
    change: impl FnOnce(&mut Value),
) -> Vec<u8> {
    let mut file = File::default();
    // The instances' accessors are the first.
    file.accessors = accessors(&mut file);
    let node = instanced(json!({ "name": "hostile" }), attributes);
    file.finish_with(vec![node], 1, change)
}

/// Twelve bytes in a view, and accessors that see more in them.
fn claims(kind: &str, count: u64) -> impl FnOnce(&mut File) -> Vec<Value> {
    move |file| {
        file.accessor(&[0; 12], 1, json!({}));
        let claim = json!({ "bufferView": 0, "componentType": 5126, "type": kind, "count": count });
        vec![claim]
    }
}

/// All values but one are nowhere.
fn sparse(count: u64) -> impl FnOnce(&mut File) -> Vec<Value> {
    move |file| {
        file.accessor(&[0; 4], 1, json!({}));
        file.accessor(&[0; 12], 1, json!({}));
        vec![json!({
            "componentType": 5126, "type": "VEC3", "count": count,
            "sparse": {
                "count": 1,
                "indices": { "bufferView": 0, "componentType": 5125 },
                "values": { "bufferView": 1 }
            }
        })]
    }
}

/// Three instances.
pub fn good_glb() -> Vec<u8> {
    glb(json!({ "TRANSLATION": 0 }), |file| {
        file.floats(&[[0.0f32, 0.0, 0.0], [2.0, 0.0, 0.0], [4.0, 0.0, 0.0]]);
        core::mem::take(&mut file.accessors)
    })
}

pub fn all() -> Vec<Case> {
    let sixteen: Vec<_> = (1..17).map(|id| (id + 100, FLOAT_32X2, 8)).collect();
    let large: Vec<_> = (1..10).map(|id| (id + 100, FLOAT_32X4, 256)).collect();
    let mut twice = attributes(&[]);
    twice.push((0, 0, 12, vec![0xff; 36]));
    let claim = |len: u64| packed(&len);
    let billions = 3_000_000_000;
    let absurd = 1_000_000_000_000_000_000;
    let mut all = vec![
        // Counts that 32 bits hold, and arrays that are not there.
        case(
            "count.instances",
            "header says 68719476752",
            instances(u32::MAX, 0, &[0; 64]),
        ),
        case(
            "channels.instances",
            "bytes, but its header says",
            instances(u32::MAX, 0x73, &[0; 64]),
        ),
        case(
            "hidden.instances",
            "bytes, but its header says",
            instances(3, 8, &[0xff; 64]),
        ),
        // Lengths of lists.
        case(
            "attributes.meshlets",
            "content",
            meshlets(&[claim(9), claim(u64::MAX >> 1)].concat()),
        ),
        case(
            "bytes.meshlets",
            "content",
            meshlets(
                &[
                    claim(9),
                    claim(1),
                    claim(0),
                    claim(0),
                    claim(12),
                    claim(u64::MAX >> 8),
                ]
                .concat(),
            ),
        ),
        case(
            "indices.meshlets",
            "content",
            meshlets(
                &[
                    packed(&(3u32, attributes(&[]))),
                    claim(1 << 40),
                    vec![0; 64],
                ]
                .concat(),
            ),
        ),
        case(
            "levels.lods",
            "content",
            lods(&[claim(u64::MAX >> 1), vec![0; 64]].concat()),
        ),
        case(
            "indices.lods",
            "content",
            lods(
                &[
                    claim(1),
                    packed(&(3u32, attributes(&[]))),
                    claim(1 << 40),
                    vec![0; 64],
                ]
                .concat(),
            ),
        ),
        case("vertices.lods", "attribute 0 has 36 bytes", {
            lods(&packed(&vec![(
                u32::MAX,
                attributes(&[]),
                vec![0u32, 1, 2],
                0.5f32,
            )]))
        }),
        // Vertices that quit the app.
        case(
            "odd.meshlets",
            "13 bytes",
            triangle_of_meshlets(&attributes(&[(101, UINT_8, 1)])),
        ),
        case(
            "odd.lods",
            "14 bytes",
            triangle_of_lods(&attributes(&[(101, UINT_16, 2)])),
        ),
        case(
            "offset.meshlets",
            "attribute 102 of 8 bytes lies at byte 14",
            triangle_of_meshlets(&attributes(&[
                (101, UINT_16, 2),
                (102, FLOAT_32X2, 8),
                (103, UINT_16, 2),
            ])),
        ),
        case(
            "large.meshlets",
            "2316 bytes",
            triangle_of_meshlets(&attributes(&large)),
        ),
        case(
            "many.meshlets",
            "17 attributes",
            triangle_of_meshlets(&attributes(&sixteen)),
        ),
        case(
            "many.lods",
            "17 attributes",
            triangle_of_lods(&attributes(&sixteen)),
        ),
        case(
            "twice.meshlets",
            "attribute 0 twice",
            triangle_of_meshlets(&twice),
        ),
        case("twice.lods", "attribute 0 twice", triangle_of_lods(&twice)),
        // Bevy's own validation does not see these.
        case(
            "scales.glb",
            "SCALE has 3000000000 values",
            glb(json!({ "SCALE": 0 }), claims("VEC3", billions)),
        ),
        case(
            "rotations.glb",
            "ROTATION has 3000000000 values",
            glb(json!({ "ROTATION": 0 }), claims("VEC4", billions)),
        ),
        case(
            "absurd.glb",
            "TRANSLATION has 1000000000000000000 values",
            glb(json!({ "TRANSLATION": 0 }), claims("VEC3", absurd)),
        ),
        case(
            "sparse.glb",
            "TRANSLATION has 3000000000 values",
            glb(json!({ "TRANSLATION": 0 }), sparse(billions)),
        ),
        case(
            "few.glb",
            "buffer view 0 has 12 bytes",
            glb(json!({ "SCALE": 0 }), claims("VEC3", 9)),
        ),
        case(
            "stride.glb",
            "4 bytes apart",
            glb_with(json!({ "TRANSLATION": 0 }), sparse(2), |json| {
                json["bufferViews"][1]["byteStride"] = json!(4);
            }),
        ),
    ];
    // Without validation.
    let mut nowhere = case(
        "nowhere.glb",
        "buffer view 77",
        glb_with(json!({ "TRANSLATION": 0 }), claims("VEC3", 1), |json| {
            json["accessors"][0]["bufferView"] = json!(77);
        }),
    );
    nowhere.validate = false;
    all.push(nowhere);
    all
}
