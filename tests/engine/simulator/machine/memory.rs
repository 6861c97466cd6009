//! How the lanes of a subgroup read and write memory.

use super::{
    program::{Address, AtomicStep, Program, Register, Space},
    subgroup::Subgroup,
};

/// What a subgroup reads and writes besides its registers.
pub struct Memory<'a> {
    /// One per buffer of the program.
    pub buffers: &'a mut [Vec<u32>],
    pub workgroup: &'a mut [u32],
}

impl Subgroup {
    /// The first word of what a lane reads or writes.
    pub fn address(&self, at: &Address, lane: usize) -> Result<usize, String> {
        let mut word = at.first as usize;
        for term in &at.terms {
            let index = self.get(term.index, lane);
            if term.len.is_some_and(|len| index >= len) {
                return Err(format!("index {index} of {:?}", term.len));
            }
            word += index as usize * term.stride as usize;
        }
        Ok(word)
    }

    pub fn load(
        &mut self,
        program: &Program,
        memory: &Memory<'_>,
        (to, leaves): (Register, &[u32]),
        from: &Address,
    ) -> Result<(), String> {
        for lane in self.active_lanes() {
            let first = self.address(from, lane)?;
            for (index, leaf) in leaves.iter().enumerate() {
                let at = first + *leaf as usize;
                let word = match from.space {
                    Space::Registers => Some(self.get(at as u32, lane)),
                    Space::Workgroup => memory.workgroup.get(at).copied(),
                    Space::Buffer(buffer) => memory.buffers[buffer].get(at).copied(),
                };
                let word = word.ok_or_else(|| beyond(program, from, at))?;
                self.set(to + index as u32, lane, word);
            }
        }
        Ok(())
    }

    pub fn store(
        &mut self,
        program: &Program,
        memory: &mut Memory<'_>,
        to: &Address,
        (from, leaves): (&[Register], &[u32]),
    ) -> Result<(), String> {
        for lane in self.active_lanes() {
            let first = self.address(to, lane)?;
            for (from, leaf) in from.iter().zip(leaves) {
                let at = first + *leaf as usize;
                let word = self.get(*from, lane);
                let place = match to.space {
                    Space::Registers => Some(&mut self.words[at * self.size + lane]),
                    Space::Workgroup => memory.workgroup.get_mut(at),
                    Space::Buffer(buffer) => memory.buffers[buffer].get_mut(at),
                };
                *place.ok_or_else(|| beyond(program, to, at))? = word;
            }
        }
        Ok(())
    }

    pub fn atomic(
        &mut self,
        program: &Program,
        memory: &mut Memory<'_>,
        lane: usize,
        (at, step): (&Address, AtomicStep),
        (value, result): (Register, Option<Register>),
    ) -> Result<(), String> {
        let word = self.address(at, lane)?;
        let place = match at.space {
            Space::Registers => return Err("an atomic in registers".into()),
            Space::Workgroup => memory.workgroup.get_mut(word),
            Space::Buffer(buffer) => memory.buffers[buffer].get_mut(word),
        };
        let place = place.ok_or_else(|| beyond(program, at, word))?;
        let (old, value) = (*place, self.get(value, lane));
        match step {
            AtomicStep::Load => {}
            AtomicStep::Store => *place = value,
            AtomicStep::Update(f) => *place = f(old, value),
            AtomicStep::CompareExchange(compare) => {
                let is_same = old == self.get(compare, lane);
                if is_same {
                    *place = value;
                }
                if let Some(result) = result {
                    self.set(result + 1, lane, u32::from(is_same));
                }
            }
        }
        if let Some(result) = result {
            self.set(result, lane, old);
        }
        Ok(())
    }
}

fn beyond(program: &Program, at: &Address, word: usize) -> String {
    let name = match at.space {
        Space::Buffer(buffer) => program.buffers[buffer].name.as_str(),
        _ => "a variable",
    };
    format!("word {word} of {name}, which ends before")
}
