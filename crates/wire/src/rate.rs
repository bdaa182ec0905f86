//! A rate in 16 bits.

/// A rate, bit/s, as a number with 6 bits of exponent and 10 of fraction: steps of at most 0.1% from 1 bit/s to 2^64. The code 0
/// stands for no rate at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate16(u16);

const FRACTION_BITS: u32 = 10;
/// Of an f64.
const LONG_FRACTION_BITS: u32 = 52;
const BIAS: u64 = 1023;

impl Rate16 {
    /// No rate.
    pub const ZERO: Rate16 = Rate16(0);

    /// The largest that is at most `bps`: rates that fit a link fit it after rounding, too. At 1 bit/s and below it is zero.
    #[inline]
    pub fn at_most(bps: f64) -> Rate16 {
        if bps.is_nan() || bps < 1.0 {
            return Rate16::ZERO;
        }
        let code = (bps.to_bits() >> (LONG_FRACTION_BITS - FRACTION_BITS)) - (BIAS << FRACTION_BITS);
        Rate16(code.min(u16::MAX.into()) as u16)
    }

    /// In bit/s.
    #[inline]
    pub fn bps(self) -> f64 {
        if self.0 == 0 {
            return 0.0;
        }
        f64::from_bits((u64::from(self.0) + (BIAS << FRACTION_BITS)) << (LONG_FRACTION_BITS - FRACTION_BITS))
    }

    /// As it is sent.
    pub fn code(self) -> u16 {
        self.0
    }

    /// From what was sent.
    pub fn from_code(code: u16) -> Rate16 {
        Rate16(code)
    }
}
