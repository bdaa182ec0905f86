//! A rate in 16 bits.

/// A rate, bit/s, as its logarithm: a code of c stands for 2^(c / 1024) bit/s, and 0 for none at all. Codes go to 2^64 bit/s
/// in steps of 0.07%.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u16);

const STEPS: f64 = 1024.0;

impl Rate {
    /// No rate.
    pub const ZERO: Rate = Rate(0);

    /// The largest that is at most `bps`: rates that fit a link fit it after rounding, too. Below 1 bit/s it is zero.
    pub fn at_most(bps: f64) -> Rate {
        if bps.is_nan() || bps < 1.0 {
            return Rate::ZERO;
        }
        // The logarithm and its power are rounded: begin a step too high.
        let mut code = ((libm::log2(bps) * STEPS).floor() + 1.0).clamp(0.0, f64::from(u16::MAX)) as u16;
        while code > 0 && Rate(code).bps() > bps {
            code -= 1;
        }
        Rate(code)
    }

    /// In bit/s.
    pub fn bps(self) -> f64 {
        if self.0 == 0 { 0.0 } else { libm::exp2(f64::from(self.0) / STEPS) }
    }

    /// As it is sent.
    pub fn code(self) -> u16 {
        self.0
    }

    /// From what was sent.
    pub fn from_code(code: u16) -> Rate {
        Rate(code)
    }
}
