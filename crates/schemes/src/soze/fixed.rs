//! Soze in integer arithmetic, as in kernels and switches: the reference of the eBPF program. It uses additions,
//! multiplications, shifts of 64-bit words, and unsigned division.
//!
//! Rates and weights are binary logarithms with 32 fractional bits. Every shift rounds to the nearest: rounding
//! errors are unbiased, so that many small updates have the effect of one large one.

use super::{MOST_RATIO, MOST_RISE_RTTS, RateUpdate};

/// The number 1, with 32 fractional bits.
pub const ONE: i64 = 1 << 32;
/// log2(e), with 31 fractional bits.
const LOG2_E: u32 = 3_098_164_009;
/// The square root of 2, with 31 fractional bits.
const SQRT_2: u64 = 3_037_000_500;
/// Coefficients of the power series of 2^x, with 32 fractional bits: ln(2)^n / n!.
const POWERS: [i64; 10] =
    [1 << 32, 2_977_044_472, 1_031_764_991, 238_388_332, 41_309_550, 5_726_720, 661_577, 65_510, 5_676, 437];
/// Largest number of RTTs that count in one update.
const MOST_RTTS: u64 = 64;
/// Number of halvings from alpha to the smallest rate/weight.
const MOST_OCTAVES: u64 = 64;

/// `a * b`, where `b` has 31 fractional bits.
#[inline]
pub fn times(a: i64, b: u32) -> i64 {
    let (high, low, b) = (a >> 32, a & (ONE - 1), u64::from(b));
    (high * b as i64) * 2 + ((low as u64 * b + (1 << 30)) >> 31) as i64
}

/// Binary logarithm of `value`, with 32 fractional bits; for 0 that of 1.
pub fn log2(value: u64) -> i64 {
    let value = value.max(1);
    let zeros = value.leading_zeros();
    // The mantissa, from 1 to 2, with 31 fractional bits; above the square root of 2 it is halved.
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

/// 2^`part` for -1/2 to 1/2, both with 32 fractional bits.
#[inline]
fn power(part: i64) -> i64 {
    let mut sum = 0;
    for term in POWERS.iter().rev() {
        sum = term + ((sum * part + (1 << 31)) >> 32);
    }
    sum
}

/// The integer nearest to `exponent`, and the remainder.
#[inline]
fn split(exponent: i64) -> (i64, i64) {
    let whole = (exponent + ONE / 2) >> 32;
    (whole, exponent - (whole << 32))
}

/// 2^`exponent` with 16 fractional bits; at most 2^46.
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

/// 1 - 2^-`exponent` for an `exponent` that is not negative, with 31 fractional bits.
#[inline]
pub fn lost(exponent: i64) -> u32 {
    let (whole, part) = split(-exponent.min(60 * ONE));
    let shift = 1 - whole;
    let kept = (power(part) + (1 << (shift - 1))) >> shift;
    ((1 << 31) - kept) as u32
}

/// A time in RTTs, with 32 fractional bits: at most 64, for times up to 4 s.
#[inline]
pub fn rtts(dt_ns: u64, rtt_ns: u64) -> u64 {
    let dt_ns = dt_ns.min(u64::from(u32::MAX));
    ((dt_ns << 32) / rtt_ns.max(1)).min(MOST_RTTS << 32)
}

/// `value`, positive, with `bits` fractional bits, for settings that are computed outside the kernel.
pub(super) fn rounded(value: f64, bits: u32) -> u64 {
    libm::round(value * (1u64 << bits) as f64) as u64
}

/// Binary logarithm of a positive number, with 32 fractional bits.
pub(super) fn log2_of(value: f64) -> i64 {
    libm::round(libm::log2(value) * ONE as f64) as i64
}

/// Rate update in fixed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedUpdate {
    log2_alpha: i64,
    /// log2(alpha / beta) / p, by which a delay lowers the logarithm of the rate/weight: per ns, with 48 fractional
    /// bits.
    slope: u64,
    k_ns: u32,
    /// Largest delay above k that counts, ns.
    most_above_ns: u64,
    /// m, the exponent of a rate update (Soze, equation 7), with 31 fractional bits.
    m: u32,
    exact: bool,
}

impl FixedUpdate {
    /// Converts `update` to fixed point; done once per set of parameters.
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

    /// log2 of alpha, slope, largest delay above k, k, m, and whether the update is exact.
    pub(super) fn parts(&self) -> (i64, u64, u64, u32, u32, bool) {
        (self.log2_alpha, self.slope, self.most_above_ns, self.k_ns, self.m, self.exact)
    }

    /// Exponent of U (Soze, equation 7) for an update `rtts` RTTs after the previous one, with 31 fractional bits.
    #[inline]
    fn exponent(&self, rtts: u64) -> u32 {
        if self.exact {
            return lost(times(times(rtts as i64, self.m), LOG2_E));
        }
        let m = u64::from(self.m);
        ((m * rtts.min(ONE as u64) + (1 << 31)) >> 32) as u32
    }

    /// Inverse of the target function T (Soze, equation 6): binary logarithm of the rate/weight for a delay.
    #[inline]
    pub fn log2_share(&self, delay_ns: u32) -> i64 {
        let above_ns = u64::from(delay_ns.saturating_sub(self.k_ns)).min(self.most_above_ns);
        self.log2_alpha - ((above_ns * self.slope + (1 << 15)) >> 16) as i64
    }

    /// Logarithm of the rate after feedback of `delay_ns`. Logarithms are of bit/s and of the weight; `rtts` is a
    /// result of [`rtts`].
    #[inline]
    pub fn next(&self, log2_rate: i64, log2_weight: i64, delay_ns: u32, rtts: u64) -> i64 {
        let off = self.log2_share(delay_ns) + log2_weight - log2_rate;
        const { assert!(MOST_RATIO == 2.0, "a change of at most one in the logarithm") };
        let fall = rtts as i64;
        let rise = if self.exact { fall.min(MOST_RISE_RTTS as i64 * ONE) } else { fall };
        log2_rate + times(off, self.exponent(rtts)).clamp(-fall, rise)
    }
}
