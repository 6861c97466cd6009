//! What extractions know of the entities and their sets.

use super::{lists::SetLists, roster::Roster};
use crate::{
    instance::InstanceSet,
    render::{told::Told, upload::KnownSets},
};
use bevy::{platform::collections::HashSet, prelude::*};

/// What extractions know of the entities and their sets.
#[derive(Default)]
pub(in crate::render) struct Extraction {
    /// Number of extractions so far.
    pub frame: u64,
    /// What the GPU has of each set.
    pub known: KnownSets,
    /// The entities with sets, and their sets.
    pub lists: SetLists,
    /// The entities as extractions read them.
    pub(super) roster: Roster,
    /// Sets whose instances the GPU wrote on a device that was lost.
    pub(super) lost: HashSet<AssetId<InstanceSet>>,
    /// Sets of which a warning about their asset usage was logged.
    pub(super) told: Told<AssetId<InstanceSet>>,
    /// Bytes of new sets that the last extraction uploaded.
    pub(super) streamed: u64,
    /// The id of the newest set.
    pub(super) last_id: u64,
}

impl Extraction {
    /// The device is gone, and with it what the GPU `wrote`.
    pub fn leave_device(&mut self, wrote: impl Iterator<Item = AssetId<InstanceSet>>) {
        self.lost.extend(wrote);
        self.forget_sets();
        self.lists.clear_sets();
        self.streamed = 0;
    }

    /// The GPU has no set any more.
    pub fn forget_sets(&mut self) {
        self.known.clear();
        self.roster.forget();
    }
}
