//! What can go wrong in the engine.

use crate::cull::{Compaction, CullingTier};

/// An error of the culling engine. None of them leaves the engine unusable.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CullError {
    /// The adapter lacks something that the tier needs.
    #[error(
        "the tier \"{tier}\" needs {missing}, which this adapter lacks: choose a lower tier or leave the choice to the plugin"
    )]
    TierUnsupported {
        /// The tier that was asked for.
        tier: CullingTier,
        /// The feature or limit, with its values.
        missing: String,
    },
    /// The adapter, or the tier that was asked for, lacks something that the compaction needs.
    #[error("the compaction \"{compaction}\" needs {missing}: choose another or \"auto\"")]
    CompactionUnsupported {
        /// The compaction that was asked for.
        compaction: Compaction,
        /// The feature, or the tier.
        missing: String,
    },
    /// A pipeline of the tier did not build.
    #[error("the pipeline {label} of the tier \"{tier}\" did not build: {message}")]
    Pipeline {
        /// The tier whose pipeline it is.
        tier: CullingTier,
        /// Label of the pipeline.
        label: &'static str,
        /// What the driver or the shader compiler said.
        message: String,
    },
    /// The adapter's buffers hold less than one block of instances.
    #[error(
        "this adapter binds {limit} bytes of storage, a block of instances needs {needed}: no set can be culled"
    )]
    BindingTooSmall {
        /// The adapter's limit in bytes.
        limit: u64,
        /// Bytes of one block.
        needed: u64,
    },
    /// More meshlets than one buffer binds.
    #[error(
        "a mesh of {meshlets} meshlets finds no room beside {held} others: this adapter binds {limit} meshlets at most"
    )]
    TooManyMeshlets {
        /// Meshlets of the mesh.
        meshlets: usize,
        /// Meshlets of all other meshes.
        held: u64,
        /// The most that the adapter binds.
        limit: u64,
    },
    /// A channel of an upload does not fit the set.
    #[error(
        "instances {first}..{end} are beyond the set's {len}: upload within the length that was reserved"
    )]
    UploadOutOfRange {
        /// First instance of the upload.
        first: usize,
        /// End of the upload.
        end: usize,
        /// Instances of the set.
        len: usize,
    },
    /// The set is not known to the engine.
    #[error("set {0} is not resident: upload it before it is culled")]
    UnknownSet(u64),
    /// A read of the GPU's results failed.
    #[error("the GPU's results could not be read: {0}")]
    Readback(String),
}
