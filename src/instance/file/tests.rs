#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::instance::{
    GpuWritten, InstanceError, PackedQuat, ScaleKind,
    test_sets::{at, line},
};
use glam::{Quat, Vec3};
use proptest::prelude::*;

/// A set of `len` instances with these channels; no two instances are equal.
fn set(len: usize, scales: ScaleKind, words: usize, previous: bool) -> InstanceSet {
    let turned = |i: usize| at(i as f32 * 0.3 - 7.0).with_rotation(Quat::from_rotation_y(i as f32));
    let mut set = InstanceSet::from_transforms((0..len).map(turned)).unwrap();
    let scale = |i: usize| i as f32 * 0.1;
    set = match scales {
        ScaleKind::One => set,
        ScaleKind::Uniform => set.with_scales((0..len).map(scale).collect()).unwrap(),
        ScaleKind::NonUniform => {
            let scales = (0..len).map(|i| Vec3::new(scale(i), 1.0, 0.5));
            set.with_non_uniform_scales(scales.collect()).unwrap()
        }
    };
    let data = (0..len as u32).map(|i| !i);
    set = match words {
        0 => set,
        1 => set.with_tags(data.collect()).unwrap(),
        2 => set.with_data(data.map(|i| [i, i / 2]).collect()).unwrap(),
        3 => set
            .with_data(data.map(|i| [i, i / 2, 7]).collect())
            .unwrap(),
        _ => set
            .with_data(data.map(|i| [i, 0, i / 2, 7]).collect())
            .unwrap(),
    };
    set.keep_previous(previous)
}

/// The number of shapes.
const SHAPES: usize = 30;

/// Kind of scales, words of data, and whether a set keeps previous places.
fn shapes() -> impl Iterator<Item = (ScaleKind, usize, bool)> {
    let kinds = [ScaleKind::One, ScaleKind::Uniform, ScaleKind::NonUniform];
    (0..SHAPES).map(move |i| (kinds[i / 10], i % 5, i / 5 % 2 == 1))
}

/// Panics unless both sets have the same data, bit by bit.
fn assert_same(a: &InstanceSet, b: &InstanceSet) {
    let bits = |set: &InstanceSet| {
        let scales = bytemuck::cast_slice::<_, u32>(set.scale_floats()).to_vec();
        let scales = (set.scale_kind(), scales);
        let packed = bytemuck::cast_slice::<_, u32>(set.packed()).to_vec();
        (packed, scales, set.data_size(), set.data_words().to_vec())
    };
    assert_eq!(bits(a), bits(b));
    assert_eq!(a.bounds(), b.bounds());
    assert_eq!(a.keeps_previous(), b.keeps_previous());
}

/// A file with this payload, whole and with a right checksum.
fn sealed(payload: &[u8]) -> Vec<u8> {
    let file = FILE.write(payload.len(), |mut bytes| {
        bytes.extend(payload);
        Ok::<_, InstanceFileError>(bytes)
    });
    file.unwrap()
}

fn error(bytes: &[u8]) -> Option<InstanceFileError> {
    InstanceSet::from_bytes(bytes).err()
}

#[test]
fn every_set_comes_back_bit_by_bit() {
    for len in [0, 1, 2, 1000] {
        for (scales, words, previous) in shapes() {
            let set = set(len, scales, words, previous);
            let bytes = set.to_bytes().unwrap();
            let stride = 16 + 4 * scales.floats() + 4 * words;
            assert_eq!(bytes.len(), 32 + len * stride);
            let again = InstanceSet::from_bytes(&bytes).unwrap();
            assert_same(&again, &set);
            assert_ne!(again.lineage(), set.lineage());
            if len < 2 {
                continue;
            }
            let mut set = set;
            set.hide(1).unwrap();
            set.hide(0).unwrap();
            set.tighten_bounds();
            let bytes = set.to_bytes().unwrap();
            assert_eq!(bytes.len(), 32 + len * stride + 8);
            let again = InstanceSet::from_bytes(&bytes).unwrap();
            assert_same(&again, &set);
            assert!(again.hidden().eq([0, 1]) && again.iter().eq(set.iter()));
        }
    }
}

/// A float that is negative zero, subnormal or the largest stays what it is, and so does the end of
/// a set on several cores.
#[test]
fn odd_values_and_many_instances_come_back() {
    let odd = [-0.0, f32::MIN_POSITIVE / 2.0, f32::MAX, -f32::MAX];
    let odd = odd.map(|x| PackedInstance::new(Vec3::new(x, -x, 1.0), Quat::from_rotation_x(x)));
    let odd = InstanceSet::from_packed(odd.to_vec()).unwrap();
    let odd = odd.with_scales(vec![0.0, -0.0, f32::MAX, 1e-40]).unwrap();
    let many = set(200_000, ScaleKind::NonUniform, 3, false);
    for set in [odd, many] {
        let again = InstanceSet::from_bytes(&set.to_bytes().unwrap()).unwrap();
        assert_same(&again, &set);
    }
}

/// Files are exchanged and stored, so their layout may not change unnoticed.
#[test]
fn the_bytes_are_of_version_1() {
    let instance = PackedInstance {
        position: [1.0, -2.0, 0.5],
        rotation: PackedQuat::IDENTITY,
    };
    let set = InstanceSet::from_packed(vec![instance]).unwrap();
    let set = set
        .with_scales(vec![2.0])
        .unwrap()
        .with_tags(vec![0x0403_0201])
        .unwrap();
    let bytes = set.keep_previous(true).to_bytes().unwrap();
    let expected = [
        &b"GPUINSTS"[..],
        &[1, 0, 0, 0],
        &crc32fast::hash(&bytes[24..]).to_le_bytes(),
        &[32, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 7, 0, 0, 0],
        &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f],
        &PackedQuat::IDENTITY.to_bits().to_le_bytes(),
        &[0, 0, 0, 0x40],
        &[1, 2, 3, 4],
    ];
    assert_eq!(bytes, expected.concat());
    // Two words more: 2 * 32.
    let set = InstanceSet::from_packed(vec![instance]).unwrap();
    let set = set.with_data(vec![[1u8, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 4]]);
    let bytes = set.unwrap().to_bytes().unwrap();
    assert_eq!(bytes[28..32], [0x42, 0, 0, 0]);
    assert_eq!(bytes[48..], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 4]);
}

#[test]
fn a_damaged_file_is_an_error_wherever_it_is_damaged() {
    let good = set(9, ScaleKind::Uniform, 1, true).to_bytes().unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let found = error(&bad);
        match at {
            0..8 => assert!(matches!(
                found,
                Some(InstanceFileError::NotInstances { .. })
            )),
            8..12 => assert!(matches!(found, Some(InstanceFileError::Version { .. }))),
            16..24 => assert!(matches!(found, Some(InstanceFileError::Length { .. }))),
            _ => assert!(
                matches!(found, Some(InstanceFileError::Checksum { .. })),
                "{at}"
            ),
        }
        let found = error(&good[..at]);
        match at {
            0..8 => assert!(matches!(
                found,
                Some(InstanceFileError::NotInstances { .. })
            )),
            _ => assert!(
                matches!(found, Some(InstanceFileError::Length { .. })),
                "{at}"
            ),
        }
    }
    let mut long = good.clone();
    long.push(0);
    let (found, expected) = (long.len() as u64, good.len() as u64);
    assert_eq!(
        error(&long),
        Some(InstanceFileError::Length { found, expected })
    );
}

/// Whole files that another tool wrote.
#[test]
fn impossible_content_is_named() {
    let good = set(9, ScaleKind::Uniform, 1, false).to_bytes().unwrap();
    let changed = |at: usize, word: [u8; 4]| {
        let mut payload = good[HEAD..].to_vec();
        payload[at..at + 4].copy_from_slice(&word);
        error(&sealed(&payload))
    };
    let (size, nan) = (good.len() as u64, f32::NAN.to_le_bytes());
    let length = |expected| {
        Some(InstanceFileError::Length {
            found: size,
            expected,
        })
    };
    // One instance more, as many as a number can say, and channels that are not there.
    assert_eq!(changed(0, [10, 0, 0, 0]), length(size + 24));
    assert_eq!(changed(0, [255; 4]), length(32 + u64::from(u32::MAX) * 24));
    assert_eq!(changed(4, [2, 0, 0, 0]), length(size - 9 * 4));
    let unknown = InstanceFileError::UnknownParts { flags: 0x8000_0080 };
    assert_eq!(changed(4, [0x83, 0, 0, 0x80]), Some(unknown));
    // More data, of a file without tags and of one that has tags alone.
    let unknown = InstanceFileError::UnknownParts { flags: 0x20 };
    assert_eq!(changed(4, [0x21, 0, 0, 0]), Some(unknown));
    assert_eq!(changed(4, [0x63, 0, 0, 0]), length(size + 9 * 12));
    // A scale per axis, of a file without scales and of one that has one scale per instance.
    let unknown = InstanceFileError::UnknownParts { flags: 0x10 };
    assert_eq!(changed(4, [0x12, 0, 0, 0]), Some(unknown));
    assert_eq!(changed(4, [0x13, 0, 0, 0]), length(size + 9 * 8));
    for size in 0..8 {
        let found = error(&sealed(&good[HEAD..HEAD + size]));
        let (found_size, expected) = ((HEAD + size) as u64, 32);
        let length = InstanceFileError::Length {
            found: found_size,
            expected,
        };
        assert_eq!(found, Some(length));
    }
    // Values of instance 3 that no set has.
    let instance = |found: Option<InstanceFileError>| match found {
        Some(InstanceFileError::Instance(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        instance(changed(8 + 3 * 16 + 4, nan)),
        InstanceError::NonFinitePosition { index: 3, .. }
    ));
    assert!(matches!(
        instance(changed(8 + 3 * 16 + 12, [0; 4])),
        InstanceError::RotationNotNormalized { index: 3, .. }
    ));
    for scale in [f32::NAN, f32::INFINITY, -1.0] {
        assert!(matches!(
            instance(changed(8 + 9 * 16 + 3 * 4, scale.to_le_bytes())),
            InstanceError::InvalidScale { index: 3, .. }
        ));
    }
}

#[test]
fn a_set_whose_data_is_elsewhere_is_not_saved() {
    let mut released = line(5);
    drop(released.release());
    assert_eq!(released.to_bytes(), Err(InstanceFileError::Released));
    let written = GpuWritten::within(Vec3::ZERO, Vec3::ONE);
    let written = InstanceSet::gpu_written(4, written).unwrap();
    assert_eq!(written.to_bytes(), Err(InstanceFileError::GpuWritten));
}

#[test]
fn messages_say_what_to_do() {
    use InstanceFileError::{Checksum, GpuWritten, NotInstances, Released, UnknownParts, Version};
    let (found, supported) = (2, 1);
    let cases: [(InstanceFileError, &[&str]); 8] = [
        (
            NotInstances {
                found: b"\x89PNG".into(),
            },
            &["89, 50", "InstanceSet::to_bytes"],
        ),
        (
            Version { found, supported },
            &["version 2", "version 1", "update bevy_gpu_culling"],
        ),
        (
            Version {
                found: 0,
                supported,
            },
            &["version 0", "version 1", "save the set again"],
        ),
        (
            InstanceFileError::Length {
                found: 7,
                expected: 9,
            },
            &["7 bytes", "says 9", "damaged"],
        ),
        (
            Checksum {
                found: 0xab,
                expected: 1,
            },
            &["000000ab", "00000001", "damaged"],
        ),
        (
            UnknownParts { flags: 0x18 },
            &["0x18", "update bevy_gpu_culling"],
        ),
        (Released, &["after their upload", "MAIN_WORLD"]),
        (GpuWritten, &["on the GPU", "gpu_written", "save"]),
    ];
    for (error, parts) in cases {
        let text = error.to_string();
        assert!(
            parts.iter().all(|part| text.contains(part)),
            "{text:?} lacks one of {parts:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Whatever the bytes are, nothing panics, and what is read is a set like any other.
    #[test]
    fn no_file_panics(
        shape in 0..SHAPES,
        len in 0usize..40,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cut in any::<usize>(),
        seal in any::<bool>(),
    ) {
        let (scales, words, previous) = shapes().nth(shape).unwrap();
        let mut bytes = set(len, scales, words, previous).to_bytes().unwrap();
        for (at, byte) in changes {
            // Half of the changes are in head, count and flags.
            let range = if byte % 2 == 0 { HEAD + COUNT_AND_FLAGS } else { bytes.len() };
            bytes[at % range] = byte;
        }
        if cut % 4 == 0 {
            bytes.truncate(cut / 4 % bytes.len());
        }
        if seal && bytes.len() >= HEAD {
            bytes = sealed(&bytes[HEAD..]);
        }
        if let Ok(read) = InstanceSet::from_bytes(&bytes) {
            prop_assert!(read.scale_floats().len() == read.len() * read.scale_kind().floats());
            prop_assert_eq!(read.data_words().len() * 4, read.len() * read.data_size());
            let again = InstanceSet::from_transforms(read.iter()).unwrap();
            prop_assert_eq!(again.len(), read.len());
            assert_same(&InstanceSet::from_bytes(&read.to_bytes().unwrap()).unwrap(), &read);
        }
    }
}
