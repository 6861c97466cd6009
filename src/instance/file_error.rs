//! What can be wrong with a file of instances.

use super::InstanceError;
use crate::file_head::HeadError;
use thiserror::Error;

/// Why an [`InstanceSet`](super::InstanceSet) could not be saved or loaded.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum InstanceFileError {
    /// Not a file of instances.
    #[error(
        "this is not a file of instances: it starts with {found:02x?}; write files with InstanceSet::to_bytes"
    )]
    NotInstances {
        /// The first bytes of the file.
        found: Vec<u8>,
    },
    /// A file of another version.
    #[error(
        "the file has version {found}, but this build reads version {supported}: {}",
        if found > supported { "update bevy_gpu_culling" } else { "save the set again" }
    )]
    Version {
        /// Version of the file.
        found: u32,
        /// The version that this build reads.
        supported: u32,
    },
    /// The file has parts that this build does not know.
    #[error(
        "the file has parts that this build does not know (flags {flags:#x}): update bevy_gpu_culling"
    )]
    UnknownParts {
        /// The flags of the unknown parts.
        flags: u32,
    },
    /// The file ends early, or goes on too long.
    #[error(
        "the file has {found} bytes, but its header says {expected}: it is damaged, get it again"
    )]
    Length {
        /// Number of bytes in the file.
        found: u64,
        /// Number of bytes that its header announces.
        expected: u64,
    },
    /// The file's content differs from what was written.
    #[error(
        "the file's checksum is {found:08x}, but its header says {expected:08x}: it is damaged, get it again"
    )]
    Checksum {
        /// Checksum of the content.
        found: u32,
        /// Checksum in the header.
        expected: u32,
    },
    /// A value that a set does not allow. Only files of other tools have such values.
    #[error("the file has a value that is not allowed: {0}")]
    Instance(#[from] InstanceError),
    /// The set was dropped on the CPU after its upload.
    #[error(
        "the set's instances were dropped on the CPU after their upload and cannot be saved; keep MAIN_WORLD in its asset_usage, or save it before it is drawn"
    )]
    Released,
    /// The set's instances are only on the GPU.
    #[error(
        "the set's instances are written on the GPU (InstanceSet::gpu_written) and cannot be saved; save what your compute pass makes them of"
    )]
    GpuWritten,
    /// The file could not be read or written.
    #[error("the file could not be read or written: {0}")]
    Io(String),
}

impl From<HeadError> for InstanceFileError {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::Foreign { found } => Self::NotInstances { found },
            HeadError::Version { found, supported } => Self::Version { found, supported },
            HeadError::Length { found, expected } => Self::Length { found, expected },
            HeadError::Checksum { found, expected } => Self::Checksum { found, expected },
        }
    }
}
