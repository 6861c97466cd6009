//! The sets that are on the GPU, and whether any has changed.

use crate::{
    cull::pages::{Channels, Region, Room, SetId, first_generation},
    instance::InstanceSet,
};
use hashbrown::HashMap;

/// A set that is resident.
#[derive(Default)]
pub(super) struct Set {
    /// What [`ResidentSets::version`] became when it came or changed.
    version: u64,
    pub(super) len: u32,
    pub(super) channels: Channels,
    pub(super) regions: Vec<Region>,
    pub(super) room: Room,
}

impl Set {
    pub(super) fn new(len: u32, channels: Channels, (regions, room): (Vec<Region>, Room)) -> Self {
        Self {
            version: 0,
            len,
            channels,
            regions,
            room,
        }
    }

    /// Stays while the set is as it was.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn capacity(&self) -> u32 {
        let capacities = self.regions.iter().map(|region| region.capacity);
        // The whole blocks of `u32::MAX` instances have 2^32 places.
        capacities.fold(0, u32::saturating_add)
    }

    /// Room for a set of `len` instances that outgrew what it had: half as much again, as far as 32
    /// bits count the places of its whole blocks.
    pub(super) fn grown(len: u32) -> u32 {
        let most = InstanceSet::MAX_LEN as u32;
        len.saturating_add(len / 2).min(most).max(len)
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
        let version = self.version;
        self.sets.insert(id, Set { version, ..set });
    }

    pub(super) fn remove(&mut self, id: SetId) -> Option<Set> {
        let removed = self.sets.remove(&id);
        self.version += u64::from(removed.is_some());
        removed
    }

    /// Instances and channels of a set are these from now on, where its regions are.
    pub(super) fn resize(&mut self, id: SetId, len: u32, channels: Channels) {
        if let Some(set) = self.sets.get_mut(&id)
            && (set.len, set.channels) != (len, channels)
        {
            (set.len, set.channels) = (len, channels);
            self.version += 1;
            set.version = self.version;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::layout::BLOCK;

    #[test]
    fn only_changes_are_counted_and_each_set_knows_its_own() {
        let (one, other) = (SetId(1), SetId(2));
        let plain = Channels::default();
        let set = || Set::new(5, plain, (Vec::new(), Room::of(plain)));
        let mut sets = ResidentSets::default();
        let empty = sets.version();
        assert!(sets.remove(one).is_none());
        assert_eq!(sets.version(), empty, "nothing was removed");
        sets.insert(one, set());
        sets.insert(other, set());
        let versions = |sets: &ResidentSets| {
            let own = [one, other].map(|id| sets.get(id).map(Set::version));
            (sets.version(), own)
        };
        let before = versions(&sets);
        assert_ne!(before.0, empty);
        sets.resize(one, 5, plain);
        assert_eq!(versions(&sets), before, "it has that length already");
        sets.resize(one, 4, plain);
        let shorter = versions(&sets);
        assert_ne!(shorter.0, before.0);
        assert_ne!(shorter.1[0], before.1[0]);
        assert_eq!(shorter.1[1], before.1[1]);
        let gone = sets.remove(one).map(|set| set.len);
        assert_eq!(gone, Some(4));
        sets.insert(one, set());
        assert_ne!(
            versions(&sets).1[0],
            before.1[0],
            "another set in its place"
        );
        assert_ne!(ResidentSets::default().version(), empty, "other sets");
    }

    #[test]
    fn a_set_of_whole_blocks_up_to_the_last_index_has_room_for_all_of_them() {
        let plain = Channels::default();
        let region = |page| Region {
            page,
            first: 0,
            capacity: 1 << 27,
        };
        let regions: Vec<_> = (0..32).map(region).collect();
        let set = Set::new(u32::MAX, plain, (regions, Room::of(plain)));
        assert_eq!(set.capacity(), u32::MAX);
    }

    #[test]
    fn the_whole_blocks_of_a_set_that_grows_are_counted_in_32_bits() {
        let most = InstanceSet::MAX_LEN as u32;
        for len in [
            0,
            1,
            BLOCK,
            1 << 31,
            most / 3 * 2,
            most - BLOCK,
            most - 1,
            most,
        ] {
            let room = Set::grown(len);
            assert!((len..=most).contains(&room), "{len}: {room}");
            assert!(
                room.checked_next_multiple_of(BLOCK).is_some(),
                "{len}: {room}"
            );
        }
        assert_eq!(
            [1000, most / 2].map(Set::grown),
            [1500, most / 2 + most / 4]
        );
        assert_eq!(most.checked_next_multiple_of(BLOCK), Some(most));
        assert_eq!((most + 1).checked_next_multiple_of(BLOCK), None);
    }
}
