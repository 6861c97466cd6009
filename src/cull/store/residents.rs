//! The sets that are on the GPU, and the versions that tell whether any changed.

use super::region::{Channels, Region, RegionLayout, SetId};
use crate::{cull::gpu::version::Version, instance::InstanceSet};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// A set that is resident.
#[derive(Default)]
pub(in crate::cull) struct Set {
    /// [`ResidentSets::version`] after the last change of its regions or channels; `None` before it
    /// is resident.
    placed: Option<Version>,
    /// Number of instances.
    pub len: u32,
    pub channels: Channels,
    /// The regions that hold the instances, in order.
    pub regions: Vec<Region>,
    pub layout: RegionLayout,
}

impl Set {
    pub fn new(len: u32, channels: Channels, regions: Vec<Region>, layout: RegionLayout) -> Self {
        Self {
            placed: None,
            len,
            channels,
            regions,
            layout,
        }
    }

    /// Changes whenever its regions or its channels do; not with its length.
    pub fn placed(&self) -> Option<Version> {
        self.placed
    }

    /// Number of instances that its regions hold.
    pub fn capacity(&self) -> u32 {
        let capacities = self.regions.iter().map(|region| region.capacity);
        // Instances up to `u32::MAX` take whole blocks, and so 2^32 places.
        capacities.fold(0, u32::saturating_add)
    }

    /// Whether its regions have a place for these channels. A set that the GPU writes has other
    /// room than an uploaded set, and a page has one layout of channels.
    pub fn can_have(&self, layout: RegionLayout, channels: Channels) -> bool {
        self.layout == layout && self.channels.layout() == channels.layout()
    }

    /// Capacity for a set of `len` instances that outgrew its regions: half as much again, limited
    /// to what 32 bits can count.
    pub fn grown(len: u32) -> u32 {
        let max = InstanceSet::MAX_LEN as u32;
        len.saturating_add(len / 2).min(max).max(len)
    }
}

/// All resident sets.
pub(in crate::cull) struct ResidentSets {
    sets: HashMap<SetId, Set>,
    version: Version,
    /// The sets of the last changes, the newest last.
    recent: VecDeque<SetId>,
}

/// Number of changes whose sets are known.
const MAX_RECENT: usize = 16;

impl Default for ResidentSets {
    fn default() -> Self {
        Self {
            sets: HashMap::new(),
            version: Version::new(),
            recent: VecDeque::with_capacity(MAX_RECENT),
        }
    }
}

impl ResidentSets {
    /// Changes whenever any set does; data derived from the sets is valid while it stays equal.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The sets that changed since an earlier version; `None` if there were too many changes.
    pub fn changed_since(&self, before: Version) -> Option<impl Iterator<Item = SetId> + '_> {
        let changes = self.version.changes_since(before)?;
        let old = self
            .recent
            .len()
            .checked_sub(usize::try_from(changes).ok()?)?;
        Some(self.recent.iter().skip(old).copied())
    }

    /// Notes a change of a set.
    fn note(&mut self, id: SetId) {
        self.version.bump();
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(id);
    }

    pub fn get(&self, id: SetId) -> Option<&Set> {
        self.sets.get(&id)
    }

    #[cfg(feature = "testing")]
    pub fn ids(&self) -> impl Iterator<Item = SetId> + '_ {
        self.sets.keys().copied()
    }

    pub fn insert(&mut self, id: SetId, set: Set) {
        self.note(id);
        let placed = Some(self.version);
        self.sets.insert(id, Set { placed, ..set });
    }

    pub fn remove(&mut self, id: SetId) -> Option<Set> {
        let removed = self.sets.remove(&id);
        if removed.is_some() {
            self.note(id);
        }
        removed
    }

    /// Sets the length and the channels of a set. Its regions stay.
    pub fn resize(&mut self, id: SetId, len: u32, channels: Channels) {
        let now = (len, channels);
        let known = self.sets.get(&id).map(|set| (set.len, set.channels));
        if known.is_none_or(|before| before == now) {
            return;
        }
        self.note(id);
        if let Some(set) = self.sets.get_mut(&id) {
            if set.channels != channels {
                set.placed = Some(self.version);
            }
            (set.len, set.channels) = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::layout::BLOCK;

    #[test]
    fn only_changes_are_counted_and_each_place_has_its_own_version() {
        let (one, other) = (SetId(1), SetId(2));
        let plain = Channels::default();
        let set = || Set::new(5, plain, Vec::new(), RegionLayout::of(plain));
        let mut sets = ResidentSets::default();
        let empty = sets.version();
        assert!(sets.remove(one).is_none());
        assert_eq!(sets.version(), empty, "nothing was removed");
        sets.insert(one, set());
        sets.insert(other, set());
        let placed = |sets: &ResidentSets| [one, other].map(|id| sets.get(id).map(Set::placed));
        let (before, places) = (sets.version(), placed(&sets));
        assert_ne!(before, empty);
        assert_ne!(places[0], places[1]);
        sets.resize(one, 5, plain);
        assert_eq!(sets.version(), before, "it has that length already");
        sets.resize(one, 4, plain);
        assert_ne!(sets.version(), before);
        assert_eq!(placed(&sets), places, "the same regions");
        let tagged = Channels {
            data_words: 1,
            ..plain
        };
        sets.resize(one, 4, tagged);
        let other_channels = placed(&sets);
        assert_ne!(other_channels[0], places[0]);
        assert_eq!(other_channels[1], places[1]);
        let gone = sets.remove(one).map(|set| set.len);
        assert_eq!(gone, Some(4));
        sets.insert(one, set());
        assert_ne!(placed(&sets)[0], places[0], "another set in its place");
        assert_ne!(ResidentSets::default().version(), empty, "other sets");
    }

    #[test]
    fn the_sets_of_recent_changes_are_known() {
        let plain = Channels::default();
        let mut sets = ResidentSets::default();
        let mut versions = vec![sets.version()];
        for id in 0..40 {
            sets.insert(
                SetId(id),
                Set::new(5, plain, Vec::new(), RegionLayout::of(plain)),
            );
            versions.push(sets.version());
        }
        sets.resize(SetId(7), 4, plain);
        sets.resize(SetId(7), 4, plain);
        sets.remove(SetId(39));
        sets.remove(SetId(39));
        let changed = |at: usize| Some(sets.changed_since(versions[at])?.collect::<Vec<_>>());
        let set = |id| SetId(id);
        assert_eq!(changed(40), Some(vec![set(7), set(39)]));
        assert_eq!(changed(38), Some([38, 39, 7, 39].map(set).to_vec()));
        assert_eq!(changed(26).map(|all| all.len()), Some(MAX_RECENT));
        assert_eq!(changed(25), None, "too many");
        let mut now = sets.changed_since(sets.version()).expect("no change");
        assert_eq!(now.next(), None);
        assert!(
            sets.changed_since(ResidentSets::default().version())
                .is_none()
        );
    }

    #[test]
    fn a_set_of_whole_blocks_up_to_the_last_index_has_room_for_all_of_them() {
        let plain = Channels::default();
        let region = |page| Region {
            page,
            first: 0,
            first_bound: 0,
            capacity: 1 << 27,
        };
        let regions: Vec<_> = (0..32).map(region).collect();
        let set = Set::new(u32::MAX, plain, regions, RegionLayout::of(plain));
        assert_eq!(set.capacity(), u32::MAX);
    }

    #[test]
    fn the_whole_blocks_of_a_set_that_grows_are_counted_in_32_bits() {
        let max = InstanceSet::MAX_LEN as u32;
        for len in [0, 1, BLOCK, 1 << 31, max / 3 * 2, max - BLOCK, max - 1, max] {
            let room = Set::grown(len);
            assert!((len..=max).contains(&room), "{len}: {room}");
            assert!(
                room.checked_next_multiple_of(BLOCK).is_some(),
                "{len}: {room}"
            );
        }
        assert_eq!([1000, max / 2].map(Set::grown), [1500, max / 2 + max / 4]);
        assert_eq!(max.checked_next_multiple_of(BLOCK), Some(max));
        assert_eq!((max + 1).checked_next_multiple_of(BLOCK), None);
    }
}
