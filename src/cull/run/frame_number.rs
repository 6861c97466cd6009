//! Numbers of frames, and what a frame changed of the tables of a batch.

use crate::cull::plan::MendedEntries;

/// The number of a frame, and of the last frames in which something changed.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cull) struct FrameNumber {
    pub now: u64,
    /// The last frame whose plan or compaction differs from the one before.
    pub changed_in: u64,
    /// The last frame in which tables differ from the one before in more than their rows.
    pub mended_in: u64,
    /// The same, before this frame.
    pub mended_before: u64,
}

/// What changed of the tables of a batch since they were written.
#[derive(Clone, Copy)]
pub(super) enum Changed<'a> {
    Nothing,
    Some(&'a MendedEntries),
    All,
}

impl<'a> Changed<'a> {
    /// What changed of tables that were written for the frame whose
    /// [`FrameNumber::mended_in`] was `made_for`. `mends` are of this frame.
    pub fn since(made_for: Option<u64>, frame: FrameNumber, mends: &'a MendedEntries) -> Self {
        match made_for {
            Some(made_for) if made_for == frame.mended_in => Self::Nothing,
            Some(made_for) if made_for == frame.mended_before && mends.follow => Self::Some(mends),
            _ => Self::All,
        }
    }
}
