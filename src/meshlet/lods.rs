//! The levels of detail of a mesh, and their file.
//!
//! The payload is, per level: vertex count, attributes, indices, error.

use super::{
    LodSettings, MeshData, MeshletError, SimplifiedMesh, VertexAttribute,
    data::{check_attributes, check_indices},
    payload::MeshFile,
};
use crate::file_head::FileKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The levels of detail of a mesh, from fine to coarse, without the full mesh.
///
/// ```
/// # use bevy_gpu_culling::meshlet::{LodSettings, MeshData, MeshLods, MeshletError};
/// # fn save(mesh: &MeshData) -> Result<(), MeshletError> {
/// let lods = MeshLods::build(mesh, &LodSettings::default())?;
/// let bytes = lods.to_bytes()?;
/// assert_eq!(MeshLods::from_bytes(&bytes)?, lods);
/// # Ok(())
/// # }
/// ```
#[cfg_attr(
    feature = "bevy",
    derive(bevy::asset::Asset, bevy::reflect::Reflect),
    reflect(opaque),
    reflect(Clone, Debug, PartialEq)
)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshLods {
    levels: Vec<SimplifiedMesh>,
}

const FILE: MeshFile = MeshFile {
    kind: FileKind {
        magic: *b"GPUMLODS",
        version: MeshLods::FILE_VERSION,
    },
    foreign: |found| MeshletError::NotLods { found },
};

/// A level in a file.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    vertex_count: u32,
    attributes: Cow<'a, [VertexAttribute]>,
    indices: Cow<'a, [u32]>,
    error: f32,
}

impl MeshLods {
    /// Largest number of levels.
    pub const MAX: usize = LodSettings::MAX_LEVELS as usize;
    /// File name extension.
    pub const FILE_EXTENSION: &str = "lods";
    /// Version of the files that this build writes; it reads no other version.
    pub const FILE_VERSION: u32 = 1;

    /// Makes the levels of a mesh ([`MeshData::simplified`]).
    ///
    /// # Errors
    /// Same as [`MeshData::simplified`].
    pub fn build(mesh: &MeshData, settings: &LodSettings) -> Result<Self, MeshletError> {
        Self::from_levels(mesh.simplified(settings)?)
    }

    /// Levels that another tool made.
    ///
    /// # Errors
    /// [`MeshletError`]: more than [`Self::MAX`] levels; an error that is not finite or less than
    /// the error of the level before; a level without triangles or positions, with an index without
    /// a vertex, with an attribute of another length, or with vertices that no GPU can read (same
    /// as [`MeshletMesh::from_parts`](super::MeshletMesh::from_parts)).
    pub fn from_levels(levels: Vec<SimplifiedMesh>) -> Result<Self, MeshletError> {
        if levels.len() > Self::MAX {
            return Err(MeshletError::TooLarge {
                what: "levels of detail",
                count: levels.len(),
                limit: Self::MAX as u32,
            });
        }
        let mut min = 0.0;
        for (level, SimplifiedMesh { data, error }) in (1..).zip(&levels) {
            check_indices(data.indices.as_deref(), data.vertex_count)?;
            check_attributes(&data.attributes, data.vertex_count)?;
            // Not a number is no error, either.
            if !(min..f32::INFINITY).contains(error) {
                return Err(MeshletError::LevelError {
                    level,
                    error: *error,
                    min,
                });
            }
            min = *error;
        }
        Ok(Self { levels })
    }

    /// The levels, from fine to coarse.
    #[must_use]
    pub fn levels(&self) -> &[SimplifiedMesh] {
        &self.levels
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`MeshletError::Content`] if memory runs out.
    pub fn to_bytes(&self) -> Result<Vec<u8>, MeshletError> {
        let records = self.levels.iter().map(|SimplifiedMesh { data, error }| {
            let indices = data.indices.as_deref().map_or_else(
                || Cow::Owned((0..data.vertex_count).collect()),
                Cow::Borrowed,
            );
            Record {
                vertex_count: data.vertex_count,
                attributes: Cow::Borrowed(&data.attributes),
                indices,
                error: *error,
            }
        });
        FILE.write(&records.collect::<Vec<_>>())
    }

    /// The levels that [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`MeshletError::NotLods`], [`MeshletError::Version`], [`MeshletError::Length`],
    /// [`MeshletError::Checksum`], [`MeshletError::Content`]; for a file from another tool, also
    /// every error of [`Self::from_levels`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MeshletError> {
        let records: Vec<Record<'_>> = FILE.read(bytes)?;
        let levels = records.into_iter().map(|record| SimplifiedMesh {
            data: MeshData {
                vertex_count: record.vertex_count,
                attributes: record.attributes.into_owned(),
                indices: Some(record.indices.into_owned()),
            },
            error: record.error,
        });
        Self::from_levels(levels.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_head::HEAD;
    use glam::Vec3;
    use proptest::prelude::*;

    /// Levels of a bumpy sheet with a second attribute.
    fn lods() -> Result<MeshLods, MeshletError> {
        let place = |at: u32| Vec3::new((at % 16) as f32, (at / 16) as f32, (at % 3) as f32 * 0.1);
        let points: Vec<_> = (0..256).map(place).collect();
        let squares = (0..15).flat_map(|y| (0..15).map(move |x| y * 16 + x));
        let indices = squares.flat_map(|at| [at, at + 1, at + 17, at, at + 17, at + 16]);
        let mut mesh = MeshData::from_positions(&points, Some(indices.collect()));
        let mut normals = mesh.attributes[0].clone();
        normals.id = 1;
        mesh.attributes.push(normals);
        MeshLods::build(&mesh, &LodSettings::default())
    }

    /// A file with this payload, whole and with a right checksum.
    fn sealed(payload: &[u8]) -> Result<Vec<u8>, MeshletError> {
        let mut bytes = FILE.write(&())?;
        bytes.truncate(HEAD);
        bytes.extend(payload);
        bytes[12..16].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        bytes[16..24].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        Ok(bytes)
    }

    #[test]
    fn a_file_comes_back_bit_by_bit() -> Result<(), MeshletError> {
        let lods = lods()?;
        assert!(lods.levels().len() >= 3, "{}", lods.levels().len());
        assert_eq!(MeshLods::from_bytes(&lods.to_bytes()?)?, lods);
        let none = MeshLods::default();
        assert_eq!(MeshLods::from_bytes(&none.to_bytes()?)?, none);
        Ok(())
    }

    #[test]
    fn a_damaged_a_short_a_long_and_a_foreign_file_are_errors() -> Result<(), MeshletError> {
        use MeshletError::{Checksum, Length, NotLods, Version};
        let good = lods()?.to_bytes()?;
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let error = MeshLods::from_bytes(&bad).err();
            match at {
                0..8 => assert!(matches!(error, Some(NotLods { .. }))),
                8..12 => assert!(matches!(error, Some(Version { .. }))),
                16..24 => assert!(matches!(error, Some(Length { .. }))),
                _ => assert!(matches!(error, Some(Checksum { .. })), "{at}"),
            }
            let error = MeshLods::from_bytes(&good[..at]).err();
            match at {
                0..8 => assert!(matches!(error, Some(NotLods { .. }))),
                _ => assert!(matches!(error, Some(Length { .. })), "{at}"),
            }
        }
        let mut long = good;
        long.push(0);
        let error = MeshLods::from_bytes(&long).err();
        assert!(matches!(error, Some(Length { .. })));
        let meshlets = MeshLods::from_bytes(b"GPUMSHLT and so on").err();
        let text = meshlets.map(|error| error.to_string()).unwrap_or_default();
        assert!(text.contains("levels of detail"), "{text}");
        Ok(())
    }

    #[test]
    fn levels_that_do_not_fit_together_are_named() -> Result<(), MeshletError> {
        let good = lods()?.levels;
        let refuse = |change: fn(&mut Vec<SimplifiedMesh>)| {
            let mut levels = good.clone();
            change(&mut levels);
            // The same in a file.
            let file = MeshLods {
                levels: levels.clone(),
            };
            let of_file = file
                .to_bytes()
                .and_then(|bytes| MeshLods::from_bytes(&bytes));
            let error = MeshLods::from_levels(levels).err();
            let text = |error: Option<MeshletError>| error.map(|error| error.to_string());
            assert_eq!(text(of_file.err()), text(error.clone()));
            text(error).unwrap_or_default()
        };
        for (text, parts) in [
            (
                refuse(|levels| levels[1].error = f32::NAN),
                ["level 2", "NaN"],
            ),
            (refuse(|levels| levels[0].error = -1.0), ["level 1", "-1"]),
            (
                refuse(|levels| levels[2].error = 0.0),
                ["level 3", "at least"],
            ),
            (
                refuse(|levels| levels[0].error = f32::INFINITY),
                ["level 1", "inf"],
            ),
            (
                refuse(|levels| *levels = vec![levels[0].clone(); 8]),
                ["8 levels", "7"],
            ),
            (
                refuse(|levels| levels[0].data.vertex_count += 1),
                ["attribute", "bytes"],
            ),
            (
                refuse(|levels| levels[1].data.attributes.clear()),
                ["positions", "f32"],
            ),
            (
                refuse(|levels| levels[1].data.indices = Some(vec![0, 1, 9999])),
                ["9999", "vertices"],
            ),
            (
                refuse(|levels| levels[1].data.indices = Some(vec![])),
                ["0 indices", "triangle"],
            ),
        ] {
            assert!(parts.iter().all(|part| text.contains(part)), "{text:?}");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Bytes that another tool wrote: whatever they are, nothing panics, and what is read can
        /// be drawn.
        #[test]
        fn no_payload_panics(
            flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8),
            cut in any::<usize>(),
        ) {
            let good = lods()?.to_bytes()?;
            let mut payload = good[HEAD..].to_vec();
            for (at, byte) in flips {
                // Lengths and counts are near the start; the rest is mostly positions.
                let range = if byte % 2 == 0 { 64 } else { payload.len() };
                payload[at % range] = byte;
            }
            if cut % 4 == 0 {
                payload.truncate(cut / 4 % payload.len());
            }
            if let Ok(read) = MeshLods::from_bytes(&sealed(&payload)?) {
                prop_assert!(MeshLods::from_levels(read.levels).is_ok());
            }
        }
    }
}
