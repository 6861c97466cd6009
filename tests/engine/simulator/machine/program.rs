//! A kernel as a list of steps. Functions are inlined, so there is one list.
//!
//! A *register* holds one word per lane. All lanes of a subgroup take the same step at a time. Each
//! step is taken by the *active* lanes alone; steps of control flow change which lanes are active,
//! and keep sets of lanes in *masks*.

use super::{shape::Kind, subgroup::Subgroup};
use naga::BuiltIn;
use std::cell::RefCell;

/// Index of a register.
pub type Register = u32;
/// Index of a mask.
pub type Mask = usize;

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// In registers.
    Registers,
    Workgroup,
    /// In the buffer with this index of [`Program::buffers`].
    Buffer(usize),
}

/// An index that is known while the kernel runs.
#[derive(Clone, Debug)]
pub struct Term {
    pub index: Register,
    /// Words, or registers, per step of the index.
    pub stride: u32,
    /// Number of elements; `None` if the buffer decides.
    pub len: Option<u32>,
}

/// The first word of something in memory, or its first register.
#[derive(Clone, Debug)]
pub struct Address {
    pub space: Space,
    pub first: u32,
    pub terms: Vec<Term>,
}

/// What an atomic operation does with the old and the given value.
#[derive(Clone, Copy)]
pub enum AtomicStep {
    Load,
    Store,
    Update(fn(u32, u32) -> u32),
    /// Only if the old value is that of the register. The second result says whether it was.
    CompareExchange(Register),
}

/// From which lane a lane takes a value.
#[derive(Clone, Copy, Debug)]
pub enum Lane {
    First,
    /// The lane of that number.
    At(Register),
    /// The lane so far before it, so far after it, and with these bits flipped.
    Before(Register),
    After(Register),
    Flipped(Register),
}

/// Which lanes a reduction covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    All,
    UpTo,
    Before,
}

/// One step.
pub enum Op {
    Unary(fn(u32) -> u32, Register, Register),
    Binary(fn(u32, u32) -> u32, Register, [Register; 2]),
    Ternary(fn(u32, u32, u32) -> u32, Register, [Register; 3]),
    /// Copies registers.
    Move {
        to: Box<[Register]>,
        from: Box<[Register]>,
    },
    /// The register of that index.
    Pick {
        to: Register,
        from: Box<[Register]>,
        index: Register,
    },
    /// Reads words of memory, each so far from the address, into registers from `to` on.
    Load {
        to: Register,
        from: Address,
        leaves: Box<[u32]>,
    },
    Store {
        to: Address,
        from: Box<[Register]>,
        leaves: Box<[u32]>,
    },
    Atomic {
        at: Address,
        step: AtomicStep,
        value: Register,
        result: Option<Register>,
    },
    /// Length of the array without one in a buffer.
    Length {
        to: Register,
        buffer: usize,
        first: u32,
        stride: u32,
    },
    Ballot {
        to: Register,
        predicate: Option<Register>,
    },
    Reduce {
        step: fn(u32, u32) -> u32,
        /// What changes nothing.
        neutral: u32,
        reach: Reach,
        to: Register,
        from: Register,
    },
    Gather {
        lane: Lane,
        to: Register,
        from: Register,
    },
    Barrier,

    // Control flow.
    /// Remembers the active lanes.
    Save(Mask),
    /// The lanes of `from` are active, without the lanes of others.
    Restore {
        from: Mask,
        without: Box<[Mask]>,
    },
    /// Lanes whose register has another value become inactive.
    Keep(Register, bool),
    /// Lanes become inactive unless the register has one of these values, or none of those.
    KeepCase {
        selector: Register,
        any_of: Box<[u32]>,
        none_of: Option<Box<[u32]>>,
    },
    Clear(Mask),
    /// The active lanes leave: they are added to the mask, and become inactive.
    Leave(Mask),
    /// The same for those whose register is true.
    LeaveIf(Register, Mask),
    Jump(usize),
    JumpIfNone(usize),
    End,
}

/// A buffer that the kernel binds.
#[derive(Clone, Debug)]
pub struct Binding {
    pub name: String,
    pub group: u32,
    pub binding: u32,
}

/// A kernel.
pub struct Program {
    pub ops: Vec<Op>,
    pub registers: u32,
    pub masks: usize,
    /// Values of registers that no step changes.
    pub constants: Vec<(Register, u32)>,
    /// First registers of what the entry point is told.
    pub inputs: Vec<(Register, BuiltIn)>,
    pub buffers: Vec<Binding>,
    /// Words of workgroup memory.
    pub workgroup_words: u32,
    pub workgroup_size: [u32; 3],
    /// Subgroups that have ended. Others take their memory.
    pub spare: RefCell<Vec<Subgroup>>,
}

impl Kind {
    /// The word of a literal.
    pub fn word(self, value: f64) -> u32 {
        match self {
            Self::Float => (value as f32).to_bits(),
            Self::Signed => (value as i32).cast_unsigned(),
            Self::Unsigned | Self::Bool => value as u32,
        }
    }
}
