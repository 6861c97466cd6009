//! Every shape that a kernel of an expansion sees, in the order of `shaders/expand/layout.wgsl`; the test `layout`
//! compares the two.

use bytemuck::{Pod, Zeroable};

/// Threads of a workgroup of pass 1.
pub const EXPAND_THREADS: u32 = 256;
/// Sources that a workgroup of pass 1 takes at a time.
pub const EXPAND_TILE: u32 = 1024;
/// Values that a thread takes at a time in the scan of the tiles' sums.
pub const EXPAND_SPINE_RUN: u32 = 16;
/// Threads of a workgroup of pass 2: a chunk.
pub const EXPAND_CHUNK: u32 = 128;
/// Items that a workgroup of `workgroup-search` takes at a time.
pub const EXPAND_SPAN: u32 = 1024;
/// Buckets: bucket b is for 2^b items.
pub const EXPAND_BUCKETS: u32 = 32;
/// More items than this are refused, so that no index wraps.
pub const EXPAND_MOST_ITEMS: u32 = 0xff00_0000;
/// [`ExpandParams::source_word`] where the host knows the number of sources.
pub const EXPAND_KNOWN: u32 = u32::MAX;

/// [`ExpandState::status`]: more items than [`EXPAND_MOST_ITEMS`]; nothing is expanded.
pub const EXPAND_TOO_MANY_ITEMS: u32 = 1;
/// [`ExpandState::status`]: `fixed-max` would need more threads than [`EXPAND_MOST_ITEMS`]; nothing is expanded.
pub const EXPAND_TOO_MANY_THREADS: u32 = 2;
/// [`ExpandState::status`]: the arena holds less than [`ExpandState::needed`] entries; those beyond are left out.
pub const EXPAND_NO_ROOM: u32 = 4;

/// What pass 1 is told. `*_at` are places in the arena, counted in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandParams {
    /// Sources, or the most that may be asked for.
    pub source_capacity: u32,
    /// The word of the caller's buffer that holds the number of sources, or [`EXPAND_KNOWN`].
    pub source_word: u32,
    /// Entries that the arena holds.
    pub entry_capacity: u32,
    /// Workgroups of the passes that stride over tiles.
    pub workgroups: u32,
    /// Prefixes of the sources, or of the table of tiles and buckets.
    pub prefix_at: u32,
    /// Prefixes of the tiles.
    pub partials_at: u32,
    /// Items that each workgroup of pass 1 saw.
    pub sums_at: u32,
    /// Entries.
    pub entries_at: u32,
}

/// What pass 1 tells pass 2 and the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandState {
    /// Sources.
    pub sources: u32,
    /// Items of all sources, also those that find no room; the greatest u32 where it is at least 2^32 - 1.
    pub items: u32,
    /// Entries that the arena must hold so that no item is lost.
    pub needed: u32,
    /// `EXPAND_*` bits.
    pub status: u32,
    /// Chunks of pass 2.
    pub chunks: u32,
    /// The greatest number of items of a source (`fixed-max`), else entries.
    pub width: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Buckets.
    pub buckets: [ExpandBucket; EXPAND_BUCKETS as usize],
    /// Workgroups in x, y, z of an indirect dispatch of pass 2: all buckets, then each.
    pub dispatches: [[u32; 4]; EXPAND_BUCKETS as usize + 1],
}

/// The entries of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandBucket {
    /// The first entry, counted over all buckets.
    pub first_entry: u32,
    /// Entries.
    pub entry_count: u32,
    /// Its first chunk; no workgroup works for two buckets.
    pub first_chunk: u32,
    /// Binary logarithm of the threads for each entry.
    pub lanes: u32,
}

/// Which buckets a dispatch of pass 2 is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ExpandSlice {
    /// A bucket, or [`EXPAND_BUCKETS`] for all.
    pub bucket: u32,
    /// Padding.
    pub pad_a: u32,
    /// Padding.
    pub pad_b: u32,
    /// Padding.
    pub pad_c: u32,
}

/// Byte offset in the state of the indirect dispatch of all buckets (0), or of bucket `index - 1`.
#[must_use]
pub const fn dispatch_offset(index: u32) -> u64 {
    core::mem::offset_of!(ExpandState, dispatches) as u64 + index as u64 * 16
}
