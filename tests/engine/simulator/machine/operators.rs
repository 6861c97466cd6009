//! From naga's module to a program: operators and functions of vectors.

use super::{
    arithmetic,
    lower::{Lowering, Value},
    program::Op,
    shape::{Kind, Shape},
};
use naga::{BinaryOperator, MathFunction};
use std::rc::Rc;

impl Lowering<'_> {
    /// A function of each component.
    pub fn map(&mut self, value: &Value, shape: Rc<Shape>, function: fn(u32) -> u32) -> Value {
        let result = self.fresh(shape);
        for (to, from) in result.registers.iter().zip(&*value.registers) {
            self.emit(Op::Unary(function, *to, *from));
        }
        result
    }

    /// A function of three components each. A scalar stands for each component.
    pub fn zip(&mut self, a: &Value, b: &Value, c: &Value, f: fn(u32, u32, u32) -> u32) -> Value {
        let result = self.fresh(a.shape.clone());
        for (index, to) in result.registers.iter().enumerate() {
            let of = |value: &Value| value.registers[index % value.registers.len()];
            self.emit(Op::Ternary(f, *to, [of(a), of(b), of(c)]));
        }
        result
    }

    pub fn binary(&mut self, op: BinaryOperator, a: &Value, b: &Value) -> Result<Value, String> {
        if op == BinaryOperator::Multiply
            && let Shape::Matrix { columns, rows } = *a.shape
            && let Shape::Vector(..) = *b.shape
        {
            return self.transform(a, b, (columns, rows));
        }
        if a.shape.kind()? == Kind::Float
            && (matches!(*a.shape, Shape::Matrix { .. })
                || matches!(*b.shape, Shape::Matrix { .. }))
        {
            return Err("a product of matrices".into());
        }
        let longer = if a.registers.len() < b.registers.len() {
            b
        } else {
            a
        };
        let kind = a.shape.kind()?;
        let is_comparison = matches!(
            op,
            BinaryOperator::Equal
                | BinaryOperator::NotEqual
                | BinaryOperator::Less
                | BinaryOperator::LessEqual
                | BinaryOperator::Greater
                | BinaryOperator::GreaterEqual
        );
        let shape = match *longer.shape {
            Shape::Vector(size, _) if is_comparison => Rc::new(Shape::Vector(size, Kind::Bool)),
            _ if is_comparison => Rc::new(Shape::Scalar(Kind::Bool)),
            _ => longer.shape.clone(),
        };
        let function = arithmetic::binary(op, kind)?;
        let result = self.fresh(shape);
        for (index, to) in result.registers.iter().enumerate() {
            let of = |value: &Value| value.registers[index % value.registers.len()];
            self.emit(Op::Binary(function, *to, [of(a), of(b)]));
        }
        Ok(result)
    }

    /// A matrix times a vector: columns, each times a component, added up.
    pub fn transform(
        &mut self,
        matrix: &Value,
        vector: &Value,
        (columns, rows): (u32, u32),
    ) -> Result<Value, String> {
        let shape = Rc::new(Shape::Vector(rows, Kind::Float));
        let mut sum: Option<Value> = None;
        for column in 0..columns {
            let first = (column * rows) as usize;
            let part = Value {
                registers: matrix.registers[first..first + rows as usize].into(),
                shape: shape.clone(),
            };
            let factor = component(vector, column)?;
            let product = self.binary(BinaryOperator::Multiply, &part, &factor)?;
            sum = Some(match sum {
                Some(sum) => self.binary(BinaryOperator::Add, &sum, &product)?,
                None => product,
            });
        }
        sum.ok_or_else(|| "a matrix without columns".into())
    }

    /// All components, combined from the first to the last.
    pub fn fold(&mut self, value: &Value, op: BinaryOperator) -> Result<Value, String> {
        let mut sum = component(value, 0)?;
        for index in 1..value.registers.len() as u32 {
            let next = component(value, index)?;
            sum = self.binary(op, &sum, &next)?;
        }
        Ok(sum)
    }

    pub fn math(
        &mut self,
        function: MathFunction,
        a: &Value,
        rest: &[Value],
    ) -> Result<Value, String> {
        use BinaryOperator as Op2;
        let kind = a.shape.kind()?;
        if let Some(functions) = arithmetic::unpack(function) {
            let result = self.fresh(Rc::new(Shape::Vector(4, Kind::Float)));
            for (to, function) in result.registers.iter().zip(functions) {
                self.emit(Op::Unary(function, *to, a.registers[0]));
            }
            return Ok(result);
        }
        match (function, rest) {
            (MathFunction::Dot, [b]) => {
                let products = self.binary(Op2::Multiply, a, b)?;
                self.fold(&products, Op2::Add)
            }
            (MathFunction::Length, []) => {
                let squares = self.binary(Op2::Multiply, a, a)?;
                let sum = self.fold(&squares, Op2::Add)?;
                self.math(MathFunction::Sqrt, &sum, &[])
            }
            (MathFunction::Distance, [b]) => {
                let between = self.binary(Op2::Subtract, a, b)?;
                self.math(MathFunction::Length, &between, &[])
            }
            (MathFunction::Normalize, []) => {
                let length = self.math(MathFunction::Length, a, &[])?;
                self.binary(Op2::Divide, a, &length)
            }
            (MathFunction::Cross, [b]) => {
                let turned = |value: &Value, order: [usize; 3]| Value {
                    registers: order.iter().map(|k| value.registers[*k]).collect(),
                    shape: value.shape.clone(),
                };
                let (first, second) = ([1, 2, 0], [2, 0, 1]);
                let one = self.binary(Op2::Multiply, &turned(a, first), &turned(b, second))?;
                let two = self.binary(Op2::Multiply, &turned(a, second), &turned(b, first))?;
                self.binary(Op2::Subtract, &one, &two)
            }
            (_, []) => match arithmetic::math_of_one(function, kind) {
                Some(f) => Ok(self.map(a, a.shape.clone(), f)),
                None => Err(format!("{function:?} of {:?}", a.shape)),
            },
            (_, [b]) => {
                let f = arithmetic::math_of_two(function, kind);
                let f = f.ok_or_else(|| format!("{function:?} of {:?}", a.shape))?;
                let result = self.fresh(a.shape.clone());
                for (index, to) in result.registers.iter().enumerate() {
                    self.emit(Op::Binary(f, *to, [a.registers[index], b.registers[index]]));
                }
                Ok(result)
            }
            (_, [b, c]) => match arithmetic::math_of_three(function, kind) {
                Some(f) => Ok(self.zip(a, b, c, f)),
                None => Err(format!("{function:?} of {:?}", a.shape)),
            },
            _ => Err(format!("{function:?}")),
        }
    }
}

fn component(value: &Value, index: u32) -> Result<Value, String> {
    Ok(Value {
        registers: Rc::new([value.registers[index as usize]]),
        shape: Rc::new(Shape::Scalar(value.shape.kind()?)),
    })
}
