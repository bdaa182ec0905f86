//! Soze in integers, as kernels and switches run it. It is what a program in eBPF is held to: it adds, multiplies and shifts
//! words of 64 bits, and divides without signs alone.
//!
//! Rates and weights are logarithms, base 2, with 32 bits after the point. Every shift rounds to the nearest: what is lost is
//! lost to both sides, and many small updates come as far as one large one.

use super::{MOST_RATIO, MOST_RISE_RTTS, RateUpdate};

/// One, with 32 bits after the point.
pub const ONE: i64 = 1 << 32;
/// log2(e), with 31 bits after the point.
const LOG2_E: u32 = 3_098_164_009;
/// The square root of 2, with 31 bits after the point.
const SQRT_2: u64 = 3_037_000_500;
/// 2^x is the sum of these times powers of x, with 32 bits after the point: ln(2)^n / n!.
const POWERS: [i64; 10] =
    [1 << 32, 2_977_044_472, 1_031_764_991, 238_388_332, 41_309_550, 5_726_720, 661_577, 65_510, 5_676, 437];
/// Round trips that count in one update, at most.
const MOST_RTTS: u64 = 64;
/// Exponent of the smallest rate-per-weight: 2 to the power of minus this, times alpha.
const MOST_OCTAVES: u64 = 64;

/// `a * b`, where `b` has 31 bits after the point.
#[inline]
pub fn times(a: i64, b: u32) -> i64 {
    let (high, low, b) = (a >> 32, a & (ONE - 1), u64::from(b));
    (high * b as i64) * 2 + ((low as u64 * b + (1 << 30)) >> 31) as i64
}

/// The base-2 logarithm of `value`, with 32 bits after the point; of 0 that of 1.
pub fn log2(value: u64) -> i64 {
    let value = value.max(1);
    let zeros = value.leading_zeros();
    // The mantissa, from 1 to 2, with 31 bits after the point; from the square root of 2 on it is taken as twice one below 1.
    let mantissa = (value << zeros) >> 32;
    let above = u32::from(mantissa >= SQRT_2);
    let one = 1u64 << (31 + above);
    // log2(x) = 2 / ln 2 (z + z^3 / 3 + z^5 / 5 + ...) with z = (x - 1) / (x + 1).
    let size = ((mantissa.abs_diff(one) << 32) / (mantissa + one)) as i64;
    let square = (size * size) >> 32;
    let mut sum = ONE / 13;
    for odd in [ONE / 11, ONE / 9, ONE / 7, ONE / 5, ONE / 3, ONE] {
        sum = odd + ((square * sum) >> 32);
    }
    let part = 2 * times((size * sum) >> 32, LOG2_E);
    i64::from(63 - zeros + above) * ONE + if mantissa >= one { part } else { -part }
}

/// 2 to the power of `part`, from -1/2 to 1/2, both with 32 bits after the point.
#[inline]
fn power(part: i64) -> i64 {
    let mut sum = 0;
    for term in POWERS.iter().rev() {
        sum = term + ((sum * part + (1 << 31)) >> 32);
    }
    sum
}

/// The whole number next to `exponent`, and what is left.
#[inline]
fn split(exponent: i64) -> (i64, i64) {
    let whole = (exponent + ONE / 2) >> 32;
    (whole, exponent - (whole << 32))
}

/// 2 to the power of `exponent`, with 16 bits after the point; at most 2^46.
#[inline]
pub fn exp2(exponent: i64) -> u64 {
    let (whole, part) = split(exponent.min(46 * ONE));
    let value = power(part) as u64;
    if whole >= 16 {
        return value << (whole - 16);
    }
    let shift = (16 - whole).min(60);
    (value + (1 << (shift - 1))) >> shift
}

/// 1 less 2 to the power of minus `exponent`, which is not negative, with 31 bits after the point.
#[inline]
pub fn lost(exponent: i64) -> u32 {
    let (whole, part) = split(-exponent.min(60 * ONE));
    let shift = 1 - whole;
    let kept = (power(part) + (1 << (shift - 1))) >> shift;
    ((1 << 31) - kept) as u32
}

/// A time in RTTs, with 32 fractional bits: 64 at most, for times up to 4 s.
#[inline]
pub fn rtts(dt_ns: u64, rtt_ns: u64) -> u64 {
    let dt_ns = dt_ns.min(u64::from(u32::MAX));
    ((dt_ns << 32) / rtt_ns.max(1)).min(MOST_RTTS << 32)
}

/// `value`, which is positive, with `bits` bits after the point: for what is set once, outside of the kernel.
pub(super) fn rounded(value: f64, bits: u32) -> u64 {
    libm::round(value * (1u64 << bits) as f64) as u64
}

/// The logarithm of a positive number, with 32 bits after the point.
pub(super) fn log2_of(value: f64) -> i64 {
    libm::round(libm::log2(value) * ONE as f64) as i64
}

/// An update in fixed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedUpdate {
    log2_alpha: i64,
    /// log2(alpha / beta) / p, a ns, with 48 bits after the point.
    slope: u64,
    k_ns: u32,
    /// Largest delay above k that counts, ns.
    most_above_ns: u64,
    /// With 31 bits after the point.
    m: u32,
    exact: bool,
}

impl FixedUpdate {
    /// The same as `update`. Done once for each setting.
    pub fn new(update: &RateUpdate) -> Self {
        let target = &update.target;
        let slope = rounded(target.span() * std::f64::consts::LOG2_E / target.p_ns, 48);
        let most_above_ns = (MOST_OCTAVES << 48) / slope.max(1);
        let p_ns = libm::round(target.p_ns) as u64;
        FixedUpdate {
            log2_alpha: log2_of(target.alpha_bps),
            slope,
            k_ns: libm::round(target.k_ns) as u32,
            most_above_ns: if update.exact { p_ns.min(most_above_ns) } else { most_above_ns },
            m: rounded(update.m, 31).min(u64::from(u32::MAX)) as u32,
            exact: update.exact,
        }
    }

    /// log2 of alpha, the slope, what counts above k, k, m, and whether it is exact.
    pub(super) fn parts(&self) -> (i64, u64, u64, u32, u32, bool) {
        (self.log2_alpha, self.slope, self.most_above_ns, self.k_ns, self.m, self.exact)
    }

    /// The exponent of U for an update `rtts` round trips after the one before, with 31 bits after the point.
    #[inline]
    fn exponent(&self, rtts: u64) -> u32 {
        if self.exact {
            return lost(times(times(rtts as i64, self.m), LOG2_E));
        }
        let m = u64::from(self.m);
        ((m * rtts.min(ONE as u64) + (1 << 31)) >> 32) as u32
    }

    /// T inverse: the logarithm of the rate-per-weight for a delay.
    #[inline]
    pub fn log2_share(&self, delay_ns: u32) -> i64 {
        let above_ns = u64::from(delay_ns.saturating_sub(self.k_ns)).min(self.most_above_ns);
        self.log2_alpha - ((above_ns * self.slope + (1 << 15)) >> 16) as i64
    }

    /// The logarithm of the rate after feedback of `delay_ns`; `rtts` as [`rtts`] gives it, logarithms of bit/s and of the
    /// weight.
    #[inline]
    pub fn next(&self, log2_rate: i64, log2_weight: i64, delay_ns: u32, rtts: u64) -> i64 {
        let off = self.log2_share(delay_ns) + log2_weight - log2_rate;
        const { assert!(MOST_RATIO == 2.0, "a change of at most one in the logarithm") };
        let fall = rtts as i64;
        let rise = if self.exact { fall.min(MOST_RISE_RTTS as i64 * ONE) } else { fall };
        log2_rate + times(off, self.exponent(rtts)).clamp(-fall, rise)
    }
}
