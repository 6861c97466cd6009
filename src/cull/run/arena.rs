//! The arena of a batch's survivors.

use crate::cull::{
    Compaction, CullError,
    compaction::Arena as ArenaKind,
    gpu::{buffer::Growable, on_demand::RetryTimer},
    plan::BatchPlan,
};
use wgpu::{Buffer, BufferUsages, Device};

/// Arenas of fewer ids (64 KiB) do not become smaller.
const SMALL: u64 = 1 << 14;

/// Number of ids that an arena must hold so that no survivor can be lost, while the rows that rest
/// keep nothing.
pub(crate) fn max_ids(plan: &BatchPlan, compaction: Compaction) -> u64 {
    match compaction.strategy().arena {
        ArenaKind::Dense => plan.awake_survivors,
        #[cfg(feature = "study")]
        ArenaKind::Regions => {
            u64::from(plan.batch.count_len) * u64::from(crate::cull::layout::BLOCK)
        }
    }
}

/// What decides the size of an arena, in ids.
#[derive(Clone, Copy)]
pub(in crate::cull) struct ArenaNeeds {
    /// [`max_ids`].
    pub max: u64,
    /// The same if no row rests.
    pub max_of_all: u64,
    /// Largest size until counters tell that more is needed.
    pub first: u64,
    /// Largest size that one binding holds.
    pub limit: u64,
}

impl ArenaNeeds {
    /// What a batch needs; without a compaction, on the `Cpu` tier. `first` and `limit` are the
    /// fields.
    pub fn of(plan: &BatchPlan, compaction: Option<Compaction>, first: u32, limit: u64) -> Self {
        let max = compaction.map_or(plan.awake_survivors, |compaction| max_ids(plan, compaction));
        Self {
            max,
            max_of_all: max.max(plan.max_survivors),
            // On the `Cpu` tier, nothing is lost: it counts before it writes.
            first: compaction.map_or(u64::MAX, |_| u64::from(first)),
            limit,
        }
    }

    /// The minimum size with which no survivor is lost, as far as it is known.
    fn min_size(self) -> u64 {
        self.max.clamp(1, self.first.min(self.limit).max(1))
    }

    /// The size that an arena of `held` ids must have now; `None` if it stays.
    ///
    /// It follows the rows that are awake: with a slack of a half, because rows wake one after the
    /// other; and it becomes smaller only if a quarter is enough.
    fn size(self, held: u64) -> Option<u64> {
        let is_too_large = held > SMALL && held > self.max.saturating_mul(4);
        if self.min_size() <= held && !is_too_large {
            return None;
        }
        let slack = (self.max + self.max / 2).max(SMALL);
        let max_size = self.first.min(self.limit).min(self.max_of_all);
        let wanted = slack.min(max_size).max(self.min_size());
        (wanted != held).then_some(wanted)
    }
}

/// The survivors of a batch.
pub(in crate::cull) struct SurvivorArena {
    array: Growable,
    /// Number of ids that it holds.
    pub capacity: u32,
    /// Number of ids that it must hold so that no survivor can be lost ([`max_ids`]).
    pub max: u64,
    /// Runs if the device refused a larger one.
    retry: RetryTimer,
}

impl SurvivorArena {
    /// Without room. Unguarded.
    pub fn new(device: &Device) -> Self {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        Self {
            array: Growable::new(device, "gpu_culling survivors", usage),
            capacity: 0,
            max: 0,
            retry: RetryTimer::default(),
        }
    }

    pub fn buffer(&self) -> &Buffer {
        &self.array.buffer
    }

    /// Label and buffer.
    pub fn array(&self) -> &Growable {
        &self.array
    }

    /// Gives it the size that a frame needs, before the frame's rows are tested. If the device has
    /// no room for the slack, it gets what is needed; if not even for that, it stays. Returns
    /// whether it was replaced.
    ///
    /// # Errors
    /// [`CullError::Gpu`]. Survivors that do not fit are then lost, and counted, and the device is
    /// asked again later.
    pub fn fit(&mut self, device: &Device, needs: ArenaNeeds, now: u64) -> Result<bool, CullError> {
        self.max = needs.max;
        let held = u64::from(self.capacity);
        match needs.size(held) {
            Some(size) if size < held => {
                let replaced = self.array.replace(device, size * 4).is_ok();
                if replaced {
                    self.capacity = size as u32;
                    self.retry.stop();
                }
                Ok(replaced)
            }
            Some(size) if !self.retry.waits(now) => {
                let grown = self.reserve(device, size as u32);
                let grown = grown.or_else(|_| self.reserve(device, needs.min_size() as u32));
                self.retry = RetryTimer::start_after(grown.as_ref().err(), now);
                grown
            }
            _ => Ok(false),
        }
    }

    /// Makes room for what an earlier frame needed and a quarter more, but no more than `limit`
    /// ids. Returns whether it was replaced.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; it then stays, and the device is asked again later.
    pub fn learn(
        &mut self,
        device: &Device,
        needed: u32,
        limit: u64,
        now: u64,
    ) -> Result<bool, CullError> {
        // Of what that frame needed, some rows may rest now.
        let needed = u64::from(needed).min(self.max);
        if needed <= u64::from(self.capacity) || self.retry.waits(now) {
            return Ok(false);
        }
        let room = needed + needed / 4;
        let grown = self.reserve(device, room.min(limit) as u32);
        self.retry = RetryTimer::start_after(grown.as_ref().err(), now);
        grown
    }

    /// Whether a frame that needed `needed` ids tells that a later one may need more than it holds.
    pub fn may_overflow(&self, needed: u32) -> bool {
        needed > self.capacity / 4 && u64::from(self.capacity) < self.max
    }

    /// Makes room for `capacity` ids. Returns whether it was replaced.
    ///
    /// # Errors
    /// [`CullError::Gpu`]; it then stays.
    pub fn reserve(&mut self, device: &Device, capacity: u32) -> Result<bool, CullError> {
        let replaced = self.array.reserve(device, u64::from(capacity) * 4)?;
        self.capacity = capacity;
        Ok(replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEEDS: ArenaNeeds = ArenaNeeds {
        max: 0,
        max_of_all: 1_000_000,
        first: 1 << 24,
        limit: 1 << 27,
    };

    #[test]
    fn an_arena_follows_what_is_awake() {
        let size = |max, held| ArenaNeeds { max, ..NEEDS }.size(held);
        assert_eq!(size(0, 0), Some(SMALL));
        assert_eq!(size(100_000, SMALL), Some(150_000));
        assert_eq!(size(150_000, 150_000), None);
        assert_eq!(size(150_001, 150_000), Some(225_001));
        let all = Some(1_000_000);
        assert_eq!(size(900_000, 225_001), all, "no more than all rows keep");
        assert_eq!(size(250_000, 1_000_000), None);
        assert_eq!(size(249_999, 1_000_000), Some(374_998));
        assert_eq!(size(0, 1_000_000), Some(SMALL));
        assert_eq!(size(0, SMALL), None);
        let few = ArenaNeeds {
            max_of_all: 100,
            ..NEEDS
        };
        assert_eq!(few.size(0), Some(100), "few instances take little");
        assert_eq!(
            ArenaNeeds {
                max_of_all: 0,
                ..few
            }
            .size(0),
            Some(1)
        );
    }

    #[test]
    fn an_arena_that_counters_have_enlarged_stays() {
        let needs = ArenaNeeds {
            max: 500_000,
            max_of_all: 500_000,
            first: 10_000,
            limit: 400_000,
        };
        assert_eq!(needs.size(0), Some(10_000));
        assert_eq!(needs.size(10_000), None);
        assert_eq!(needs.size(400_000), None);
    }

    proptest! {
        #[test]
        fn an_arena_holds_what_may_survive_and_its_size_settles(
            maxes in prop::collection::vec((0u64..200_000, 0u64..200_000), 1..40),
            first in 1u64..300_000,
            limit in 1u64..300_000,
        ) {
            let mut held = 0;
            for (max, more) in maxes {
                let needs = ArenaNeeds { max, max_of_all: max + more, first, limit };
                held = needs.size(held).unwrap_or(held);
                prop_assert!(held >= max.min(first).min(limit));
                prop_assert!((1..=limit).contains(&held));
                prop_assert_eq!(needs.size(held), None);
            }
        }
    }
}
