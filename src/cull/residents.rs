//! The sets that are on the GPU, and whether any has changed.

use crate::cull::pages::{Channels, Region, Room, SetId, first_generation};
use hashbrown::HashMap;

/// A set that is resident.
#[derive(Default)]
pub(super) struct Set {
    pub(super) len: u32,
    pub(super) channels: Channels,
    pub(super) regions: Vec<Region>,
    pub(super) room: Room,
}

impl Set {
    pub(super) fn capacity(&self) -> u32 {
        self.regions.iter().map(|region| region.capacity).sum()
    }
}

/// All of them. While [`Self::version`] stays, each is as it was: what was made from them need not be compared with them.
pub(super) struct ResidentSets {
    sets: HashMap<SetId, Set>,
    version: u64,
}

impl Default for ResidentSets {
    fn default() -> Self {
        Self {
            sets: HashMap::new(),
            version: first_generation(),
        }
    }
}

impl ResidentSets {
    /// Another number, never one of other sets', after each change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, id: SetId) -> Option<&Set> {
        self.sets.get(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SetId> + '_ {
        self.sets.keys().copied()
    }

    pub(super) fn insert(&mut self, id: SetId, set: Set) {
        self.version += 1;
        self.sets.insert(id, set);
    }

    pub(super) fn remove(&mut self, id: SetId) -> Option<Set> {
        self.version += 1;
        self.sets.remove(&id)
    }

    /// Instances and channels of a set are these from now on, where its regions are.
    pub(super) fn resize(&mut self, id: SetId, len: u32, channels: Channels) {
        if let Some(set) = self.sets.get_mut(&id)
            && (set.len, set.channels) != (len, channels)
        {
            (set.len, set.channels) = (len, channels);
            self.version += 1;
        }
    }
}
