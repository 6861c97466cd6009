//! What WGSL's operators and functions do with words.

use super::shape::Kind;
use naga::{AtomicFunction, BinaryOperator, MathFunction, SubgroupOperation, UnaryOperator};

type One = fn(u32) -> u32;
type Two = fn(u32, u32) -> u32;
type Three = fn(u32, u32, u32) -> u32;
/// A function of one word that makes four, by the number of the component.
type Unpack = [One; 4];

fn float(word: u32) -> f32 {
    f32::from_bits(word)
}

fn signed(word: u32) -> i32 {
    word.cast_signed()
}

fn unsigned(number: i32) -> u32 {
    number.cast_unsigned()
}

pub fn unary(op: UnaryOperator, kind: Kind) -> Result<One, String> {
    Ok(match (op, kind) {
        (UnaryOperator::Negate, Kind::Float) => |a| (-float(a)).to_bits(),
        (UnaryOperator::Negate, _) => u32::wrapping_neg,
        (UnaryOperator::LogicalNot, _) => |a| a ^ 1,
        (UnaryOperator::BitwiseNot, _) => |a| !a,
    })
}

/// A comparison of floats, of signed and of unsigned numbers.
macro_rules! compared {
    ($kind:expr, $op:tt) => {
        match $kind {
            Kind::Float => |a, b| u32::from(float(a) $op float(b)),
            Kind::Signed => |a, b| u32::from(signed(a) $op signed(b)),
            Kind::Unsigned | Kind::Bool => |a, b| u32::from(a $op b),
        }
    };
}

pub fn binary(op: BinaryOperator, kind: Kind) -> Result<Two, String> {
    use BinaryOperator as Op;
    let function: Two = match (op, kind) {
        (Op::Add, Kind::Float) => |a, b| (float(a) + float(b)).to_bits(),
        (Op::Subtract, Kind::Float) => |a, b| (float(a) - float(b)).to_bits(),
        (Op::Multiply, Kind::Float) => |a, b| (float(a) * float(b)).to_bits(),
        (Op::Divide, Kind::Float) => |a, b| (float(a) / float(b)).to_bits(),
        (Op::Modulo, Kind::Float) => |a, b| (float(a) % float(b)).to_bits(),
        (Op::Add, _) => u32::wrapping_add,
        (Op::Subtract, _) => u32::wrapping_sub,
        (Op::Multiply, _) => u32::wrapping_mul,
        // By zero: the dividend, and no remainder. The same for what overflows.
        (Op::Divide, Kind::Signed) => {
            |a, b| unsigned(signed(a).checked_div(signed(b)).unwrap_or(signed(a)))
        }
        (Op::Modulo, Kind::Signed) => {
            |a, b| unsigned(signed(a).checked_rem(signed(b)).unwrap_or(0))
        }
        (Op::Divide, _) => |a, b| a.checked_div(b).unwrap_or(a),
        (Op::Modulo, _) => |a, b| a.checked_rem(b).unwrap_or(0),
        (Op::Equal, _) => compared!(kind, ==),
        (Op::NotEqual, _) => compared!(kind, !=),
        (Op::Less, _) => compared!(kind, <),
        (Op::LessEqual, _) => compared!(kind, <=),
        (Op::Greater, _) => compared!(kind, >),
        (Op::GreaterEqual, _) => compared!(kind, >=),
        (Op::And | Op::LogicalAnd, _) => |a, b| a & b,
        (Op::InclusiveOr | Op::LogicalOr, _) => |a, b| a | b,
        (Op::ExclusiveOr, _) => |a, b| a ^ b,
        // Only the low five bits of the distance count.
        (Op::ShiftLeft, _) => u32::wrapping_shl,
        (Op::ShiftRight, Kind::Signed) => |a, b| unsigned(signed(a).wrapping_shr(b)),
        (Op::ShiftRight, _) => u32::wrapping_shr,
    };
    Ok(function)
}

pub fn select(reject: u32, accept: u32, condition: u32) -> u32 {
    if condition == 0 { reject } else { accept }
}

/// A conversion, or the same bits.
pub fn cast(from: Kind, to: Kind, converts: bool) -> One {
    match (from, to) {
        _ if !converts => |a| a,
        (Kind::Float, Kind::Signed) => |a| unsigned(float(a) as i32),
        (Kind::Float, Kind::Unsigned) => |a| float(a) as u32,
        (Kind::Float, Kind::Bool) => |a| u32::from(float(a) != 0.0),
        (Kind::Signed, Kind::Float) => |a| (signed(a) as f32).to_bits(),
        (Kind::Unsigned | Kind::Bool, Kind::Float) => |a| (a as f32).to_bits(),
        (Kind::Signed | Kind::Unsigned, Kind::Bool) => |a| u32::from(a != 0),
        _ => |a| a,
    }
}

/// The smaller and the larger one.
pub fn min_max(kind: Kind) -> (Two, Two) {
    match kind {
        Kind::Float => (
            |a, b| float(a).min(float(b)).to_bits(),
            |a, b| float(a).max(float(b)).to_bits(),
        ),
        Kind::Signed => (
            |a, b| unsigned(signed(a).min(signed(b))),
            |a, b| unsigned(signed(a).max(signed(b))),
        ),
        _ => (u32::min, u32::max),
    }
}

/// A function of each component.
pub fn math_of_one(function: MathFunction, kind: Kind) -> Option<One> {
    use MathFunction as Math;
    let function: One = match (function, kind) {
        (Math::Abs, Kind::Float) => |a| float(a).abs().to_bits(),
        (Math::Abs, Kind::Signed) => |a| unsigned(signed(a).wrapping_abs()),
        (Math::Abs, _) => |a| a,
        (Math::Ceil, _) => |a| float(a).ceil().to_bits(),
        (Math::Floor, _) => |a| float(a).floor().to_bits(),
        (Math::Round, _) => |a| float(a).round_ties_even().to_bits(),
        (Math::Trunc, _) => |a| float(a).trunc().to_bits(),
        (Math::Sqrt, _) => |a| float(a).sqrt().to_bits(),
        (Math::InverseSqrt, _) => |a| (1.0 / float(a).sqrt()).to_bits(),
        (Math::CountOneBits, _) => u32::count_ones,
        (Math::CountLeadingZeros, _) => u32::leading_zeros,
        (Math::CountTrailingZeros, _) => u32::trailing_zeros,
        (Math::ReverseBits, _) => u32::reverse_bits,
        // u32::MAX if there is no bit.
        (Math::FirstTrailingBit, _) => |a| if a == 0 { u32::MAX } else { a.trailing_zeros() },
        (Math::FirstLeadingBit, Kind::Unsigned) => |a| 31u32.wrapping_sub(a.leading_zeros()),
        // Of a negative number, the first bit that is not set.
        (Math::FirstLeadingBit, _) => {
            |a| 31u32.wrapping_sub((if signed(a) < 0 { !a } else { a }).leading_zeros())
        }
        _ => return None,
    };
    Some(function)
}

/// A function that takes a word apart into four numbers.
pub fn unpack(function: MathFunction) -> Option<Unpack> {
    fn component<const K: usize>(word: u32) -> u32 {
        let byte = word.to_le_bytes()[K].cast_signed();
        (f32::from(byte) / 127.0).max(-1.0).to_bits()
    }
    let is_known = function == MathFunction::Unpack4x8snorm;
    is_known.then_some([
        component::<0>,
        component::<1>,
        component::<2>,
        component::<3>,
    ])
}

pub fn math_of_two(function: MathFunction, kind: Kind) -> Option<Two> {
    match function {
        MathFunction::Min => Some(min_max(kind).0),
        MathFunction::Max => Some(min_max(kind).1),
        MathFunction::Pow => Some(|a, b| float(a).powf(float(b)).to_bits()),
        _ => None,
    }
}

pub fn math_of_three(function: MathFunction, kind: Kind) -> Option<Three> {
    let function: Three = match (function, kind) {
        (MathFunction::Fma, _) => |a, b, c| (float(a).mul_add(float(b), float(c))).to_bits(),
        (MathFunction::Clamp, Kind::Float) => {
            |a, low, high| float(a).max(float(low)).min(float(high)).to_bits()
        }
        (MathFunction::Clamp, Kind::Signed) => {
            |a, low, high| unsigned(signed(a).max(signed(low)).min(signed(high)))
        }
        (MathFunction::Clamp, _) => |a, low, high| a.max(low).min(high),
        _ => return None,
    };
    Some(function)
}

/// What an atomic function makes of the old and the given value.
pub fn atomic(function: AtomicFunction, kind: Kind) -> Two {
    match function {
        AtomicFunction::Add => u32::wrapping_add,
        AtomicFunction::Subtract => u32::wrapping_sub,
        AtomicFunction::And => |a, b| a & b,
        AtomicFunction::ExclusiveOr => |a, b| a ^ b,
        AtomicFunction::InclusiveOr => |a, b| a | b,
        AtomicFunction::Min => min_max(kind).0,
        AtomicFunction::Max => min_max(kind).1,
        AtomicFunction::Exchange { .. } => |_, b| b,
    }
}

/// A reduction over lanes, and the value that changes nothing.
pub fn reduction(op: SubgroupOperation, kind: Kind) -> Result<(Two, u32), String> {
    use SubgroupOperation as Sub;
    Ok(match op {
        Sub::Add => (binary(BinaryOperator::Add, kind)?, 0),
        Sub::Mul => (binary(BinaryOperator::Multiply, kind)?, kind.word(1.0)),
        Sub::Min => match kind {
            Kind::Float => (min_max(kind).0, f32::INFINITY.to_bits()),
            Kind::Signed => (min_max(kind).0, unsigned(i32::MAX)),
            _ => (min_max(kind).0, u32::MAX),
        },
        Sub::Max => match kind {
            Kind::Float => (min_max(kind).1, f32::NEG_INFINITY.to_bits()),
            Kind::Signed => (min_max(kind).1, unsigned(i32::MIN)),
            _ => (min_max(kind).1, 0),
        },
        Sub::All => (|a, b| a & b, 1),
        Sub::And => (|a, b| a & b, u32::MAX),
        Sub::Any | Sub::Or => (|a, b| a | b, 0),
        Sub::Xor => (|a, b| a ^ b, 0),
    })
}
