//! The update in fixed point, as kernels and switches run it: the logarithm of the rate, base 2, with 16 bits after the
//! point. An update multiplies, adds and shifts. Only [`log2`] divides; a weight's is taken once, when it is set.

use super::{MOST_RATIO, MOST_RISE_RTTS, Update};

/// One, with 16 bits after the point.
pub const ONE: i64 = 1 << 16;
/// log2(e).
const LOG2_E: i64 = 94_548;

/// The base-2 logarithm of `value / ONE`, with 16 bits after the point; of 0 that of the least positive value.
pub fn log2(value: u64) -> i64 {
    let value = value.max(1);
    let mut exponent = 63 - i64::from(value.leading_zeros());
    // The mantissa, from 0.75 to 1.5, with 30 bits after the point.
    let mut mantissa = if exponent > 30 { value >> (exponent - 30) } else { value << (30 - exponent) } as i64;
    if mantissa >= 3 << 29 {
        mantissa >>= 1;
        exponent += 1;
    }
    // log2(x) = 2 / ln 2 (z + z^3 / 3 + z^5 / 5 + z^7 / 7) with z = (x - 1) / (x + 1).
    let one = 1i64 << 30;
    let z = ((mantissa - one) << 30) / (mantissa + one);
    let square = (z * z) >> 30;
    let mut sum = one / 7;
    for odd in [5, 3, 1] {
        sum = one / odd + ((square * sum) >> 30);
    }
    let log = ((z * sum) >> 30) * 2 * LOG2_E;
    (exponent - 16) * ONE + ((log + (1 << 29)) >> 30)
}

/// 2 to the power of `exponent`, both with 16 bits after the point; for exponents from -16 to 46.
#[inline]
pub fn exp2(exponent: i64) -> u64 {
    let (whole, part) = (exponent >> 16, (exponent & (ONE - 1)) << 14);
    // Taylor's series of 2^x at 0, with 30 bits after the point.
    let mut sum = 165_394i64;
    for term in [1_431_627, 10_327_412, 59_597_084, 257_941_186, 744_261_118, 1 << 30] {
        sum = term + ((sum * part) >> 30);
    }
    if whole >= 14 { (sum as u64) << (whole - 14).min(33) } else { (sum as u64) >> (14 - whole).min(63) }
}

/// An update in fixed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedUpdate {
    log2_alpha: i64,
    /// log2(alpha / beta) / p, a ns, with 32 bits after the point.
    slope: i64,
    k_ns: i64,
    p_ns: i64,
    /// With 16 bits after the point.
    m: i64,
    exact: bool,
}

impl FixedUpdate {
    /// The same as `update`. Done once for each setting.
    pub fn new(update: &Update) -> Self {
        let target = &update.target;
        let q16 = |x: f64| libm::round(x * ONE as f64) as i64;
        let slope = target.span() * std::f64::consts::LOG2_E / target.p_ns;
        FixedUpdate {
            log2_alpha: q16(libm::log2(target.alpha_bps)),
            slope: libm::round(slope * (1u64 << 32) as f64) as i64,
            k_ns: libm::round(target.k_ns) as i64,
            p_ns: libm::round(target.p_ns) as i64,
            m: q16(update.m),
            exact: update.exact,
        }
    }

    /// The exponent of U for an update `rtts` round trips after the one before.
    #[inline]
    fn exponent(&self, rtts: i64) -> i64 {
        if !self.exact {
            return (self.m * rtts.min(ONE)) >> 16;
        }
        let power = ((self.m * rtts) >> 16).min(16 * ONE);
        ONE - exp2(-((power * LOG2_E) >> 16).min(16 * ONE)) as i64
    }

    /// The logarithm of the rate after feedback of `delay_ns`; `rtts` with 16 bits after the point, logarithms of bit/s and of
    /// the weight likewise.
    #[inline]
    pub fn next(&self, log2_rate: i64, log2_weight: i64, delay_ns: u32, rtts: u32) -> i64 {
        let most_ns = if self.exact { self.p_ns } else { i64::from(u32::MAX) };
        let above_ns = (i64::from(delay_ns) - self.k_ns).clamp(0, most_ns);
        let share = self.log2_alpha - ((above_ns * self.slope) >> 16);
        let off = share + log2_weight - log2_rate;
        const { assert!(MOST_RATIO == 2.0, "a change of at most one in the logarithm") };
        let fall = i64::from(rtts);
        let rise = if self.exact { fall.min(MOST_RISE_RTTS as i64 * ONE) } else { fall };
        log2_rate + ((self.exponent(i64::from(rtts)) * off) >> 16).clamp(-fall, rise)
    }
}
