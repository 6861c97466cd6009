//! Numbers with what rounding may have done to them: every device is between.

use core::ops::{Add, Div, Mul, Sub};

/// A result of 32-bit arithmetic: at most `error` from `value`.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    pub value: f64,
    pub error: f64,
}

impl Near {
    /// Half of the last bit of 1, which is what one operation may round.
    pub const UNIT: f64 = 1.0 / (1u64 << 24) as f64;

    pub fn exact(value: f32) -> Self {
        Self {
            value: f64::from(value),
            error: 0.0,
        }
    }

    /// A value with an error, rounded by `units` units more. What is tiny may be taken for zero.
    fn rounded(value: f64, error: f64, units: f64) -> Self {
        Self {
            value,
            error: error + units * Self::UNIT * (value.abs() + error) + 1e-37,
        }
    }

    /// A sum in any order: of n terms, each partial sum is at most the sum of magnitudes.
    pub fn sum<const N: usize>(terms: [Self; N]) -> Self {
        let value = terms.iter().map(|term| term.value).sum();
        let error: f64 = terms.iter().map(|term| term.error).sum();
        let max: f64 = terms.iter().map(|term| term.value.abs() + term.error).sum();
        Self {
            value,
            error: error + N as f64 * Self::UNIT * max,
        }
    }

    pub fn abs(self) -> Self {
        Self {
            value: self.value.abs(),
            ..self
        }
    }

    pub fn max_zero(self) -> Self {
        Self {
            value: self.value.max(0.0),
            ..self
        }
    }

    /// WGSL: as exact as 1 / inverseSqrt, which are 2.5 and 2 units in the last place.
    pub fn sqrt(self) -> Self {
        let (low, high) = ((self.value - self.error).max(0.0), self.value + self.error);
        let value = self.value.sqrt();
        let error = (value - low.sqrt()).max(high.sqrt() - value);
        Self::rounded(value, error, 9.0)
    }
}

impl Add for Near {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::rounded(self.value + other.value, self.error + other.error, 1.0)
    }
}

impl Sub for Near {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::rounded(self.value - other.value, self.error + other.error, 1.0)
    }
}

impl Mul for Near {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let error = self.value.abs() * other.error
            + other.value.abs() * self.error
            + self.error * other.error;
        Self::rounded(self.value * other.value, error, 1.0)
    }
}

/// WGSL: 2.5 units in the last place, which are 5 roundings.
impl Div for Near {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let min = other.value.abs() - other.error;
        let error = match min > 0.0 {
            true => (self.error + value.abs() * other.error) / min,
            false => f64::INFINITY,
        };
        Self::rounded(value, error, 5.0)
    }
}
