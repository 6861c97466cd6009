//! A dispatch: workgroups that start, run in some order, and end.

use super::{
    memory::Memory,
    program::Program,
    schedule::{Able, Scheduler},
    subgroup::{Position, Stop, Subgroup},
};
use std::collections::BTreeMap;

/// The content of buffers, by their binding in group 0.
pub type Buffers = BTreeMap<u32, Vec<u32>>;

/// Most turns of a dispatch. None of the tests' takes a tenth of them, unless it never ends.
const MAX_TURNS: u64 = 3_000_000;

/// How to run a program.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    pub workgroups: [u32; 3],
    pub subgroup_size: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Ready,
    /// At the barrier before this step.
    Waiting(usize),
    Ended,
}

struct Workgroup {
    /// Its number in the dispatch, x first.
    index: u32,
    /// Turns so far of its subgroups.
    turns: u64,
    memory: Vec<u32>,
    subgroups: Vec<(Subgroup, State)>,
}

impl Workgroup {
    fn new(program: &Program, index: u32, dispatch: Dispatch) -> Self {
        let [x, y, _] = dispatch.workgroups;
        let size = dispatch.subgroup_size;
        let threads = program.workgroup_size.iter().product::<u32>();
        let subgroups = (0..threads.div_ceil(size)).map(|subgroup| {
            let position = Position {
                workgroup: [index % x, index / x % y, index / (x * y)],
                workgroups: dispatch.workgroups,
                subgroup,
                size,
            };
            (Subgroup::new(program, position), State::Ready)
        });
        Self {
            index,
            turns: 0,
            memory: vec![0; program.workgroup_words as usize],
            subgroups: subgroups.collect(),
        }
    }

    /// Lets all subgroups go on if all have come to the barrier.
    fn meet(&mut self) -> Result<(), String> {
        let states = self.subgroups.iter().map(|(_, state)| *state);
        let states: Vec<_> = states.collect();
        if states.contains(&State::Ready) || states.iter().all(|state| *state == State::Ended) {
            return Ok(());
        }
        if states.iter().any(|state| *state != states[0]) {
            return Err("subgroups of a workgroup are at different barriers".into());
        }
        for (_, state) in &mut self.subgroups {
            *state = State::Ready;
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        let mut states = self.subgroups.iter();
        states.all(|(_, state)| *state == State::Ended)
    }
}

impl Program {
    /// Runs the kernel. Returns the number of turns.
    ///
    /// # Errors
    /// What WGSL does not allow, and a dispatch that does not end.
    pub fn run(
        &self,
        dispatch: Dispatch,
        buffers: &mut Buffers,
        scheduler: &mut dyn Scheduler,
    ) -> Result<u64, String> {
        let mut bound = Vec::new();
        for buffer in &self.buffers {
            let found = buffers.remove(&buffer.binding);
            let found = found.filter(|_| buffer.group == 0);
            bound.push(found.ok_or_else(|| format!("no buffer for {}", buffer.name))?);
        }
        let result = self.run_bound(dispatch, &mut bound, scheduler);
        let bindings = self.buffers.iter().map(|buffer| buffer.binding);
        buffers.extend(bindings.zip(bound));
        result
    }

    fn run_bound(
        &self,
        dispatch: Dispatch,
        buffers: &mut [Vec<u32>],
        scheduler: &mut dyn Scheduler,
    ) -> Result<u64, String> {
        let mut waiting: Vec<u32> = (0..dispatch.workgroups.iter().product()).collect();
        let mut resident: Vec<Workgroup> = Vec::new();
        let mut able: Vec<Able> = Vec::new();
        for turn in 0..MAX_TURNS {
            while resident.len() < scheduler.resident() && !waiting.is_empty() {
                let next = waiting.remove(scheduler.start(waiting.len()));
                resident.push(Workgroup::new(self, next, dispatch));
            }
            able.clear();
            for (place, workgroup) in resident.iter().enumerate() {
                for (subgroup, (_, state)) in workgroup.subgroups.iter().enumerate() {
                    if *state == State::Ready {
                        able.push(Able {
                            workgroup: workgroup.index,
                            turns: workgroup.turns,
                            at: (place, subgroup),
                        });
                    }
                }
            }
            if able.is_empty() {
                return Ok(turn);
            }
            let Some(Able { at, .. }) = scheduler.pick(&able).map(|picked| able[picked]) else {
                return Err(format!("after {turn} turns, no workgroup may run"));
            };
            let workgroup = &mut resident[at.0];
            workgroup.turns += 1;
            let index = workgroup.index;
            let mut memory = Memory {
                buffers,
                workgroup: &mut workgroup.memory,
            };
            let (subgroup, state) = &mut workgroup.subgroups[at.1];
            let stop = subgroup
                .run(self, &mut memory)
                .map_err(|error| format!("workgroup {index}: {error}"))?;
            match stop {
                Stop::Shared => {}
                Stop::Barrier(step) => *state = State::Waiting(step),
                Stop::End => *state = State::Ended,
            }
            if stop != Stop::Shared {
                workgroup
                    .meet()
                    .map_err(|error| format!("workgroup {index}: {error}"))?;
                if workgroup.has_ended() {
                    let ended = resident.remove(at.0).subgroups;
                    let ended = ended.into_iter().map(|(subgroup, _)| subgroup);
                    self.spare.borrow_mut().extend(ended);
                }
            }
        }
        Err(format!("{MAX_TURNS} turns without an end"))
    }
}
