#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use serde_json::{Value, json};

mod mutations;

/// A file with one node, whose buffer this is.
fn file(attributes: Value, accessors: Value, views: Value, buffer: &[u8]) -> Value {
    json!({
        "asset": { "version": "2.0" },
        "nodes": [{ "extensions": { (NAME): { "attributes": attributes } } }],
        "accessors": accessors, "bufferViews": views, "buffers": [{ "byteLength": buffer.len() }]
    })
}

/// The sets of its node. Nothing is validated.
fn read(file: &Value, buffer: &[u8]) -> Result<NodeSets, String> {
    let file = gltf::Gltf::from_slice_without_validation(file.to_string().as_bytes());
    let file = file.map_err(|error| error.to_string())?;
    let node = file.nodes().next().ok_or("no node")?;
    read_sets(&file, &node, &[buffer.to_vec()])
}

/// What is wrong with a file.
fn problem(file: &Value, buffer: &[u8]) -> String {
    read(file, buffer).err().unwrap_or_default()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn view(offset: usize, len: usize) -> Value {
    json!({ "buffer": 0, "byteOffset": offset, "byteLength": len })
}

/// An accessor of the first view.
fn accessor(component: u32, kind: &str, count: u64) -> Value {
    json!({ "bufferView": 0, "componentType": component, "type": kind, "count": count })
}

const FLOAT: u32 = 5126;

#[test]
fn rotations_are_floats_or_normalized_integers() {
    let turn = Quat::from_xyzw(0.5, 0.1, 0.3, 0.8).normalize();
    let scaled = |max: f32| turn.to_array().map(|value| (value * max).round() as i32);
    let bytes_of = |max: f32, size: usize| -> Vec<u8> {
        let codes = scaled(max).into_iter();
        codes
            .flat_map(|code| code.to_le_bytes()[..size].to_vec())
            .collect()
    };
    for (component, buffer, slack) in [
        (FLOAT, bytes(&turn.to_array()), 2e-3),
        (5120, bytes_of(127.0, 1), 0.02),
        (5121, bytes_of(255.0, 1), 0.01),
        (5122, bytes_of(32767.0, 2), 2e-3),
        (5123, bytes_of(65535.0, 2), 2e-3),
    ] {
        let mut rotation = accessor(component, "VEC4", 1);
        rotation["normalized"] = json!(component != FLOAT);
        let views = json!([view(0, buffer.len())]);
        let attributes = json!({ "ROTATION": 0 });
        let good = file(
            attributes.clone(),
            json!([rotation]),
            views.clone(),
            &buffer,
        );
        let set = read(&good, &buffer).unwrap().plain.unwrap();
        let read = set.get(0).unwrap().rotation;
        assert!(
            read.angle_between(turn) < slack,
            "{component}: {read} instead of {turn}"
        );
        // Whole numbers are no rotations.
        if component != FLOAT {
            rotation["normalized"] = json!(false);
            let text = problem(
                &file(attributes, json!([rotation]), views, &buffer),
                &buffer,
            );
            assert!(
                text.contains("ROTATION has Vec4 of") && text.contains("normalized"),
                "{text}"
            );
        }
    }
    let mut rotation = accessor(5125, "VEC4", 1);
    rotation["normalized"] = json!(true);
    let buffer = bytes(&turn.to_array());
    let views = json!([view(0, 16)]);
    let text = problem(
        &file(json!({ "ROTATION": 0 }), json!([rotation]), views, &buffer),
        &buffer,
    );
    assert!(text.contains("normalized Vec4 of U32"), "{text}");
}

#[test]
fn values_that_are_nowhere_are_zero() {
    let buffer = bytes(&[2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let zeros = json!({ "componentType": FLOAT, "type": "VEC3", "count": 2 });
    let scales = accessor(FLOAT, "VEC3", 2);
    let attributes = json!({ "TRANSLATION": 0, "SCALE": 1 });
    let file = file(
        attributes,
        json!([zeros, scales]),
        json!([view(0, 24)]),
        &buffer,
    );
    let set = read(&file, &buffer).unwrap().plain.unwrap();
    assert_eq!(set.len(), 2);
    assert!(
        set.iter()
            .all(|instance| instance.translation == Vec3::ZERO)
    );
    let mut scales: Vec<_> = set.iter().map(|instance| instance.scale.x).collect();
    scales.sort_by(f32::total_cmp);
    assert_eq!(scales, [2.0, 5.0]);
}

/// Translations of which those with these indices are in the buffer, behind the indices.
fn sparse(indices: &[u8], count: u64) -> (Value, Vec<u8>) {
    let mut buffer = indices.to_vec();
    buffer.resize(8, 0);
    for (_, at) in indices.iter().zip(1..) {
        buffer.extend(bytes(&[at as f32, 0.0, 0.0]));
    }
    let views = json!([view(0, 8), view(8, buffer.len() - 8)]);
    let accessor = json!({
        "componentType": FLOAT, "type": "VEC3", "count": count,
        "sparse": {
            "count": indices.len(),
            "indices": { "bufferView": 0, "componentType": 5121 },
            "values": { "bufferView": 1 }
        }
    });
    let file = file(
        json!({ "TRANSLATION": 0 }),
        json!([accessor]),
        views,
        &buffer,
    );
    (file, buffer)
}

#[test]
fn sparse_values_replace_others() {
    let (file, buffer) = sparse(&[1, 4], 6);
    let set = read(&file, &buffer).unwrap().plain.unwrap();
    let mut places: Vec<_> = (0..6)
        .map(|at| (set.tag(at).unwrap(), set.get(at).unwrap().translation.x))
        .collect();
    places.sort_by_key(|(number, _)| *number);
    assert_eq!(
        places,
        [(0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0), (4, 2.0), (5, 0.0)]
    );
    for (indices, part) in [
        (&[4, 1][..], "rise"),
        (&[1, 6], "less than 6"),
        (&[2, 2], "rise"),
    ] {
        let (file, buffer) = sparse(indices, 6);
        let text = problem(&file, &buffer);
        assert!(
            text.contains("TRANSLATION") && text.contains(part),
            "{text}"
        );
    }
    let (mut file, buffer) = sparse(&[1, 4], 6);
    file["bufferViews"][1]["byteStride"] = json!(4);
    let text = problem(&file, &buffer);
    assert!(
        text.contains("values of 12 bytes are 4 bytes apart"),
        "{text}"
    );
}

#[test]
fn counts_are_compared_with_the_bytes() {
    let buffer = bytes(&[0.0; 6]);
    let views = json!([view(0, 24)]);
    for count in [0, 3, 3_000_000_000, 1_000_000_000_000_000_000, u64::MAX] {
        for name in ["TRANSLATION", "SCALE"] {
            let accessors = json!([accessor(FLOAT, "VEC3", count)]);
            let text = problem(
                &file(json!({ (name): 0 }), accessors, views.clone(), &buffer),
                &buffer,
            );
            assert!(
                text.contains(name) && text.contains(&count.to_string()),
                "{text}"
            );
        }
        let accessors = json!([accessor(FLOAT, "VEC4", count)]);
        let text = problem(
            &file(json!({ "ROTATION": 0 }), accessors, views.clone(), &buffer),
            &buffer,
        );
        assert!(
            text.contains("ROTATION") && text.contains(&count.to_string()),
            "{text}"
        );
        let (file, buffer) = sparse(&[1], count.max(33));
        let text = problem(&file, &buffer);
        assert!(count <= 3 || text.contains("TRANSLATION has"), "{text}");
    }
    for (change, part) in [
        (("bufferView", json!(7)), "buffer view 7"),
        (("byteOffset", json!(1)), "from byte 1 on"),
        (
            ("byteOffset", json!(u64::MAX)),
            "from byte 18446744073709551615 on",
        ),
        (("componentType", json!(17)), "unknown type"),
        (("type", json!("MAT4")), "matrices"),
    ] {
        let mut accessor = accessor(FLOAT, "VEC3", 2);
        accessor[change.0] = change.1;
        let accessors = json!([accessor]);
        let text = problem(
            &file(json!({ "SCALE": 0 }), accessors, views.clone(), &buffer),
            &buffer,
        );
        assert!(text.contains("SCALE") && text.contains(part), "{text}");
    }
    let accessors = json!([accessor(FLOAT, "VEC3", 2)]);
    let far = json!([{ "buffer": 0, "byteOffset": u64::MAX, "byteLength": 24 }]);
    let text = problem(
        &file(json!({ "SCALE": 0 }), accessors, far, &buffer),
        &buffer,
    );
    assert!(text.contains("is not in the file's buffers"), "{text}");
}

/// Four instances: places, and whatever else.
fn with_attribute(name: &str, more: Value, values: &[u8]) -> Result<NodeSets, String> {
    let mut buffer = bytes(&[3.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let views = json!([view(0, 48), view(48, values.len())]);
    buffer.extend(values);
    let mut other = more;
    other["bufferView"] = json!(1);
    let accessors = json!([accessor(FLOAT, "VEC3", 4), other]);
    read(
        &file(
            json!({ "TRANSLATION": 0, (name): 1 }),
            accessors,
            views,
            &buffer,
        ),
        &buffer,
    )
}

/// The words of the instance that is at this place.
fn words(set: &InstanceSet, x: f32) -> Vec<u32> {
    let at = set
        .iter()
        .position(|instance| instance.translation.x == x)
        .unwrap();
    let words = set.data_size() / 4;
    set.data_words()[at * words..][..words].to_vec()
}

#[test]
fn instances_are_found_again_by_their_tags() {
    let ids = [7u8, 9, 200, 0];
    let scalar = json!({ "componentType": 5121, "type": "SCALAR", "count": 4 });
    let sets = with_attribute("_ID", scalar.clone(), &ids).unwrap();
    let set = sets.plain.unwrap();
    let tags = [3.0, 1.0, 2.0, 0.0].map(|x| words(&set, x));
    assert_eq!(tags, [[7], [9], [200], [0]]);
    // Exporters write them as floats, too.
    let float = json!({ "componentType": FLOAT, "type": "SCALAR", "count": 4 });
    let sets = with_attribute("_ID", float.clone(), &bytes(&[7.0, 9.0, 200.0, 0.0])).unwrap();
    assert_eq!(words(&sets.plain.unwrap(), 2.0), [200]);
    // Without ids, tags are the numbers in the file, before the set was sorted.
    let sets = with_attribute("_ID", float, &bytes(&[7.0, 9.5, 200.0, 0.0])).unwrap();
    assert!(
        sets.left_out[0].contains("_ID has Scalar of F32"),
        "{:?}",
        sets.left_out
    );
    let set = sets.plain.unwrap();
    assert_eq!(
        [3.0, 1.0, 2.0, 0.0].map(|x| words(&set, x)[0]),
        [0, 1, 2, 3]
    );
}

#[test]
fn other_attributes_follow_the_tag() {
    let color = json!({
        "componentType": 5121, "type": "VEC4", "count": 4, "normalized": true
    });
    let values: Vec<u8> = (0..16).collect();
    let sets = with_attribute("_COLOR_0", color, &values).unwrap();
    assert_eq!(sets.left_out, Vec::<String>::new());
    let set = sets.plain.unwrap();
    assert_eq!(words(&set, 1.0), [1, 0x0706_0504]);
    let vector = json!({ "componentType": FLOAT, "type": "VEC2", "count": 4 });
    let values = bytes(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let set = with_attribute("_WIND", vector, &values)
        .unwrap()
        .plain
        .unwrap();
    assert_eq!(words(&set, 2.0), [2, 4.0f32.to_bits(), 5.0f32.to_bits()]);
    let large = json!({ "componentType": FLOAT, "type": "VEC4", "count": 4 });
    let sets = with_attribute("_WIND", large, &[0; 64]).unwrap();
    assert!(
        sets.left_out[0].contains("_WIND needs 16 bytes"),
        "{:?}",
        sets.left_out
    );
    let short = json!({ "componentType": FLOAT, "type": "VEC2", "count": 3 });
    let sets = with_attribute("_WIND", short, &[0; 24]).unwrap();
    assert!(
        sets.left_out[0].contains("one per instance (4)"),
        "{:?}",
        sets.left_out
    );
    assert_eq!(sets.plain.unwrap().data_size(), 4);
}

/// Both sets have their own part of the data, and an error names the instance of the file.
#[test]
fn mirrored_instances_have_a_set() {
    let scales = [
        1.0, 1.0, 1.0, -1.0, 2.0, 3.0, -2.0, -1.0, 1.0, -1.0, -1.0, -1.0,
    ];
    let buffer = bytes(&scales);
    let accessors = json!([accessor(FLOAT, "VEC3", 4)]);
    let file = file(
        json!({ "SCALE": 0 }),
        accessors,
        json!([view(0, 48)]),
        &buffer,
    );
    let sets = read(&file, &buffer).unwrap();
    let numbers = |set: &InstanceSet| {
        let mut numbers = set.tags().unwrap().to_vec();
        numbers.sort_unstable();
        numbers
    };
    let (plain, mirrored) = (sets.plain.unwrap(), sets.mirrored.unwrap());
    assert_eq!(
        (numbers(&plain), numbers(&mirrored)),
        (vec![0, 2], vec![1, 3])
    );
    let mirror = bevy::math::Affine3A::from_scale(Vec3::new(-1.0, 1.0, 1.0));
    for (set, mesh) in [(plain, bevy::math::Affine3A::IDENTITY), (mirrored, mirror)] {
        for (instance, number) in set.iter().zip(set.tags().unwrap()) {
            let scale = Vec3::from_slice(&scales[*number as usize * 3..]);
            let expected = bevy::math::Affine3A::from_scale(scale);
            let found = instance.to_affine() * mesh;
            assert!(
                found.abs_diff_eq(expected, 1e-5),
                "{number}: {found:?} is not {expected:?}"
            );
        }
    }
    let mut scales = scales;
    scales[10] = f32::NAN;
    let text = problem(&file, &bytes(&scales));
    assert!(text.contains("instance 3"), "{text}");
}
