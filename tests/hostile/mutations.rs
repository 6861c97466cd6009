//! Valid files with random changes and a right checksum, as another tool might write them.

use crate::{MAX, fuzzed::sealed, memory};
use bevy::math::Vec3;
use bevy_gpu_culling::{
    instance::InstanceSet,
    meshlet::{LodSettings, MeshData, MeshLods, MeshletMesh, MeshletSettings},
    render::ImpostorAtlas,
};
use proptest::prelude::*;

/// Size of the head of files, in bytes.
const HEAD: usize = 24;

/// A bumpy sheet with a second attribute.
fn sheet() -> MeshData {
    let place = |at: u32| Vec3::new((at % 12) as f32, (at / 12) as f32, (at % 3) as f32 * 0.1);
    let points: Vec<_> = (0..144).map(place).collect();
    let squares = (0..11).flat_map(|y| (0..11).map(move |x| y * 12 + x));
    let indices = squares.flat_map(|at| [at, at + 1, at + 13, at, at + 13, at + 12]);
    let mut mesh = MeshData::from_positions(&points, Some(indices.collect()));
    let mut normals = mesh.attributes[0].clone();
    normals.id = 1;
    mesh.attributes.push(normals);
    mesh
}

/// Photographs of 2 by 2 views of 32 pixels, with their mips.
fn photographs() -> Vec<u8> {
    let sphere = [1.0f32, -2.0, 0.5, 3.0].map(f32::to_bits);
    let surface = [0.7f32, 0.1, 0.5].map(f32::to_bits);
    let words = [&sphere[..], &[2, 32, 1], &surface].concat();
    let mut payload: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    payload.resize(payload.len() + 2 * 21_760, 7);
    sealed(b"GPUIMPOS", 1, &payload)
}

#[test]
fn the_photographs_that_are_changed_are_good() {
    assert_eq!(ImpostorAtlas::from_bytes(&photographs()).err(), None);
}

/// Changes of a payload: bytes anywhere or near its start, and its end.
#[derive(Clone, Debug)]
struct Changes {
    bytes: Vec<(usize, u8)>,
    /// Bytes that are put in front of others: lengths become larger than they are.
    inserted: Option<(usize, Vec<u8>)>,
    cut: usize,
}

fn changes() -> impl Strategy<Value = Changes> {
    let bytes = proptest::collection::vec((any::<usize>(), any::<u8>()), 0..8);
    let claim = proptest::collection::vec(prop_oneof![Just(0xff), Just(0x7f), any::<u8>()], 1..10);
    let inserted = proptest::option::of((any::<usize>(), claim));
    (bytes, inserted, any::<usize>()).prop_map(|(bytes, inserted, cut)| Changes {
        bytes,
        inserted,
        cut,
    })
}

/// The file with the changes.
fn changed(good: &[u8], changes: &Changes) -> Vec<u8> {
    let mut payload = good[HEAD..].to_vec();
    for (at, byte) in &changes.bytes {
        // Counts and lengths are near the start.
        let range = if byte % 2 == 0 {
            48.min(payload.len())
        } else {
            payload.len()
        };
        payload[at % range] = *byte;
    }
    if let Some((at, bytes)) = &changes.inserted {
        let at = at % payload.len().min(200);
        payload.splice(at..at, bytes.iter().copied());
    }
    if changes.cut.is_multiple_of(4) {
        payload.truncate(changes.cut / 4 % payload.len());
    }
    let magic = good[..8].try_into().unwrap();
    let version = u32::from_le_bytes(good[8..12].try_into().unwrap());
    sealed(magic, version, &payload)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(400), failure_persistence: None, ..Default::default()
    })]

    /// What is read can be written again.
    #[test]
    fn files_of_instances(changes in changes(), scaled: bool, tagged: bool) {
        let places = (0..40).map(|at| Vec3::new(at as f32, 1.0, 0.0));
        let mut set = InstanceSet::from_transforms(places)?;
        if scaled {
            set = set.with_scales(vec![0.5; 40])?;
        }
        if tagged {
            set = set.with_data(vec![[1u32, 2, 3]; 40])?;
        }
        set.hide(7)?;
        let file = changed(&set.to_bytes()?, &changes);
        let (read, max) = memory::measure(|| InstanceSet::from_bytes(&file));
        prop_assert!(max < MAX, "{} bytes", max);
        if let Ok(read) = read {
            prop_assert!(read.len() * 16 <= file.len());
            prop_assert!(InstanceSet::from_bytes(&read.to_bytes()?).is_ok());
        }
    }

    /// What is read can be drawn.
    #[test]
    fn files_of_meshlets(changes in changes(), with_levels: bool) {
        let settings = MeshletSettings {
            lods: with_levels.then(LodSettings::default),
            ..Default::default()
        };
        let good = MeshletMesh::build(&sheet(), &settings)?.to_bytes()?;
        let file = changed(&good, &changes);
        let (read, max) = memory::measure(|| MeshletMesh::from_bytes(&file));
        prop_assert!(max < MAX, "{} bytes", max);
        if let Ok(read) = read {
            prop_assert!(read.positions().iter().all(|position| position.is_finite()));
            // Unknown formats and kinds of numbers are an error here, not a panic.
            for level in 0..read.levels().len() {
                let _ = read.level_to_mesh(level);
            }
            prop_assert_eq!(MeshletMesh::from_bytes(&read.to_bytes()?)?, read);
        }
    }

    #[test]
    fn files_of_impostors(changes in changes()) {
        let file = changed(&photographs(), &changes);
        let (read, max) = memory::measure(|| ImpostorAtlas::from_bytes(&file));
        prop_assert!(max < MAX, "{} bytes", max);
        if let Ok(read) = read {
            prop_assert_eq!(read.to_bytes(), file);
        }
    }

    #[test]
    fn files_of_levels(changes in changes()) {
        let good = MeshLods::build(&sheet(), &LodSettings::default())?.to_bytes()?;
        let file = changed(&good, &changes);
        let (read, max) = memory::measure(|| MeshLods::from_bytes(&file));
        prop_assert!(max < MAX, "{} bytes", max);
        if let Ok(read) = read {
            prop_assert_eq!(MeshLods::from_bytes(&read.to_bytes()?)?, read);
        }
    }
}
