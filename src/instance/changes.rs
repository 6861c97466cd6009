//! What changed in a set since a reader last looked.
//!
//! Each channel keeps, for every run of [`GRANULE`] instances, the revision that last wrote into
//! it. So any number of readers, however far behind, get an answer from 0.2 % of the set's memory,
//! and no edit is ever forgotten or merged away. Which instances are not the ones that they were is
//! also kept exactly for recent edits (`exact`): motion vectors and rays need that.

mod exact;
mod stamps;

#[cfg(feature = "bevy")]
use bevy::reflect::std_traits::ReflectDefault;
use std::ops::Range;

use exact::Exact;
pub(super) use stamps::GRANULE;
use stamps::Stamps;

/// Which set, and after which edit: see [`InstanceSet::version`](super::InstanceSet::version).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(Clone, Debug, Default, PartialEq, Hash)
)]
pub struct SetVersion {
    pub(super) lineage: u64,
    pub(super) revision: u64,
}

/// What a reader must read again to catch up with an [`InstanceSet`](super::InstanceSet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetChanges {
    /// The reader is up to date.
    Nothing,
    /// These ranges were written, and the length may have changed.
    Ranges(ChangedRanges),
    /// A channel was added or removed, or the reader's revision is 0 or does not belong to this
    /// set: start over.
    Everything,
}

/// The ranges of indices to read again, per channel.
///
/// The ranges are sorted, disjoint, never adjacent, and within the set's length. They cover every
/// write. The first three start and end at a multiple of
/// [`InstanceSet::CHANGE_GRANULE`](super::InstanceSet::CHANGE_GRANULE) or at the set's end. The
/// others are exact for a reader that is not far behind, and rounded in the same way for others.
/// All are empty if the set only got shorter or its bounds were tightened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedRanges {
    /// In [`InstanceSet::packed`](super::InstanceSet::packed).
    pub instances: Vec<Range<usize>>,
    /// In [`InstanceSet::scales`](super::InstanceSet::scales) or
    /// [`InstanceSet::non_uniform_scales`](super::InstanceSet::non_uniform_scales).
    pub scales: Vec<Range<usize>>,
    /// In [`InstanceSet::data_words`](super::InstanceSet::data_words): tags and other data.
    pub data: Vec<Range<usize>>,
    /// Indices that now hold a different instance than before, rather than an instance that moved.
    /// Indices beyond the set's previous length are not included.
    pub renumbered: Vec<Range<usize>>,
    /// Instances that were not on their way from where the reader knows them:
    /// [`InstanceSet::teleport`](super::InstanceSet::teleport) moved them, or
    /// [`InstanceSet::show`](super::InstanceSet::show) shows them again.
    pub teleported: Vec<Range<usize>>,
}

/// The revisions of one set.
#[derive(Clone, Debug)]
pub(super) struct ChangeLog {
    revision: u64,
    /// Readers older than this revision must start over.
    everything_at: u64,
    pub(super) instances: Stamps,
    pub(super) scales: Stamps,
    pub(super) data: Stamps,
    renumbered: Exact,
    pub(super) teleported: Exact,
    /// The greatest length that the set ever had.
    longest: usize,
}

impl ChangeLog {
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Opens the next edit; everything marked from here on belongs to it.
    pub(super) fn begin(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// Notes that the current edit put other instances at these indices; `before` is the length
    /// before the edit.
    pub(super) fn mark_renumbered(&mut self, range: Range<usize>, before: usize) {
        self.longest = self.longest.max(before);
        // Beyond the greatest length, there was never another instance.
        let range = range.start..range.end.min(self.longest);
        self.renumbered.mark(range, self.revision, self.longest);
    }

    /// Notes that the current edit put an instance of a set of this length elsewhere at once.
    pub(super) fn mark_teleported(&mut self, range: Range<usize>, len: usize) {
        self.teleported.mark(range, self.revision, len);
    }

    /// Whether another instance than at this revision may be at an index.
    pub(super) fn may_be_another(&self, at: usize, since: u64) -> bool {
        let is_strange = since < self.everything_at || since > self.revision;
        is_strange || self.renumbered.may_contain(at, since)
    }

    /// Notes that the current edit changed more than ranges can express.
    pub(super) fn mark_everything(&mut self) {
        *self = Self {
            revision: self.revision,
            everything_at: self.revision,
            ..Self::default()
        };
    }

    pub(super) fn since(&self, revision: u64, len: usize) -> SetChanges {
        if revision == self.revision {
            SetChanges::Nothing
        } else if revision < self.everything_at || revision > self.revision {
            SetChanges::Everything
        } else {
            SetChanges::Ranges(ChangedRanges {
                instances: self.instances.since(revision, len),
                scales: self.scales.since(revision, len),
                data: self.data.since(revision, len),
                renumbered: self.renumbered.since(revision, len),
                teleported: self.teleported.since(revision, len),
            })
        }
    }
}

impl Default for ChangeLog {
    fn default() -> Self {
        Self {
            revision: 1,
            everything_at: 1,
            instances: Stamps::default(),
            scales: Stamps::default(),
            data: Stamps::default(),
            renumbered: Exact::default(),
            teleported: Exact::default(),
            longest: 0,
        }
    }
}

#[cfg(test)]
mod tests;
