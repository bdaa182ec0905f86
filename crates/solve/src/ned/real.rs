//! Trait for the two floating-point precisions of the iteration.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A floating-point type: single or double precision.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + AddAssign
    + Div<Output = Self>
    + Mul<Output = Self>
    + Sub<Output = Self>
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Infinity, the price of a failed link.
    const INFINITY: Self;
    /// The distance from 1 to the next number.
    const EPSILON: Self;
    /// The smallest normal number.
    const TINY: Self;

    /// The nearest number to `x`.
    fn of(x: f64) -> Self;
    /// Converts to a double.
    fn f64(self) -> f64;
    /// 1 / self for positive numbers, accurate to 16 bits, without a division; exact in double precision.
    fn about_recip(self) -> Self;

    /// Size of a number, bytes.
    const BYTES: usize;
    /// Appends the number's bytes, least significant first.
    fn write(self, bytes: &mut Vec<u8>);
    /// The number with these [`Real::BYTES`] bytes.
    fn read(bytes: &[u8]) -> Self;

    /// The larger of the two, in one instruction; neither may be NaN.
    #[inline(always)]
    fn or_more(self, least: Self) -> Self {
        if self > least { self } else { least }
    }
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const INFINITY: Self = f32::INFINITY;
    const EPSILON: Self = f32::EPSILON;
    const TINY: Self = f32::MIN_POSITIVE;

    const BYTES: usize = 4;

    #[inline(always)]
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        f32::from_le_bytes(std::array::from_fn(|i| bytes[i]))
    }
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn f64(self) -> f64 {
        f64::from(self)
    }
    /// Initial approximation by negating the exponent's bits, then two Newton steps for 1/r - x = 0.
    #[inline(always)]
    fn about_recip(self) -> Self {
        let guess = f32::from_bits(0x7ef3_11c3_u32.wrapping_sub(self.to_bits()));
        let once = guess * (2.0 - self * guess);
        let twice = once * (2.0 - self * once);
        // Beyond 1e37 the exponent overflows. A path's price is as large only over a failed link.
        if self < 1e37 { twice } else { 0.0 }
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const INFINITY: Self = f64::INFINITY;
    const EPSILON: Self = f64::EPSILON;
    const TINY: Self = f64::MIN_POSITIVE;

    const BYTES: usize = 8;

    #[inline(always)]
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        f64::from_le_bytes(std::array::from_fn(|i| bytes[i]))
    }
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn about_recip(self) -> Self {
        1.0 / self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_reciprocal_is_right_to_sixteen_bits() {
        for e in -3600..3600 {
            let x = (f64::from(e) / 100.0).exp() as f32;
            let off = (x.about_recip() * x - 1.0).abs();
            assert!(off < 1.5e-5, "1 / {x} is off by {off}");
        }
        assert_eq!(f32::INFINITY.about_recip(), 0.0, "nothing goes over a failed link");
    }
}
