//! Which slots a set has.

use super::{DrawSlots, slot::Slot};

impl DrawSlots {
    /// The slots of the set at a place of the list: the same as before, if it had `count`. Returns
    /// the first.
    pub fn claim(&mut self, place: usize, count: u32) -> u32 {
        if self.of_sets.len() <= place {
            self.of_sets.resize(place + 1, 0..0);
        }
        let own = self.of_sets[place].clone();
        self.used += count as usize;
        if own.len() == count as usize {
            return own.start;
        }
        if let Some(slot) = self.slots.get(own.start as usize).copied()
            && !own.is_empty()
        {
            self.note_lost(&slot);
        }
        self.holes += own.len();
        let first = match self.free.get_mut(&count).and_then(Vec::pop) {
            Some(free) => {
                self.holes -= count as usize;
                free
            }
            None => {
                let end = self.slots.len() as u32;
                self.slots.resize((end + count) as usize, Slot::new());
                end
            }
        };
        self.of_sets[place] = first..first + count;
        first
    }

    /// The set at a place went.
    pub fn release(&mut self, place: usize) {
        if let Some(own) = self.of_sets.get_mut(place).map(core::mem::take)
            && !own.is_empty()
        {
            self.holes += own.len();
            self.free
                .entry(own.len() as u32)
                .or_default()
                .push(own.start);
        }
    }
}
