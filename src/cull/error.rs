//! What can go wrong in the engine.

use crate::cull::CullingTier;

/// An error of the culling engine. The engine remains usable after each of them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CullError {
    /// The adapter lacks something that the tier needs.
    #[error("the tier \"{tier}\" needs {missing}, which this adapter lacks")]
    TierUnsupported {
        /// The requested tier.
        tier: CullingTier,
        /// The missing feature or limit, with its values.
        missing: String,
    },
    /// The adapter, or the requested tier, lacks something that the compaction needs.
    #[error("the compaction \"{compaction}\" needs {missing}: choose another or \"auto\"")]
    CompactionUnsupported {
        /// Name of the requested compaction.
        compaction: &'static str,
        /// The missing feature, or the tier.
        missing: String,
    },
    /// The adapter lacks something that the expansion needs.
    #[error(
        "the expansion \"{expansion}\" needs {missing}, which this adapter lacks: choose another"
    )]
    ExpansionUnsupported {
        /// Name of the requested expansion.
        expansion: &'static str,
        /// The missing features.
        missing: String,
    },
    /// The adapter binds too few buffers for the expansion of meshlets.
    #[error(
        "the expansion \"{expansion}\" of meshlets needs {needed} storage buffers per shader stage, but this adapter has {limit}: choose \"division\", which needs 8"
    )]
    MeshletExpansionUnsupported {
        /// Name of the requested expansion.
        expansion: &'static str,
        /// Number of storage buffers that it needs.
        needed: u32,
        /// The adapter's limit.
        limit: u32,
    },
    /// The sources of an expansion spawn more items than 32-bit indices can count.
    #[error(
        "{sources} sources spawn {}{items} items, but at most {limit} can be expanded at once: expand fewer sources at a time",
        if *items == u32::MAX { "at least " } else { "" }
    )]
    TooManyItems {
        /// Number of sources.
        sources: u32,
        /// Number of items; the greatest u32 stands for anything beyond.
        items: u32,
        /// Largest number of items that can be expanded.
        limit: u32,
    },
    /// The largest source's number of items, times the number of sources, exceeds the threads of a
    /// dispatch.
    #[error(
        "{sources} sources with up to {max} items need more than {limit} threads with \"fixed-max\": choose another expansion"
    )]
    TooManyThreads {
        /// Number of sources.
        sources: u32,
        /// Number of items of the largest source.
        max: u32,
        /// Largest number of threads.
        limit: u32,
    },
    /// The arena of an expansion is larger than a binding.
    #[error(
        "the expansion \"{expansion}\" needs {bytes} bytes for {sources} sources, but this adapter binds {limit}: expand fewer sources at a time, or choose another"
    )]
    ExpansionTooLarge {
        /// Name of the expansion.
        expansion: &'static str,
        /// Largest number of sources.
        sources: u32,
        /// Size of the arena, in bytes.
        bytes: u64,
        /// The adapter's limit, in bytes.
        limit: u64,
    },
    /// The arena of an expansion holds fewer entries than needed: items are missing until it has
    /// grown.
    #[error(
        "the expansion needs {needed} entries, but its arena holds {capacity}: items are missing until `Expander::grow` enlarges it"
    )]
    ExpansionOverflow {
        /// Number of needed entries.
        needed: u32,
        /// Number of entries that the arena holds.
        capacity: u32,
    },
    /// The buffer of counts of an expansion is too short for its sources.
    #[error(
        "the buffer of counts holds {counts} counts, but there may be {sources} sources: give it 4 bytes per source"
    )]
    TooFewCounts {
        /// Number of counts that the buffer holds.
        counts: u64,
        /// Largest number of sources.
        sources: u32,
    },
    /// An expansion reads its counts from a buffer, but there is none.
    #[error(
        "there is no buffer of counts: set `ExpandInput::counts`, or count with `ExpanderOptions::counting`"
    )]
    NoCounts,
    /// The offset of the number of sources is not valid in its buffer.
    #[error(
        "the number of sources is at byte {offset} of a buffer of {bytes} bytes: the offset must be a multiple of 4 and at most {}",
        bytes.saturating_sub(4)
    )]
    SourceCountOffset {
        /// The offset as given, in bytes.
        offset: u64,
        /// Size of the buffer, in bytes.
        bytes: u64,
    },
    /// A pipeline of the tier failed to build.
    #[error(
        "the pipeline {label} of the tier \"{tier}\" failed to build: {message}. Please report this, with the adapter's name"
    )]
    Pipeline {
        /// The tier that the pipeline belongs to.
        tier: CullingTier,
        /// Label of the pipeline.
        label: &'static str,
        /// The message of the driver or of the shader compiler.
        message: String,
    },
    /// The adapter's buffers hold less than one block of instances.
    #[error(
        "this adapter binds {limit} bytes of storage, but a block of instances needs {needed}: no set can be drawn"
    )]
    BindingTooSmall {
        /// The adapter's limit, in bytes.
        limit: u64,
        /// Size of a block, in bytes.
        needed: u64,
    },
    /// There are more meshlets than one binding holds.
    #[error(
        "a mesh of {meshlets} meshlets does not fit beside {held} others: this adapter binds {limit} meshlets at most. Draw it by Mesh3d"
    )]
    TooManyMeshlets {
        /// Number of meshlets of the mesh.
        meshlets: usize,
        /// Number of meshlets of all other meshes.
        held: u64,
        /// Largest number of meshlets that the adapter binds.
        limit: u64,
    },
    /// An upload does not fit the set.
    #[error(
        "instances {first}..{end} are beyond the set's length of {len}: upload within the reserved length"
    )]
    UploadOutOfRange {
        /// First instance of the upload.
        first: usize,
        /// End of the upload.
        end: usize,
        /// Number of instances in the set.
        len: usize,
    },
    /// The scales that are uploaded are of another kind than the set's.
    #[error(
        "{numbers} numbers are not scales of a set that has {per_instance} per instance: reserve the set with the \
         kind of scales that is uploaded"
    )]
    ScaleNumbers {
        /// Number of numbers given.
        numbers: usize,
        /// Numbers per instance of the set; 0 if it has no scales.
        per_instance: usize,
    },
    /// The data that is uploaded has another number of words per instance than the set's.
    #[error(
        "{words} words are not data of a set that has {per_instance} words per instance: reserve the set with the \
         number of words that is uploaded"
    )]
    DataWords {
        /// Number of words given.
        words: usize,
        /// Words per instance of the set; 0 if it has no data.
        per_instance: usize,
    },
    /// The set is not known to the engine.
    #[error("set {0} is not resident: upload it before a frame tests it")]
    UnknownSet(u64),
    /// The `Cpu` tier cannot see what the GPU writes.
    #[error(
        "set {0} is written on the GPU, which the tier \"cpu\" cannot cull: it is not drawn; choose another tier"
    )]
    WrittenOnCpu(u64),
    /// A viewport has no pixels, or is not within the depth texture.
    #[error(
        "a viewport of {} x {} pixels from ({}, {}) is empty or not within the depth texture of {} x {} pixels: nothing is hidden in the view; give the viewport of the texture that the view draws to",
        size[0], size[1], first[0], first[1], texture[0], texture[1]
    )]
    ViewportOutside {
        /// The viewport's first pixel.
        first: [u32; 2],
        /// Size of the viewport, in pixels.
        size: [u32; 2],
        /// Size of the texture, in pixels.
        texture: [u32; 2],
    },
    /// A depth pyramid is larger than a binding.
    #[error(
        "the depth pyramid of {} x {} pixels needs {bytes} bytes, but this adapter binds {limit}: nothing is hidden in the view; make its viewport smaller",
        size[0], size[1]
    )]
    PyramidTooLarge {
        /// Size of the viewport, in pixels.
        size: [u32; 2],
        /// Size of the pyramid, in bytes.
        bytes: u64,
        /// The adapter's limit, in bytes.
        limit: u64,
    },
    /// The device refused to create something, or ran out of memory.
    #[error("the GPU refused {what}: {message}")]
    Gpu {
        /// What the engine tried to create.
        what: &'static str,
        /// The message of the device.
        message: String,
    },
    /// A tier's kernels cull a small scene wrongly.
    #[error(
        "the kernels of the tier \"{tier}\" ({compaction}) keep {found} instances in list {list} of the test at the start, which are not the {expected} that should be kept: update the driver, or set the tier to another"
    )]
    WrongResult {
        /// The tier.
        tier: CullingTier,
        /// Name of the compaction.
        compaction: &'static str,
        /// Number of the list of survivors.
        list: usize,
        /// Length of the list.
        found: usize,
        /// Its right length. If they are the same, the list has other instances.
        expected: usize,
    },
    /// Reading the GPU's results failed.
    #[error("the GPU's results could not be read: {0}")]
    Readback(String),
}
