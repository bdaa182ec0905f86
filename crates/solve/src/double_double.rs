//! Double-double arithmetic: unevaluated sums of two doubles (Dekker, 1971).

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// Magnitude below which a number counts as 0 up to rounding: coefficients, costs and right-hand sides are near 1 or
/// a limited number of orders below it.
const ZERO: f64 = 1e-22;

/// A sum of two doubles, the second below half a unit in the last place of the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DoubleDouble(pub f64, pub f64);

impl From<f64> for DoubleDouble {
    fn from(x: f64) -> Self {
        DoubleDouble(x, 0.0)
    }
}

impl DoubleDouble {
    /// Whether the number exceeds 0 by more than a rounding error ([`ZERO`]).
    pub fn is_positive(self) -> bool {
        self.0 > ZERO
    }

    pub fn is_zero(self) -> bool {
        self.0.abs() <= ZERO
    }

    pub fn below(self, other: Self) -> bool {
        (self - other).0 < 0.0
    }
}

impl Neg for DoubleDouble {
    type Output = Self;
    fn neg(self) -> Self {
        DoubleDouble(-self.0, -self.1)
    }
}

impl Add for DoubleDouble {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        let sum = self.0 + b.0;
        let part = sum - self.0;
        let lost = (self.0 - (sum - part)) + (b.0 - part) + self.1 + b.1;
        let high = sum + lost;
        DoubleDouble(high, lost - (high - sum))
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        self + -b
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    fn mul(self, b: Self) -> Self {
        let product = self.0 * b.0;
        let lost = libm::fma(self.0, b.0, -product) + (self.0 * b.1 + self.1 * b.0);
        let high = product + lost;
        DoubleDouble(high, lost - (high - product))
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    fn div(self, b: Self) -> Self {
        let first = DoubleDouble::from(self.0 / b.0);
        let rest = self - b * first;
        let second = DoubleDouble::from(rest.0 / b.0);
        first + second + DoubleDouble::from((rest - b * second).0 / b.0)
    }
}

impl AddAssign for DoubleDouble {
    fn add_assign(&mut self, b: Self) {
        *self = *self + b;
    }
}

impl SubAssign for DoubleDouble {
    fn sub_assign(&mut self, b: Self) {
        *self = *self - b;
    }
}

impl Mul<f64> for DoubleDouble {
    type Output = Self;
    fn mul(self, b: f64) -> Self {
        self * DoubleDouble::from(b)
    }
}
