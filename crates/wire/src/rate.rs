//! A rate in 16 bits.

/// A rate, bit/s, with 6 bits of exponent and 10 of fraction: steps of at most 0.1% from 1 bit/s to 2^64. Code 0 is
/// the rate 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate16(u16);

const FRACTION_BITS: u32 = 10;
/// Fraction bits of an f64.
const LONG_FRACTION_BITS: u32 = 52;
const BIAS: u64 = 1023;

impl Rate16 {
    /// Rate 0.
    pub const ZERO: Rate16 = Rate16(0);

    /// The largest rate that is at most `bps`: rounding never overloads a link. At 1 bit/s and below the result is 0.
    #[inline]
    pub fn at_most(bps: f64) -> Rate16 {
        if bps.is_nan() || bps < 1.0 {
            return Rate16::ZERO;
        }
        let code = (bps.to_bits() >> (LONG_FRACTION_BITS - FRACTION_BITS)) - (BIAS << FRACTION_BITS);
        Rate16(code.min(u16::MAX.into()) as u16)
    }

    /// The rate in bit/s.
    #[inline]
    pub fn bps(self) -> f64 {
        if self.0 == 0 {
            return 0.0;
        }
        f64::from_bits((u64::from(self.0) + (BIAS << FRACTION_BITS)) << (LONG_FRACTION_BITS - FRACTION_BITS))
    }

    /// The encoded 16 bits.
    pub fn code(self) -> u16 {
        self.0
    }

    /// Decodes 16 bits.
    pub fn from_code(code: u16) -> Rate16 {
        Rate16(code)
    }
}
