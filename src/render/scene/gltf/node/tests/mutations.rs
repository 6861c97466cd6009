//! A good file with random changes.

use super::*;
use proptest::{prelude::*, test_runner::FileFailurePersistence};

/// A good file with every kind of accessor.
fn good() -> (Value, Vec<u8>) {
    let mut buffer: Vec<u8> = bytes(&[1.0; 36]);
    buffer.extend([0, 2, 7, 0, 5, 6, 8, 9, 10, 11, 12, 13]);
    let accessors = json!([
        { "bufferView": 0, "byteOffset": 0, "componentType": FLOAT, "type": "VEC3", "count": 6 },
        { "bufferView": 1, "componentType": 5121, "type": "VEC4", "count": 6, "normalized": true },
        {
            "componentType": FLOAT, "type": "VEC3", "count": 6,
            "sparse": {
                "count": 2,
                "indices": { "bufferView": 2, "byteOffset": 0, "componentType": 5121 },
                "values": { "bufferView": 0, "byteOffset": 24 }
            }
        },
        { "bufferView": 2, "componentType": 5123, "type": "SCALAR", "count": 6 }
    ]);
    let views = json!([
        { "buffer": 0, "byteOffset": 0, "byteLength": 144, "byteStride": 24 },
        view(0, 24),
        view(144, 12)
    ]);
    let attributes = json!({ "TRANSLATION": 0, "ROTATION": 1, "SCALE": 2, "_ID": 3, "_MORE": 3 });
    (file(attributes, accessors, views, &buffer), buffer)
}

/// Numbers at which something changes.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    24,
    255,
    5121,
    5125,
    5126,
    65_536,
    4_294_967_295,
    3_000_000_000,
    u64::MAX,
];

/// Replaces numbers and words, and drops values.
fn change(value: &mut Value, changes: &mut impl Iterator<Item = u16>) {
    match value {
        Value::Object(map) => {
            for (_, value) in map.iter_mut() {
                change(value, changes);
            }
            if changes.next().is_some_and(|code| code % 64 == 0) {
                let first = map.keys().next().cloned();
                first.map(|key| map.remove(&key));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| change(value, changes)),
        Value::Number(_) => {
            if let Some(code) = changes.next().filter(|code| code % 8 == 0) {
                *value = json!(NUMBERS[usize::from(code / 8) % NUMBERS.len()]);
            }
        }
        Value::String(text) if text.starts_with("VEC") => {
            if let Some(code) = changes.next().filter(|code| code % 16 == 0) {
                let kinds = ["SCALAR", "VEC2", "VEC3", "VEC4", "MAT4", "TENSOR"];
                *text = kinds[usize::from(code / 16) % kinds.len()].to_owned();
            }
        }
        _ => {}
    }
}

#[test]
fn the_file_that_is_changed_is_good() {
    let (file, buffer) = good();
    let sets = read(&file, &buffer).unwrap();
    assert_eq!(sets.left_out, Vec::<String>::new());
    assert_eq!(
        sets.plain.map(|set| (set.len(), set.data_size())),
        Some((6, 8))
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(2000),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"), "/tests/hostile/seeds/gltf.txt"
        )))),
        ..Default::default()
    })]

    /// Whatever a file says, nothing panics, and no set has more instances than the buffer bytes.
    #[test]
    fn no_file_panics(
        changes in proptest::collection::vec(any::<u16>(), 60),
        noise in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        len in 0usize..160,
    ) {
        let (mut file, mut buffer) = good();
        change(&mut file, &mut changes.into_iter());
        for (at, byte) in noise {
            let len = buffer.len();
            buffer[at % len] = byte;
        }
        buffer.truncate(if len % 3 == 0 { len } else { 156 });
        if let Ok(sets) = read(&file, &buffer) {
            let sets = [sets.plain, sets.mirrored];
            let all: usize = sets.iter().flatten().map(InstanceSet::len).sum();
            prop_assert!(all > 0 && all <= buffer.len());
        }
    }
}
