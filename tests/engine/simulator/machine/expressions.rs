//! From naga's module to a program: expressions.

use super::{
    arithmetic,
    lower::{Body, Bound, Lowering, Place, Value},
    program::{Op, Register, Space, Term},
    shape::{Kind, Shape},
};
use naga::{BinaryOperator, Expression, Handle, Literal, RelationalFunction};
use std::rc::Rc;

impl<'a> Lowering<'a> {
    /// What an expression stands for. Constants need no statement that evaluates them.
    pub fn bound(
        &mut self,
        body: &mut Body<'a>,
        handle: Handle<Expression>,
    ) -> Result<Bound, String> {
        if let Some(bound) = body.bound.get(&handle) {
            return Ok(bound.clone());
        }
        let steps = self.program.ops.len();
        let bound = self.expression(body, handle)?;
        // Only the lanes that are active now have what a step computes.
        if self.program.ops.len() == steps {
            body.bound.insert(handle, bound.clone());
        }
        Ok(bound)
    }

    pub fn value(
        &mut self,
        body: &mut Body<'a>,
        handle: Handle<Expression>,
    ) -> Result<Value, String> {
        match self.bound(body, handle)? {
            Bound::Value(value) => Ok(value),
            Bound::Place(place) => Err(format!("a value, not a pointer to {:?}", place.shape)),
        }
    }

    pub fn scalar(
        &mut self,
        body: &mut Body<'a>,
        handle: Handle<Expression>,
    ) -> Result<Register, String> {
        Ok(self.value(body, handle)?.registers[0])
    }

    pub fn pointer(
        &mut self,
        body: &mut Body<'a>,
        handle: Handle<Expression>,
    ) -> Result<Place, String> {
        match self.bound(body, handle)? {
            Bound::Place(place) => Ok(place),
            Bound::Value(value) => Err(format!("a pointer, not a value of {:?}", value.shape)),
        }
    }

    pub fn expression(
        &mut self,
        body: &mut Body<'a>,
        handle: Handle<Expression>,
    ) -> Result<Bound, String> {
        let module = self.module;
        let value = match &body.expressions[handle] {
            Expression::GlobalVariable(global) => return Ok(Bound::Place(self.global(*global)?)),
            Expression::LocalVariable(local) => {
                return Ok(Bound::Place(body.locals[local].clone()));
            }
            Expression::FunctionArgument(index) => {
                return Ok(body.arguments[*index as usize].clone());
            }
            Expression::AccessIndex { base, index } => {
                let base = self.bound(body, *base)?;
                return part(base, *index);
            }
            Expression::Access { base, index } => {
                let index = self.scalar(body, *index)?;
                match self.bound(body, *base)? {
                    Bound::Place(place) => return element(place, index).map(Bound::Place),
                    Bound::Value(value) => self.pick(&value, index)?,
                }
            }
            Expression::Literal(literal) => self.literal(*literal)?,
            Expression::Constant(constant) => {
                self.global_value(module.constants[*constant].init)?
            }
            Expression::Override(declared) => self.override_value(*declared)?,
            Expression::ZeroValue(ty) => self.zero(Shape::of(module, *ty)?),
            Expression::Compose { ty, components } => {
                let mut registers = Vec::new();
                for component in components {
                    registers.extend_from_slice(&self.value(body, *component)?.registers);
                }
                Value {
                    registers: registers.into(),
                    shape: Shape::of(module, *ty)?,
                }
            }
            Expression::Splat { size, value } => {
                let value = self.value(body, *value)?;
                let size = *size as u32;
                Value {
                    registers: vec![value.registers[0]; size as usize].into(),
                    shape: Rc::new(Shape::Vector(size, value.shape.kind()?)),
                }
            }
            Expression::Swizzle {
                size,
                vector,
                pattern,
            } => {
                let vector = self.value(body, *vector)?;
                let size = *size as u32;
                let components = pattern[..size as usize].iter();
                Value {
                    registers: components
                        .map(|component| vector.registers[*component as usize])
                        .collect(),
                    shape: Rc::new(Shape::Vector(size, vector.shape.kind()?)),
                }
            }
            Expression::Load { pointer } => {
                let place = self.pointer(body, *pointer)?;
                self.load(&place)
            }
            Expression::Unary { op, expr } => {
                let value = self.value(body, *expr)?;
                let function = arithmetic::unary(*op, value.shape.kind()?)?;
                self.map(&value, value.shape.clone(), function)
            }
            Expression::Binary { op, left, right } => {
                let (left, right) = (self.value(body, *left)?, self.value(body, *right)?);
                self.binary(*op, &left, &right)?
            }
            Expression::Select {
                condition,
                accept,
                reject,
            } => {
                let condition = self.value(body, *condition)?;
                let (accept, reject) = (self.value(body, *accept)?, self.value(body, *reject)?);
                self.zip(&reject, &accept, &condition, arithmetic::select)
            }
            Expression::Relational { fun, argument } => {
                let op = match fun {
                    RelationalFunction::All => BinaryOperator::LogicalAnd,
                    RelationalFunction::Any => BinaryOperator::LogicalOr,
                    other => return Err(format!("{other:?}")),
                };
                let value = self.value(body, *argument)?;
                self.fold(&value, op)?
            }
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                ..
            } => {
                let first = self.value(body, *arg)?;
                let rest = [*arg1, *arg2];
                let rest = rest.into_iter().flatten();
                let rest: Result<Vec<_>, _> = rest.map(|arg| self.value(body, arg)).collect();
                self.math(*fun, &first, &rest?)?
            }
            Expression::As {
                expr,
                kind,
                convert,
            } => {
                let value = self.value(body, *expr)?;
                let to = match kind {
                    naga::ScalarKind::Uint => Kind::Unsigned,
                    naga::ScalarKind::Sint => Kind::Signed,
                    naga::ScalarKind::Float => Kind::Float,
                    naga::ScalarKind::Bool => Kind::Bool,
                    other => return Err(format!("a conversion to {other:?}")),
                };
                let function = arithmetic::cast(value.shape.kind()?, to, convert.is_some());
                let shape = match *value.shape {
                    Shape::Vector(size, _) => Shape::Vector(size, to),
                    _ => Shape::Scalar(to),
                };
                self.map(&value, Rc::new(shape), function)
            }
            Expression::ArrayLength(array) => {
                let place = self.pointer(body, *array)?;
                let Space::Buffer(buffer) = place.address.space else {
                    return Err("the length of an array that is in no buffer".into());
                };
                let value = self.fresh(Rc::new(Shape::Scalar(Kind::Unsigned)));
                self.emit(Op::Length {
                    to: value.registers[0],
                    buffer,
                    first: place.address.first,
                    stride: place.shape.stride(false),
                });
                value
            }
            other => return Err(format!("the expression {other:?}")),
        };
        Ok(Bound::Value(value))
    }

    fn literal(&mut self, literal: Literal) -> Result<Value, String> {
        let (word, kind) = match literal {
            Literal::F32(value) => (value.to_bits(), Kind::Float),
            Literal::U32(value) => (value, Kind::Unsigned),
            Literal::I32(value) => (value.cast_unsigned(), Kind::Signed),
            Literal::Bool(value) => (u32::from(value), Kind::Bool),
            other => return Err(format!("the literal {other:?}")),
        };
        Ok(Value {
            registers: Rc::new([self.constant(word)]),
            shape: Rc::new(Shape::Scalar(kind)),
        })
    }

    /// An element of a value, by an index that is not known before.
    fn pick(&mut self, value: &Value, index: Register) -> Result<Value, String> {
        let part = value.shape.part(0)?;
        let each = part.scalars() as usize;
        let picked = self.fresh(part);
        for (scalar, to) in picked.registers.iter().enumerate() {
            let from = value.registers.iter().skip(scalar).step_by(each).copied();
            self.emit(Op::Pick {
                to: *to,
                from: from.collect(),
                index,
            });
        }
        Ok(picked)
    }
}

/// A part by an index that is known.
fn part(base: Bound, index: u32) -> Result<Bound, String> {
    Ok(match base {
        Bound::Value(value) => {
            let shape = value.shape.part(index)?;
            let first = value.shape.offset(index, true) as usize;
            let end = first + shape.scalars() as usize;
            Bound::Value(Value {
                registers: value.registers[first..end].into(),
                shape,
            })
        }
        Bound::Place(mut place) => {
            let is_packed = place.address.space == Space::Registers;
            place.address.first += place.shape.offset(index, is_packed);
            place.shape = place.shape.part(index)?;
            Bound::Place(place)
        }
    })
}

/// An element by an index that is not known before.
fn element(mut place: Place, index: Register) -> Result<Place, String> {
    let is_packed = place.address.space == Space::Registers;
    place.address.terms.push(Term {
        index,
        stride: place.shape.stride(is_packed),
        len: place.shape.len(),
    });
    place.shape = place.shape.part(0)?;
    Ok(place)
}
