//! What can go wrong in the engine.

use crate::cull::{Compaction, CullingTier, Expansion};

/// An error of the culling engine. None of them leaves the engine unusable.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CullError {
    /// The adapter lacks something that the tier needs.
    #[error("the tier \"{tier}\" needs {missing}, which this adapter lacks")]
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
    /// The adapter lacks something that the expansion needs.
    #[error(
        "the expansion \"{expansion}\" needs {missing}, which this adapter lacks: choose another"
    )]
    ExpansionUnsupported {
        /// The expansion that was asked for.
        expansion: Expansion,
        /// The features.
        missing: String,
    },
    /// The sources of an expansion spawn more items than indices of 32 bits can tell apart.
    #[error(
        "{sources} sources spawn {}{items} items, at most {limit} can be expanded at once: expand fewer sources at a time",
        if *items == u32::MAX { "at least " } else { "" }
    )]
    TooManyItems {
        /// Sources.
        sources: u32,
        /// Items; the greatest u32 stands for all beyond.
        items: u32,
        /// The most that are expanded.
        limit: u32,
    },
    /// The greatest source, times the number of sources, is more than a dispatch can have.
    #[error(
        "{sources} sources with up to {most} items need more than {limit} threads with \"fixed-max\": choose another expansion"
    )]
    TooManyThreads {
        /// Sources.
        sources: u32,
        /// Items of the greatest source.
        most: u32,
        /// The most threads.
        limit: u32,
    },
    /// The arena of an expansion is larger than a binding.
    #[error(
        "the expansion \"{expansion}\" needs {bytes} bytes for {sources} sources, this adapter binds {limit}: expand fewer sources at a time, or choose another"
    )]
    ExpansionTooLarge {
        /// The expansion.
        expansion: Expansion,
        /// The most sources.
        sources: u32,
        /// Bytes of the arena.
        bytes: u64,
        /// The adapter's limit in bytes.
        limit: u64,
    },
    /// The arena of an expansion holds less than its entries: items are missing until it has grown.
    #[error(
        "{needed} entries of the expansion, room for {capacity}: items are missing until `Expander::grow` has made room"
    )]
    ExpansionOverflow {
        /// Entries that are needed.
        needed: u32,
        /// Entries that the arena holds.
        capacity: u32,
    },
    /// The counts of an expansion are fewer than its sources.
    #[error(
        "the buffer of counts holds {counts}, but there may be {sources} sources: give it 4 bytes per source"
    )]
    TooFewCounts {
        /// Counts that the buffer holds.
        counts: u64,
        /// The most sources.
        sources: u32,
    },
    /// An expansion reads its counts from a buffer, and there is none.
    #[error(
        "there is no buffer of counts: set `ExpandInput::counts`, or count with `ExpanderOptions::counting`"
    )]
    NoCounts,
    /// The number of sources is not in its buffer.
    #[error(
        "the number of sources is at byte {offset} of a buffer of {bytes} bytes: the offset must be a multiple of 4, and at most {}",
        bytes.saturating_sub(4)
    )]
    SourceCountOffset {
        /// The offset as given.
        offset: u64,
        /// Bytes of the buffer.
        bytes: u64,
    },
    /// A pipeline of the tier did not build.
    #[error(
        "the pipeline {label} of the tier \"{tier}\" did not build: {message}. Please report this, with the adapter's name"
    )]
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
        "a mesh of {meshlets} meshlets does not fit beside {held} others: this adapter binds {limit} meshlets at most. Draw it by Mesh3d"
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
    /// The tier `Cpu` cannot see what the GPU writes.
    #[error(
        "set {0} is written on the GPU, which the tier \"cpu\" cannot cull: it is not drawn; choose another tier"
    )]
    WrittenOnCpu(u64),
    /// The device refused to make something, or ran out of memory.
    #[error("the GPU refused {what}: {message}")]
    Gpu {
        /// What was to be made.
        what: &'static str,
        /// What the device said.
        message: String,
    },
    /// A read of the GPU's results failed.
    #[error("the GPU's results could not be read: {0}")]
    Readback(String),
}
