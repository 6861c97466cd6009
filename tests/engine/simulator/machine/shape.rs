//! How types lie in memory, and as plain values.

use naga::{ArraySize, Handle, Module, ScalarKind, Type, TypeInner};
use std::rc::Rc;

/// What a word of 32 bits means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unsigned,
    Signed,
    Float,
    Bool,
}

/// A type. Sizes, offsets and strides are in words.
///
/// In memory, values have the gaps that WGSL demands. As plain values and in variables of an
/// invocation they are *packed*: one word per scalar, without gaps.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Scalar(Kind),
    /// In memory only. Its value is a scalar.
    Atomic(Kind),
    Vector(u32, Kind),
    Matrix {
        columns: u32,
        rows: u32,
    },
    Array {
        element: Rc<Self>,
        /// `None` if the buffer decides.
        len: Option<u32>,
        stride: u32,
    },
    Struct {
        /// Offset and type of each member.
        members: Vec<(u32, Rc<Self>)>,
    },
}

impl Shape {
    /// The shape of a type of `module`.
    pub fn of(module: &Module, ty: Handle<Type>) -> Result<Rc<Self>, String> {
        Self::of_inner(module, &module.types[ty].inner)
    }

    pub fn of_inner(module: &Module, inner: &TypeInner) -> Result<Rc<Self>, String> {
        let shape = match inner {
            TypeInner::Scalar(scalar) => Self::Scalar(kind(*scalar)?),
            TypeInner::Atomic(scalar) => Self::Atomic(kind(*scalar)?),
            TypeInner::Vector { size, scalar } => Self::Vector(*size as u32, kind(*scalar)?),
            TypeInner::Matrix { columns, rows, .. } => Self::Matrix {
                columns: *columns as u32,
                rows: *rows as u32,
            },
            TypeInner::Array { base, size, stride } => Self::Array {
                element: Self::of(module, *base)?,
                len: match size {
                    ArraySize::Constant(len) => Some(len.get()),
                    ArraySize::Dynamic => None,
                    ArraySize::Pending(_) => return Err("an array with an override".into()),
                },
                stride: stride / 4,
            },
            TypeInner::Struct { members, .. } => {
                let member = |member: &naga::StructMember| {
                    Ok((member.offset / 4, Self::of(module, member.ty)?))
                };
                let members: Result<_, String> = members.iter().map(member).collect();
                Self::Struct { members: members? }
            }
            other => return Err(format!("a value of type {other:?}")),
        };
        Ok(Rc::new(shape))
    }

    /// What the word of a scalar or the words of a vector or a matrix mean.
    pub fn kind(&self) -> Result<Kind, String> {
        match self {
            Self::Scalar(kind) | Self::Atomic(kind) | Self::Vector(_, kind) => Ok(*kind),
            Self::Matrix { .. } => Ok(Kind::Float),
            _ => Err(format!("arithmetic with {self:?}")),
        }
    }

    /// Number of scalars.
    pub fn scalars(&self) -> u32 {
        match self {
            Self::Scalar(_) | Self::Atomic(_) => 1,
            Self::Vector(size, _) => *size,
            Self::Matrix { columns, rows } => columns * rows,
            Self::Array { element, len, .. } => element.scalars() * len.unwrap_or(0),
            Self::Struct { members } => members.iter().map(|(_, shape)| shape.scalars()).sum(),
        }
    }

    /// The type of a component, an element or a member.
    pub fn part(&self, index: u32) -> Result<Rc<Self>, String> {
        match self {
            Self::Vector(_, kind) => Ok(Rc::new(Self::Scalar(*kind))),
            Self::Matrix { rows, .. } => Ok(Rc::new(Self::Vector(*rows, Kind::Float))),
            Self::Array { element, .. } => Ok(element.clone()),
            Self::Struct { members } => Ok(members[index as usize].1.clone()),
            Self::Scalar(_) | Self::Atomic(_) => Err("a part of a scalar".into()),
        }
    }

    /// Where part `index` begins.
    pub fn offset(&self, index: u32, is_packed: bool) -> u32 {
        match self {
            Self::Struct { members } if is_packed => {
                let before = members[..index as usize].iter();
                before.map(|(_, shape)| shape.scalars()).sum()
            }
            Self::Struct { members } => members[index as usize].0,
            _ => index * self.stride(is_packed),
        }
    }

    /// Words from one part to the next.
    pub fn stride(&self, is_packed: bool) -> u32 {
        match self {
            Self::Matrix { rows, .. } if is_packed => *rows,
            // A column of three has the room of four.
            Self::Matrix { rows, .. } => rows.next_power_of_two(),
            Self::Array { element, .. } if is_packed => element.scalars(),
            Self::Array { stride, .. } => *stride,
            _ => 1,
        }
    }

    /// Number of parts; `None` if the buffer decides.
    pub fn len(&self) -> Option<u32> {
        match self {
            Self::Scalar(_) | Self::Atomic(_) => Some(0),
            Self::Vector(size, _) => Some(*size),
            Self::Matrix { columns, .. } => Some(*columns),
            Self::Array { len, .. } => *len,
            Self::Struct { members } => Some(members.len() as u32),
        }
    }

    /// The word of each scalar in memory.
    pub fn leaves(&self, is_packed: bool) -> Vec<u32> {
        if is_packed {
            return (0..self.scalars()).collect();
        }
        if let Self::Scalar(_) | Self::Atomic(_) = self {
            return vec![0];
        }
        let mut leaves = Vec::new();
        for index in 0..self.len().unwrap_or(0) {
            let first = self.offset(index, false);
            if let Ok(part) = self.part(index) {
                leaves.extend(part.leaves(false).iter().map(|leaf| first + leaf));
            }
        }
        leaves
    }

    /// Number of words in memory, without the gap behind the last one.
    pub fn words(&self) -> u32 {
        self.leaves(false).last().map_or(0, |last| last + 1)
    }
}

fn kind(scalar: naga::Scalar) -> Result<Kind, String> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Uint, 4) => Ok(Kind::Unsigned),
        (ScalarKind::Sint, 4) => Ok(Kind::Signed),
        (ScalarKind::Float, 4) => Ok(Kind::Float),
        (ScalarKind::Bool, _) => Ok(Kind::Bool),
        _ => Err(format!("a scalar of type {scalar:?}")),
    }
}
