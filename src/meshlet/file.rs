//! The file of a mesh of meshlets.
//!
//! The payload is: vertex count, attributes, indices, meshlets, levels.

use super::{
    Meshlet, MeshletError, MeshletLevel, MeshletMesh, NormalCone, VertexAttribute,
    payload::MeshFile,
};
use crate::file_head::FileKind;
use glam::Vec3;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

const FILE: MeshFile = MeshFile {
    kind: FileKind {
        magic: *b"GPUMSHLT",
        version: MeshletMesh::FILE_VERSION,
    },
    foreign: |found| MeshletError::NotMeshlets { found },
};

#[derive(Serialize, Deserialize)]
struct Content<'a> {
    vertex_count: u32,
    attributes: Cow<'a, [VertexAttribute]>,
    indices: Cow<'a, [u32]>,
    meshlets: Vec<Record>,
    levels: Vec<LevelRecord>,
}

/// A [`Meshlet`]: center and radius, cone, number of triangles. The start of its indices follows
/// from the previous meshlets.
#[derive(Serialize, Deserialize)]
struct Record([f32; 4], u32, u32);

/// A [`MeshletLevel`]: number of meshlets, error. Its first meshlet follows from the previous
/// levels.
#[derive(Serialize, Deserialize)]
struct LevelRecord(u32, f32);

impl MeshletMesh {
    /// File name extension.
    pub const FILE_EXTENSION: &str = "meshlets";
    /// Version of the files that this build writes; it reads no other version.
    pub const FILE_VERSION: u32 = 2;

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`MeshletError::Content`] if memory runs out.
    pub fn to_bytes(&self) -> Result<Vec<u8>, MeshletError> {
        let records = self.meshlets.iter().map(|meshlet| {
            Record(
                meshlet.center.extend(meshlet.radius).to_array(),
                meshlet.cone.to_bits(),
                meshlet.triangle_count,
            )
        });
        let levels = self.levels.iter();
        let levels = levels.map(|level| LevelRecord(level.meshlet_count, level.error));
        let content = Content {
            vertex_count: self.vertex_count,
            attributes: Cow::Borrowed(&self.attributes),
            indices: Cow::Borrowed(&self.indices),
            meshlets: records.collect(),
            levels: levels.collect(),
        };
        FILE.write(&content)
    }

    /// The mesh that [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`MeshletError::NotMeshlets`], [`MeshletError::Version`], [`MeshletError::Length`],
    /// [`MeshletError::Checksum`]; for a file from another tool, also every error of
    /// [`Self::from_parts`] and [`Self::with_levels`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MeshletError> {
        let content: Content<'_> = FILE.read(bytes)?;
        let mut first_index = 0u32;
        let meshlets = content
            .meshlets
            .iter()
            .map(|Record(sphere, cone, triangles)| {
                let meshlet = Meshlet {
                    center: Vec3::new(sphere[0], sphere[1], sphere[2]),
                    radius: sphere[3],
                    cone: NormalCone::from_bits(*cone),
                    first_index,
                    triangle_count: *triangles,
                };
                first_index = first_index.saturating_add(triangles.saturating_mul(3));
                meshlet
            });
        let meshlets = meshlets.collect();
        let mut first_meshlet = 0u32;
        let levels = content.levels.iter().map(|LevelRecord(count, error)| {
            let level = MeshletLevel {
                first_meshlet,
                meshlet_count: *count,
                error: *error,
            };
            first_meshlet = first_meshlet.saturating_add(*count);
            level
        });
        let levels = levels.collect();
        let mesh = Self::from_parts(
            content.vertex_count,
            content.attributes.into_owned(),
            content.indices.into_owned(),
            meshlets,
        )?;
        mesh.with_levels(levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        file_head::HEAD,
        meshlet::{LodSettings, MeshData, MeshletSettings},
    };

    fn mesh() -> Result<MeshletMesh, MeshletError> {
        let points: Vec<_> = (0..300)
            .map(|i| Vec3::new(i as f32, (i % 7) as f32, (i % 3) as f32))
            .collect();
        let indices = (0..298).flat_map(|i| [i, i + 1, i + 2]).collect();
        let settings = MeshletSettings {
            lods: Some(LodSettings::default()),
            ..Default::default()
        };
        MeshletMesh::build(&MeshData::from_positions(&points, Some(indices)), &settings)
    }

    #[test]
    fn a_file_comes_back_bit_by_bit() -> Result<(), MeshletError> {
        let mesh = mesh()?;
        assert!(mesh.levels().len() > 2);
        assert_eq!(MeshletMesh::from_bytes(&mesh.to_bytes()?)?, mesh);
        Ok(())
    }

    /// Version 1 had no levels.
    #[test]
    fn a_file_of_an_older_version_is_refused_with_advice() -> Result<(), MeshletError> {
        let mut old = mesh()?.to_bytes()?;
        old[8..12].copy_from_slice(&1u32.to_le_bytes());
        let error = MeshletMesh::from_bytes(&old).err();
        let text = error.map(|error| error.to_string()).unwrap_or_default();
        for part in ["version 1", "version 2", "build the file again"] {
            assert!(text.contains(part), "{text}");
        }
        Ok(())
    }

    #[test]
    fn a_damaged_file_is_an_error_wherever_it_is_damaged() -> Result<(), MeshletError> {
        let good = mesh()?.to_bytes()?;
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let error = MeshletMesh::from_bytes(&bad).err();
            match at {
                0..8 => assert!(matches!(error, Some(MeshletError::NotMeshlets { .. }))),
                8..12 => assert!(matches!(error, Some(MeshletError::Version { .. }))),
                16..24 => assert!(matches!(error, Some(MeshletError::Length { .. }))),
                _ => assert!(matches!(error, Some(MeshletError::Checksum { .. })), "{at}"),
            }
        }
        Ok(())
    }

    #[test]
    fn a_short_a_long_and_a_foreign_file_are_errors() -> Result<(), MeshletError> {
        let good = mesh()?.to_bytes()?;
        for len in 0..good.len() {
            let error = MeshletMesh::from_bytes(&good[..len]).err();
            match len {
                0..8 => assert!(matches!(error, Some(MeshletError::NotMeshlets { .. }))),
                _ => assert!(matches!(error, Some(MeshletError::Length { .. })), "{len}"),
            }
        }
        let mut long = good.clone();
        long.push(0);
        assert_eq!(
            MeshletMesh::from_bytes(&long).err(),
            Some(MeshletError::Length {
                found: good.len() as u64 + 1,
                expected: good.len() as u64
            })
        );
        let foreign = MeshletMesh::from_bytes(b"\x89PNG\r\n\x1a\n and so on").err();
        assert!(matches!(foreign, Some(MeshletError::NotMeshlets { found }) if found[1] == b'P'));
        Ok(())
    }

    /// A complete file, written by someone who does not know the rules.
    #[test]
    fn a_whole_file_with_impossible_content_is_an_error() -> Result<(), MeshletError> {
        let sealed = |mesh: &MeshletMesh| mesh.to_bytes();
        let good = mesh()?;
        let mut beyond = good.clone();
        beyond.indices[5] = 4000;
        let mut short = good.clone();
        short.meshlets.pop();
        let mut hollow = good.clone();
        hollow.meshlets[0].radius = f32::NAN;
        let mut bare = good.clone();
        bare.attributes[0].bytes.pop();
        let mut odd = good.clone();
        odd.attributes[0].format += 6;
        let mut beyond_all = good.clone();
        beyond_all.levels[1].meshlet_count += 1;
        let mut falling = good.clone();
        falling.levels[2].error = 0.0;
        let mut without = good.clone();
        without.levels.clear();
        let error = |mesh: &MeshletMesh| MeshletMesh::from_bytes(&sealed(mesh)?);
        assert!(matches!(
            error(&beyond).err(),
            Some(MeshletError::IndexOutOfRange { at: 5, .. })
        ));
        assert!(matches!(
            error(&short).err(),
            Some(MeshletError::MeshletRange { .. })
        ));
        assert!(matches!(
            error(&hollow).err(),
            Some(MeshletError::MeshletSphere { meshlet: 0, .. })
        ));
        assert!(matches!(
            error(&bare).err(),
            Some(MeshletError::AttributeLength { .. })
        ));
        assert_eq!(error(&odd).err(), Some(MeshletError::NoPositions));
        assert!(matches!(
            error(&beyond_all).err(),
            Some(MeshletError::LevelRange { .. })
        ));
        assert!(matches!(
            error(&falling).err(),
            Some(MeshletError::LevelError { level: 2, .. })
        ));
        assert!(matches!(
            error(&without).err(),
            Some(MeshletError::NoLevel { .. })
        ));
        // Content that is not a mesh at all.
        let mut bytes = good.to_bytes()?;
        bytes.truncate(HEAD);
        bytes.extend([0xff; 40]);
        let checksum = crc32fast::hash(&bytes[HEAD..]).to_le_bytes();
        bytes[12..16].copy_from_slice(&checksum);
        bytes[16..24].copy_from_slice(&40u64.to_le_bytes());
        assert!(matches!(
            MeshletMesh::from_bytes(&bytes).err(),
            Some(MeshletError::Content(_))
        ));
        Ok(())
    }
}
