//! The head of files: what they are, their version, and a checksum.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | the kind of the file |
//! | 4 | its version, little-endian like all numbers |
//! | 4 | CRC-32 (IEEE) of the payload |
//! | 8 | size of the payload, in bytes |
//! | rest | the payload, by `postcard` |

use super::MeshletError;
use serde::{Deserialize, Serialize};

/// Size of the head, in bytes.
pub(super) const HEAD: usize = 24;

/// A kind of file.
pub(super) struct FileKind {
    /// The first bytes of each file.
    pub magic: [u8; 8],
    /// The version that is written; no other is read.
    pub version: u32,
    /// The error of a file that begins with other bytes.
    pub foreign: fn(Vec<u8>) -> MeshletError,
}

impl FileKind {
    /// The bytes of a file.
    pub fn write(&self, content: &impl Serialize) -> Result<Vec<u8>, MeshletError> {
        let mut bytes = postcard::to_extend(content, vec![0; HEAD])
            .map_err(|error| MeshletError::Content(error.to_string()))?;
        let (head, content) = bytes.split_at_mut(HEAD);
        head[..8].copy_from_slice(&self.magic);
        head[8..12].copy_from_slice(&self.version.to_le_bytes());
        head[12..16].copy_from_slice(&crc32fast::hash(content).to_le_bytes());
        head[16..].copy_from_slice(&(content.len() as u64).to_le_bytes());
        Ok(bytes)
    }

    /// What [`Self::write`] wrote.
    pub fn read<'a, Content: Deserialize<'a>>(
        &self,
        bytes: &'a [u8],
    ) -> Result<Content, MeshletError> {
        let found = bytes.get(..8).unwrap_or(bytes);
        if found != self.magic {
            return Err((self.foreign)(found.to_vec()));
        }
        let Some((head, content)) = bytes.split_at_checked(HEAD) else {
            return Err(MeshletError::Length {
                found: bytes.len() as u64,
                expected: HEAD as u64,
            });
        };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| head[at + i]));
        if word(8) != self.version {
            return Err(MeshletError::Version {
                found: word(8),
                supported: self.version,
            });
        }
        let expected = u64::from(word(16)) | u64::from(word(20)) << 32;
        if content.len() as u64 != expected {
            return Err(MeshletError::Length {
                found: content.len() as u64,
                expected,
            });
        }
        let checksum = crc32fast::hash(content);
        if checksum != word(12) {
            return Err(MeshletError::Checksum {
                found: checksum,
                expected: word(12),
            });
        }
        postcard::from_bytes(content).map_err(|error| MeshletError::Content(error.to_string()))
    }
}
