//! A subgroup that takes the steps of a program, all lanes at a time.

use super::{
    memory::Memory,
    program::{Lane, Mask, Op, Program, Reach, Register, Space},
};
use naga::BuiltIn;

/// Most steps of a subgroup between two points where others could run.
const MAX_STEPS: u64 = 50_000_000;

/// Where a subgroup is in the dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub workgroup: [u32; 3],
    pub workgroups: [u32; 3],
    pub subgroup: u32,
    pub size: u32,
}

/// Why a subgroup stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was at an atomic, or stored something. Others may run now.
    Shared,
    /// It waits at a barrier, at this step.
    Barrier(usize),
    End,
}

pub struct Subgroup {
    next: usize,
    active: u128,
    /// All lanes that there are.
    lanes: u128,
    pub size: usize,
    masks: Vec<u128>,
    /// One word per register and lane.
    pub words: Vec<u32>,
}

impl Subgroup {
    /// At the first step. Registers begin with anything, as a kernel writes each before it reads
    /// it.
    pub fn new(program: &Program, position: Position) -> Self {
        let Position { size, subgroup, .. } = position;
        let threads = program.workgroup_size.iter().product::<u32>();
        let len = size.min(threads - subgroup * size);
        let lanes = u128::MAX >> (128 - len);
        let spare = program.spare.borrow_mut().pop();
        let mut this = match spare.filter(|spare| spare.size == size as usize) {
            Some(spare) => Self {
                next: 0,
                active: lanes,
                lanes,
                ..spare
            },
            None => Self {
                next: 0,
                active: lanes,
                lanes,
                size: size as usize,
                masks: vec![0; program.masks],
                words: vec![0xdead_beef; (program.registers * size) as usize],
            },
        };
        for (register, word) in &program.constants {
            this.row(*register).fill(*word);
        }
        for (register, builtin) in &program.inputs {
            for lane in 0..len {
                let input = input(program, position, *builtin, lane);
                // A scalar has one register.
                let len = if is_vector(*builtin) { 3 } else { 1 };
                for (component, word) in input.into_iter().take(len).enumerate() {
                    this.row(register + component as u32)[lane as usize] = word;
                }
            }
        }
        this
    }

    fn row(&mut self, register: Register) -> &mut [u32] {
        let first = register as usize * self.size;
        &mut self.words[first..first + self.size]
    }

    pub fn get(&self, register: Register, lane: usize) -> u32 {
        self.words[register as usize * self.size + lane]
    }

    pub fn set(&mut self, register: Register, lane: usize, word: u32) {
        self.words[register as usize * self.size + lane] = word;
    }

    fn is_active(&self, lane: usize) -> bool {
        self.active >> lane & 1 != 0
    }

    pub fn active_lanes(&self) -> Lanes {
        Lanes {
            left: self.active,
            all: (self.active == self.lanes).then_some((0, self.lanes.count_ones() as usize)),
        }
    }

    /// The active lanes whose register is not zero.
    fn lanes_with(&self, register: Register) -> u128 {
        let lanes = self.active_lanes();
        let with = lanes.filter(|lane| self.get(register, *lane) != 0);
        with.fold(0, |lanes, lane| lanes | 1 << lane)
    }

    /// Runs until others may run.
    pub fn run(&mut self, program: &Program, memory: &mut Memory<'_>) -> Result<Stop, String> {
        for _ in 0..MAX_STEPS {
            let op = &program.ops[self.next];
            self.next += 1;
            match op {
                Op::End => return Ok(Stop::End),
                Op::Barrier if self.active == 0 => {}
                Op::Barrier => {
                    self.expect_all("a barrier")?;
                    return Ok(Stop::Barrier(self.next));
                }
                Op::Atomic { .. } | Op::Store { .. } if self.active == 0 => {}
                Op::Atomic {
                    at,
                    step,
                    value,
                    result,
                } => {
                    for lane in self.active_lanes() {
                        self.atomic(program, memory, lane, (at, *step), (*value, *result))?;
                    }
                    return Ok(Stop::Shared);
                }
                Op::Store { to, from, leaves } => {
                    self.store(program, memory, to, (from, leaves))?;
                    if to.space != Space::Registers {
                        return Ok(Stop::Shared);
                    }
                }
                Op::Load { to, from, leaves } => self.load(program, memory, (*to, leaves), from)?,
                Op::Length {
                    to,
                    buffer,
                    first,
                    stride,
                } => {
                    let len = memory.buffers[*buffer].len() as u32;
                    let len = len.saturating_sub(*first) / stride;
                    self.row(*to).fill(len);
                }
                op => self.step(op)?,
            }
        }
        Err(format!("{MAX_STEPS} steps without an end"))
    }

    /// A step within the subgroup.
    fn step(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Unary(f, to, from) => {
                for lane in self.active_lanes() {
                    self.set(*to, lane, f(self.get(*from, lane)));
                }
            }
            Op::Binary(f, to, [a, b]) => {
                for lane in self.active_lanes() {
                    self.set(*to, lane, f(self.get(*a, lane), self.get(*b, lane)));
                }
            }
            Op::Ternary(f, to, [a, b, c]) => {
                for lane in self.active_lanes() {
                    let [a, b, c] = [*a, *b, *c].map(|from| self.get(from, lane));
                    self.set(*to, lane, f(a, b, c));
                }
            }
            Op::Move { to, from } => {
                for (to, from) in to.iter().zip(from) {
                    for lane in self.active_lanes() {
                        self.set(*to, lane, self.get(*from, lane));
                    }
                }
            }
            Op::Pick { to, from, index } => {
                for lane in self.active_lanes() {
                    let index = self.get(*index, lane) as usize;
                    let from = from.get(index).ok_or("an index beyond a value")?;
                    self.set(*to, lane, self.get(*from, lane));
                }
            }
            Op::Ballot { to, predicate } => {
                if self.active != 0 {
                    self.expect_all("a ballot")?;
                }
                let ballot = match predicate {
                    Some(predicate) => self.lanes_with(*predicate),
                    None => self.active,
                };
                for part in 0..4 {
                    let word = (ballot >> (32 * part)) as u32;
                    for lane in self.active_lanes() {
                        self.set(to + part, lane, word);
                    }
                }
            }
            Op::Reduce {
                step,
                neutral,
                reach,
                to,
                from,
            } => {
                if self.active != 0 {
                    self.expect_all("a sum over lanes")?;
                }
                let mut sum = *neutral;
                for lane in self.active_lanes() {
                    let before = sum;
                    sum = step(sum, self.get(*from, lane));
                    let so_far = if *reach == Reach::UpTo { sum } else { before };
                    self.set(*to, lane, so_far);
                }
                if *reach == Reach::All {
                    for lane in self.active_lanes() {
                        self.set(*to, lane, sum);
                    }
                }
            }
            Op::Gather { lane, to, from } => {
                if self.active != 0 {
                    self.expect_all("a shuffle")?;
                }
                self.gather(*lane, *to, *from);
            }
            Op::Save(mask) => self.masks[*mask] = self.active,
            Op::Restore { from, without } => {
                let gone = without.iter().map(|mask| self.masks[*mask]);
                self.active = self.masks[*from] & !gone.fold(0, |all, mask| all | mask);
            }
            Op::Keep(condition, wanted) => {
                let with = self.lanes_with(*condition);
                self.active &= if *wanted { with } else { !with };
            }
            Op::KeepCase {
                selector,
                any_of,
                none_of,
            } => {
                for lane in self.active_lanes() {
                    let value = self.get(*selector, lane);
                    let is_other = none_of.as_ref().is_some_and(|none| !none.contains(&value));
                    if !is_other && !any_of.contains(&value) {
                        self.active &= !(1 << lane);
                    }
                }
            }
            Op::Clear(mask) => self.masks[*mask] = 0,
            Op::Leave(mask) => self.leave(self.active, *mask),
            Op::LeaveIf(condition, mask) => self.leave(self.lanes_with(*condition), *mask),
            Op::Jump(to) => self.next = *to,
            Op::JumpIfNone(to) if self.active == 0 => self.next = *to,
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self, lanes: u128, mask: Mask) {
        self.masks[mask] |= lanes;
        self.active &= !lanes;
    }

    /// WGSL demands uniform control flow here. So the result cannot depend on where a GPU lets
    /// lanes meet again.
    fn expect_all(&self, what: &str) -> Result<(), String> {
        if self.active == self.lanes {
            return Ok(());
        }
        let (active, all) = (self.active.count_ones(), self.lanes.count_ones());
        Err(format!("{what} that {active} of {all} lanes reach"))
    }

    fn gather(&mut self, from_lane: Lane, to: Register, from: Register) {
        let old = self.row(from).to_vec();
        let first = self.active.trailing_zeros() as usize;
        for lane in self.active_lanes() {
            let by = |register| self.get(register, lane) as usize;
            let source = match from_lane {
                Lane::First => first,
                Lane::At(register) => by(register),
                Lane::Before(register) => lane.wrapping_sub(by(register)),
                Lane::After(register) => lane.wrapping_add(by(register)),
                Lane::Flipped(register) => lane ^ by(register),
            };
            // Undefined in WGSL. Whoever uses it gets a number that is hard to miss.
            let is_there = source < self.size && self.is_active(source);
            let word = if is_there { old[source] } else { 0xdead_beef };
            self.set(to, lane, word);
        }
    }
}

/// Lanes, the first one first.
pub struct Lanes {
    left: u128,
    /// If they are all lanes, as they are most of the time: the next one, and the end.
    all: Option<(usize, usize)>,
}

impl Iterator for Lanes {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if let Some((next, end)) = &mut self.all {
            *next += 1;
            return (*next <= *end).then(|| *next - 1);
        }
        let lane = self.left.trailing_zeros() as usize;
        self.left &= self.left.wrapping_sub(1);
        (lane < 128).then_some(lane)
    }
}

fn is_vector(builtin: BuiltIn) -> bool {
    matches!(
        builtin,
        BuiltIn::WorkGroupId
            | BuiltIn::NumWorkGroups
            | BuiltIn::LocalInvocationId
            | BuiltIn::GlobalInvocationId
    )
}

/// What an entry point is told. A scalar is the first component.
fn input(program: &Program, position: Position, builtin: BuiltIn, lane: u32) -> [u32; 3] {
    let size = program.workgroup_size;
    let thread = position.subgroup * position.size + lane;
    let local = [
        thread % size[0],
        thread / size[0] % size[1],
        thread / (size[0] * size[1]),
    ];
    let threads = size.iter().product::<u32>();
    match builtin {
        BuiltIn::WorkGroupId => position.workgroup,
        BuiltIn::NumWorkGroups => position.workgroups,
        BuiltIn::LocalInvocationId => local,
        BuiltIn::GlobalInvocationId => {
            [0, 1, 2].map(|axis| position.workgroup[axis] * size[axis] + local[axis])
        }
        BuiltIn::LocalInvocationIndex => [thread, 0, 0],
        BuiltIn::SubgroupId => [position.subgroup, 0, 0],
        BuiltIn::SubgroupSize => [position.size, 0, 0],
        BuiltIn::SubgroupInvocationId => [lane, 0, 0],
        BuiltIn::NumSubgroups => [threads.div_ceil(position.size), 0, 0],
        _ => [u32::MAX; 3],
    }
}
