//! Names of instances that survive edits.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names an instance of an [`InstanceSet`](super::InstanceSet), whatever its index becomes. Made by
/// sets [with ids](super::InstanceSet::with_ids).
///
/// When the instance is removed, the id names nothing. It never names another instance: neither one
/// of its set, nor one that a clone of the set got later, nor one of any other set of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy",
    derive(bevy::reflect::Reflect),
    reflect(Clone, Debug, PartialEq, Hash)
)]
pub struct InstanceId {
    generation: u64,
    slot: u32,
}

/// An index that is in no set: a set has at most 2^32 - 1,024 instances.
const NOWHERE: u32 = u32::MAX;

/// The way from ids to indices and back.
#[derive(Clone, Default)]
pub(super) struct Ids {
    /// The index of each slot's instance.
    index_of: Vec<u32>,
    /// The generation of each slot's instance.
    generations: Vec<u64>,
    /// Slots that name nothing.
    free: Vec<u32>,
    /// The slot of each instance.
    slot_of: Vec<u32>,
}

/// A number for instances that get their ids together, unique in the process. So what a set and its
/// clone add is never mistaken for each other.
fn next_generation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Ids {
    pub(super) fn id(&self, at: usize) -> Option<InstanceId> {
        let slot = *self.slot_of.get(at)?;
        let generation = self.generations[slot as usize];
        Some(InstanceId { generation, slot })
    }

    pub(super) fn index(&self, id: InstanceId) -> Option<u32> {
        let generation = *self.generations.get(id.slot as usize)?;
        let index = self.index_of[id.slot as usize];
        (generation == id.generation && index != NOWHERE).then_some(index)
    }

    /// Gives `added` instances at the end an id.
    pub(super) fn extend(&mut self, added: usize) {
        let (first, generation) = (self.slot_of.len(), next_generation());
        self.slot_of.reserve(added);
        for _ in 0..added {
            let slot = self.allocate(generation);
            self.slot_of.push(slot);
        }
        self.number(first..first + added);
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
        let generation = next_generation();
        let new: Vec<u32> = (0..added).map(|_| self.allocate(generation)).collect();
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
            self.index_of[self.slot_of[at] as usize] = at as u32;
        }
    }

    /// A slot for a new instance.
    fn allocate(&mut self, generation: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.index_of.push(NOWHERE);
            self.generations.push(0);
            self.index_of.len() as u32 - 1
        });
        self.generations[slot as usize] = generation;
        slot
    }

    fn release(&mut self, slot: u32) {
        self.index_of[slot as usize] = NOWHERE;
        self.free.push(slot);
    }
}
