//! Every shape that a kernel of an expansion reads or writes, in the order of
//! `shaders/expand/layout.wesl`; the test `layout` compares the two.

use bytemuck::{Pod, Zeroable};

/// Number of threads in a workgroup of pass 1.
pub const EXPAND_THREADS: u32 = 256;
/// Number of sources that a workgroup of pass 1 takes at a time.
pub const EXPAND_TILE: u32 = 1024;
/// Number of values that a thread takes at a time in the scan of the tiles' sums.
pub const EXPAND_SPINE_RUN: u32 = 16;
/// Number of threads in a workgroup of pass 2, which processes one chunk.
pub const EXPAND_CHUNK: u32 = 128;
/// Number of items that a workgroup of `workgroup-search` takes at a time.
pub const EXPAND_SPAN: u32 = 1024;
/// Number of buckets: bucket b is for 2^b items.
pub const EXPAND_BUCKETS: u32 = 32;
/// Largest number of items. More are refused, so that no index wraps.
pub const EXPAND_MAX_ITEMS: u32 = 0xff00_0000;
/// [`ExpandParams::source_word`] if the host knows the number of sources.
pub const EXPAND_KNOWN: u32 = u32::MAX;

/// [`ExpandState::status`]: there are more than [`EXPAND_MAX_ITEMS`] items; nothing is expanded.
pub const EXPAND_TOO_MANY_ITEMS: u32 = 1;
/// [`ExpandState::status`]: `fixed-max` would need more than [`EXPAND_MAX_ITEMS`] threads; nothing
/// is expanded.
pub const EXPAND_TOO_MANY_THREADS: u32 = 2;
/// [`ExpandState::status`]: the arena holds fewer than [`ExpandState::needed`] entries; the rest is
/// left out.
pub const EXPAND_NO_ROOM: u32 = 4;

/// Parameters of pass 1. Fields named `*_at` are positions in the arena, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandParams {
    /// Number of sources, or the largest number if the GPU counts them.
    pub source_capacity: u32,
    /// Index of the word of the caller's buffer that holds the number of sources, or
    /// [`EXPAND_KNOWN`].
    pub source_word: u32,
    /// Number of entries that the arena holds.
    pub entry_capacity: u32,
    /// Number of workgroups of the passes that stride over tiles.
    pub workgroups: u32,
    /// Prefixes of the sources, or of the table of tiles and buckets.
    pub prefix_at: u32,
    /// Prefixes of the tiles.
    pub partials_at: u32,
    /// Number of items that each workgroup of pass 1 counted.
    pub sums_at: u32,
    /// Entries.
    pub entries_at: u32,
}

/// What pass 1 reports to pass 2 and to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandState {
    /// Number of sources.
    pub sources: u32,
    /// Number of items of all sources, including those that do not fit; the greatest u32 if there
    /// are at least 2^32 - 1.
    pub items: u32,
    /// Number of entries that the arena must hold so that no item is lost.
    pub needed: u32,
    /// `EXPAND_*` bits.
    pub status: u32,
    /// Number of chunks of pass 2.
    pub chunks: u32,
    /// For `fixed-max`, the greatest number of items of a source; otherwise the number of entries.
    pub width: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Buckets.
    pub buckets: [ExpandBucket; EXPAND_BUCKETS as usize],
    /// Numbers of workgroups in x, y, z of an indirect dispatch of pass 2: first for all buckets,
    /// then for each one.
    pub dispatches: [[u32; 4]; EXPAND_BUCKETS as usize + 1],
}

/// The entries of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandBucket {
    /// Index of the first entry, counted over all buckets.
    pub first_entry: u32,
    /// Number of entries.
    pub entry_count: u32,
    /// Index of the first chunk. No workgroup works for two buckets.
    pub first_chunk: u32,
    /// Binary logarithm of the number of threads per entry.
    pub lanes: u32,
}

/// The buckets that a dispatch of pass 2 processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandSlice {
    /// Index of a bucket, or [`EXPAND_BUCKETS`] for all buckets.
    pub bucket: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Padding.
    pub pad_c: u32,
}

/// Byte offset in the state of the indirect dispatch for all buckets (0), or for bucket
/// `index - 1`.
#[must_use]
pub const fn dispatch_offset(index: u32) -> u64 {
    core::mem::offset_of!(ExpandState, dispatches) as u64 + index as u64 * 16
}
