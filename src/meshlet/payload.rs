//! Files whose payload is written by `postcard`.

use super::MeshletError;
use crate::file_head::{FileKind, HeadError};
use serde::{Deserialize, Serialize};

/// A kind of file of this room.
pub(super) struct MeshFile {
    /// Its head.
    pub kind: FileKind,
    /// The error of a file that begins with other bytes.
    pub foreign: fn(Vec<u8>) -> MeshletError,
}

impl MeshFile {
    /// The bytes of a file.
    pub fn write(&self, content: &impl Serialize) -> Result<Vec<u8>, MeshletError> {
        self.kind.write(0, |bytes| {
            postcard::to_extend(content, bytes)
                .map_err(|error| MeshletError::Content(error.to_string()))
        })
    }

    /// What [`Self::write`] wrote.
    pub fn read<'a, Content: Deserialize<'a>>(
        &self,
        bytes: &'a [u8],
    ) -> Result<Content, MeshletError> {
        let payload = self.kind.payload(bytes).map_err(|error| match error {
            HeadError::Foreign { found } => (self.foreign)(found),
            HeadError::Version { found, supported } => MeshletError::Version { found, supported },
            HeadError::Length { found, expected } => MeshletError::Length { found, expected },
            HeadError::Checksum { found, expected } => MeshletError::Checksum { found, expected },
        })?;
        postcard::from_bytes(payload).map_err(|error| MeshletError::Content(error.to_string()))
    }
}
