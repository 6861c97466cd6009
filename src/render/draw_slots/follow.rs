//! Frames that draw the sets of the previous one, except a few.

use super::DrawSlots;

impl DrawSlots {
    /// Whether the frame has dropped all slots.
    pub fn has_started_again(&self) -> bool {
        self.has_started_again
    }

    /// The frame draws the sets of the previous one, except the sets that are named next.
    pub fn follow(&mut self) {
        self.used = self.used_before;
    }

    /// The previous frame drew the set at a place. Whether this one does is not known yet.
    pub fn draw_again(&mut self, place: usize) {
        let before = self.frame - 1;
        let own = self.slots_of(place);
        let count = own.len();
        for slot in own {
            slot.frame = before;
        }
        self.used = self.used.saturating_sub(count);
    }

    /// Whether the slots of the set at a place have the transforms of the frame before.
    pub fn rests(&self, place: usize) -> bool {
        let own = self.of_sets.get(place).cloned().unwrap_or_default();
        let own = self.slots.get(own.start as usize..own.end as usize);
        own.into_iter().flatten().all(|slot| slot.rests)
    }

    /// No set of the frame has slots so far.
    pub fn start_again(&mut self) {
        self.used = 0;
    }
}
