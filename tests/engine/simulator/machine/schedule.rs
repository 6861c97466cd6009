//! Who runs next: fair schedulers, and unfair ones.
//!
//! WGSL promises no progress of a workgroup while others run. The schedulers here are what a GPU
//! may do, and worse.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A subgroup that can run.
#[derive(Clone, Copy, Debug)]
pub struct Able {
    /// The number of its workgroup in the dispatch.
    pub workgroup: u32,
    /// Turns so far of the workgroup.
    pub turns: u64,
    /// Where the machine has it.
    pub at: (usize, usize),
}

pub trait Scheduler {
    /// Most workgroups at a time. Others start when one ends.
    fn resident(&self) -> usize {
        usize::MAX
    }

    /// Which of `waiting` workgroups starts next. They are in the order of the dispatch.
    fn start(&mut self, _waiting: usize) -> usize {
        0
    }

    /// Which of these runs next, until it has done something that others see; `None` if none of
    /// them ever will.
    fn pick(&mut self, able: &[Able]) -> Option<usize>;
}

/// Everyone in turn.
#[derive(Default)]
pub struct RoundRobin(usize);

impl Scheduler for RoundRobin {
    fn pick(&mut self, able: &[Able]) -> Option<usize> {
        self.0 += 1;
        Some(self.0 % able.len())
    }
}

/// Anyone. Now and then one workgroup runs for a while, alone.
pub struct Random {
    pub rng: ChaCha8Rng,
    pub resident: usize,
    /// The workgroup that runs alone, and for how many turns.
    alone: (u32, u32),
}

impl Random {
    pub fn new(rng: ChaCha8Rng, resident: usize) -> Self {
        Self {
            rng,
            resident,
            alone: (0, 0),
        }
    }
}

impl Scheduler for Random {
    fn resident(&self) -> usize {
        self.resident
    }

    fn start(&mut self, waiting: usize) -> usize {
        self.rng.random_range(0..waiting)
    }

    fn pick(&mut self, able: &[Able]) -> Option<usize> {
        let picked = self.rng.random_range(0..able.len());
        if self.alone.1 == 0 && self.rng.random_bool(0.02) {
            self.alone = (able[picked].workgroup, self.rng.random_range(10..300));
        }
        let (workgroup, turns) = self.alone;
        self.alone.1 = turns.saturating_sub(1);
        let mut others = (0..able.len()).cycle().skip(picked).take(able.len());
        let is_alone = |index: &usize| turns > 0 && able[*index].workgroup == workgroup;
        Some(others.find(is_alone).unwrap_or(picked))
    }
}

/// As GPUs do it by experience: a workgroup that runs keeps its place until it ends, and those that
/// run make progress. The others wait for a place. They start in the reverse order.
pub struct Occupancy {
    pub places: usize,
    pub turns: usize,
}

impl Scheduler for Occupancy {
    fn resident(&self) -> usize {
        self.places
    }

    fn start(&mut self, waiting: usize) -> usize {
        waiting - 1
    }

    fn pick(&mut self, able: &[Able]) -> Option<usize> {
        self.turns += 1;
        Some(self.turns % able.len())
    }
}

/// Unfair: all workgroups get so many turns. From then on, only one of them runs, until it ends:
/// the one of the highest or of the lowest number. Then the next one does.
pub struct OneAtATime {
    turns: u64,
    highest_first: bool,
    /// The workgroups below this number end before the others run alone.
    pub first: u32,
}

impl OneAtATime {
    pub fn new(turns: u64, highest_first: bool) -> Self {
        Self {
            turns,
            highest_first,
            first: 0,
        }
    }
}

impl Scheduler for OneAtATime {
    fn pick(&mut self, able: &[Able]) -> Option<usize> {
        let young = able.iter().position(|able| able.turns < self.turns);
        let early = able.iter().position(|able| able.workgroup < self.first);
        let one = |index: &usize| able[*index].workgroup;
        young.or(early).or(match self.highest_first {
            // Of equal ones, the last subgroup, or the first one.
            true => (0..able.len()).max_by_key(one),
            false => (0..able.len()).min_by_key(one),
        })
    }
}

/// Unfair: one workgroup stops after so many turns, and never runs again.
pub struct Frozen {
    pub workgroup: u32,
    pub turns: u64,
    /// Whether it runs at last, when all others have ended.
    pub thaws: bool,
    /// Whether it had turns left to take when the others had ended.
    pub was_frozen: bool,
    pub next: usize,
}

impl Scheduler for Frozen {
    fn pick(&mut self, able: &[Able]) -> Option<usize> {
        let is_frozen = |able: &Able| able.workgroup == self.workgroup && able.turns >= self.turns;
        // Those before it have one turn each, in which they take what they work on, in order. Then
        // it runs alone: all others wait for it.
        let is_before = |able: &Able| able.workgroup < self.workgroup && able.turns == 0;
        let is_first = |able: &Able| able.workgroup == self.workgroup && able.turns < self.turns;
        let first = able.iter().position(is_before);
        if let Some(first) = first.or_else(|| able.iter().position(is_first)) {
            return Some(first);
        }
        self.next += 1;
        let others: Vec<_> = (0..able.len()).filter(|i| !is_frozen(&able[*i])).collect();
        if let Some(count) = core::num::NonZeroUsize::new(others.len()) {
            return Some(others[self.next % count]);
        }
        self.was_frozen = true;
        self.thaws.then_some(0)
    }
}
