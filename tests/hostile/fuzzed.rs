//! What the fuzz targets (`fuzz/`) do with their inputs. The tests do it again with the inputs that
//! reached something new, in `tests/hostile/fuzzed/`.

use bevy_gpu_culling::{
    instance::InstanceSet,
    meshlet::{MeshLods, MeshletMesh},
};

/// A file with this magic number, version and payload, whole and with a right checksum: the fuzzer
/// would never guess one.
pub fn sealed(magic: &[u8; 8], version: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(crc32fast::hash(payload).to_le_bytes());
    bytes.extend((payload.len() as u64).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// What is read as instances can be written and read again.
pub fn instances(payload: &[u8]) {
    if let Ok(set) = InstanceSet::from_bytes(&sealed(b"GPUINSTS", 1, payload)) {
        let again = InstanceSet::from_bytes(&set.to_bytes().expect("it was read"));
        assert_eq!(again.expect("it was written").len(), set.len());
    }
}

/// What is read as meshlets can be drawn, and written and read again.
pub fn meshlets(payload: &[u8]) {
    if let Ok(mesh) = MeshletMesh::from_bytes(&sealed(b"GPUMSHLT", 2, payload)) {
        assert!(mesh.positions().iter().all(|place| place.is_finite()));
        let again = MeshletMesh::from_bytes(&mesh.to_bytes().expect("it was read"));
        assert!(again.expect("it was written") == mesh);
    }
}

/// What is read as levels of detail can be written and read again.
pub fn lods(payload: &[u8]) {
    if let Ok(lods) = MeshLods::from_bytes(&sealed(b"GPUMLODS", 1, payload)) {
        let again = MeshLods::from_bytes(&lods.to_bytes().expect("it was read"));
        assert!(again.expect("it was written") == lods);
    }
}
