//! Names of instances that survive edits.

use std::ops::Range;

/// Names an instance of one [`InstanceSet`](super::InstanceSet), whatever its index becomes. Made by
/// sets [with ids](super::InstanceSet::with_ids).
///
/// When the instance is removed, the id names nothing. It never names another instance, unless the
/// same slot is used 2^32 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "bevy", derive(bevy::reflect::Reflect))]
pub struct InstanceId {
    slot: u32,
    generation: u32,
}

/// An index that is in no set: a set has at most 2^32 - 1,024 instances.
const NOWHERE: u32 = u32::MAX;

/// The way from ids to indices and back.
#[derive(Clone, Default)]
pub(super) struct Ids {
    slots: Vec<Slot>,
    /// Slots that name nothing.
    free: Vec<u32>,
    /// The slot of each instance.
    slot_of: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Slot {
    index: u32,
    generation: u32,
}

impl Ids {
    pub(super) fn id(&self, at: usize) -> Option<InstanceId> {
        let slot = *self.slot_of.get(at)?;
        let generation = self.slots[slot as usize].generation;
        Some(InstanceId { slot, generation })
    }

    pub(super) fn index(&self, id: InstanceId) -> Option<u32> {
        let slot = self.slots.get(id.slot as usize)?;
        (slot.generation == id.generation && slot.index != NOWHERE).then_some(slot.index)
    }

    /// Gives `added` instances at the end an id.
    pub(super) fn extend(&mut self, added: usize) {
        self.slot_of.reserve(added);
        for _ in 0..added {
            let index = self.slot_of.len() as u32;
            let slot = self.allocate();
            self.slots[slot as usize].index = index;
            self.slot_of.push(slot);
        }
    }

    /// Follows [`Vec::truncate`].
    pub(super) fn truncate(&mut self, len: usize) {
        for slot in self.slot_of.split_off(len.min(self.slot_of.len())) {
            self.release(slot);
        }
    }

    /// Follows [`Vec::swap_remove`].
    pub(super) fn swap_remove(&mut self, at: usize) {
        let slot = self.slot_of.swap_remove(at);
        self.release(slot);
        self.number(at..(at + 1).min(self.slot_of.len()));
    }

    /// Follows a [`Vec::splice`] that puts `added` new instances in the place of `range`.
    pub(super) fn splice(&mut self, range: Range<usize>, added: usize) {
        for at in range.clone() {
            self.release(self.slot_of[at]);
        }
        let new: Vec<u32> = (0..added).map(|_| self.allocate()).collect();
        let start = range.start;
        let end = if range.len() == added {
            range.end
        } else {
            self.slot_of.len() - range.len() + added
        };
        self.slot_of.splice(range, new);
        self.number(start..end);
    }

    /// Follows [`Vec::retain`].
    pub(super) fn retain(&mut self, kept: &[bool]) {
        let old = core::mem::take(&mut self.slot_of);
        for (slot, kept) in old.into_iter().zip(kept) {
            if *kept {
                self.slot_of.push(slot);
            } else {
                self.release(slot);
            }
        }
        self.number(0..self.slot_of.len());
    }

    /// Follows a new order: `originals` has the old index of each instance.
    pub(super) fn reorder(&mut self, originals: &[u32]) {
        let slot_of = originals.iter().map(|&old| self.slot_of[old as usize]);
        self.slot_of = slot_of.collect();
        self.number(0..self.slot_of.len());
    }

    /// Tells the slots of these instances their indices.
    fn number(&mut self, range: Range<usize>) {
        for at in range {
            self.slots[self.slot_of[at] as usize].index = at as u32;
        }
    }

    fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                index: NOWHERE,
                generation: 0,
            });
            self.slots.len() as u32 - 1
        })
    }

    fn release(&mut self, slot: u32) {
        let known = &mut self.slots[slot as usize];
        known.index = NOWHERE;
        known.generation = known.generation.wrapping_add(1);
        self.free.push(slot);
    }
}
