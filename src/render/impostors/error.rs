//! What can be wrong with photographs, and with files of them.

use crate::file_head::HeadError;
use thiserror::Error;

/// Why an impostor could not be photographed, saved or loaded.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ImpostorError {
    /// A setting of [`BakeImpostor`](super::BakeImpostor) is out of range.
    #[error("{setting} is {value}, and must be {expected}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The device has no textures of this size, or they would take too much memory.
    #[error(
        "{pixels} pixels per side, while the photographs are taken, are more than {limit}: lower \
         views or resolution"
    )]
    TooLarge {
        /// Pixels per side that are needed.
        pixels: u32,
        /// Pixels per side that there may be: 8,192, or less on some devices.
        limit: u32,
    },
    /// A mesh has another material than `StandardMaterial`.
    #[error(
        "a mesh has no MeshMaterial3d<StandardMaterial>, and no other material can be photographed: \
         spawn an InstanceImpostor with cards of your own"
    )]
    Material,
    /// A mesh moves with a skeleton.
    #[error(
        "a mesh has an InstanceAnimation, and cards do not move: spawn it without BakeImpostor"
    )]
    Animated,
    /// A mesh has no vertices on the CPU, or none at all.
    #[error("a mesh has no sphere around it: it needs positions")]
    NoSphere,
    /// A mesh, material or texture could not be loaded.
    #[error("{0} could not be loaded")]
    NotLoaded(String),
    /// The photographs show nothing.
    #[error(
        "the photographs were empty for {0} frames: is the material invisible, or does a camera \
         plugin of the app keep images from being drawn?"
    )]
    Empty(u32),
    /// The file begins with other bytes than one of [`ImpostorAtlas`](super::ImpostorAtlas).
    #[error("this is no file of an ImpostorAtlas: it begins with {found:?}")]
    Foreign {
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// The file has another version.
    #[error("the file has version {found}, and this build reads {supported}: bake it again")]
    Version {
        /// Its version.
        found: u32,
        /// The version that this build reads.
        supported: u32,
    },
    /// The file is cut off or too long.
    #[error("the file has {found} bytes instead of {expected}")]
    Length {
        /// Its size in bytes.
        found: u64,
        /// The size that its head says.
        expected: u64,
    },
    /// The file is damaged.
    #[error("the file has checksum {found:#010x} instead of {expected:#010x}")]
    Checksum {
        /// The checksum of what is there.
        found: u32,
        /// The checksum that its head says.
        expected: u32,
    },
    /// The file holds a number that no [`ImpostorAtlas`](super::ImpostorAtlas) has.
    #[error("the file's {0}")]
    Content(String),
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(String),
}

impl From<HeadError> for ImpostorError {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::Foreign { found } => Self::Foreign { found },
            HeadError::Version { found, supported } => Self::Version { found, supported },
            HeadError::Length { found, expected } => Self::Length { found, expected },
            HeadError::Checksum { found, expected } => Self::Checksum { found, expected },
        }
    }
}
