//! Division at links: exact, or by look-up tables as in a switch (PERC thesis, section 4.1, "Approximating
//! division", after Sharma and others, NSDI 2017).
//!
//! x / y = 2^(log2 x - log2 y). A ternary match finds a number's leading one; the bits behind it address a table of
//! logarithms, and the fraction of the difference a table of powers. Entries are 32-bit integers. The thesis gives the
//! tables' sizes (13, 52 and 340 KB) but not their layout: here the largest two powers of two that fit.

use std::sync::Arc;
use subak_core::InputError;
use subak_core::scheme::Params;

/// Fractional bits of a logarithm in its 32-bit entry: five integer bits suffice for 32-bit numbers.
const LOG_BITS: u32 = 26;
/// Fractional bits of an entry of the table of powers, whose values are in [1, 2).
const POWER_BITS: u32 = 30;

/// Fractional bits of a weight in table look-ups.
const WEIGHT_BITS: i32 = 32;

/// Method by which a link computes its bottleneck rate b = (C - SumE) / NumB.
#[derive(Debug, Clone, Default)]
pub enum PercDivision {
    /// Floating-point division.
    #[default]
    Exact,
    /// Division by look-up tables.
    Table(Arc<Tables>),
}

/// Tables of logarithms and powers of two.
#[derive(Debug)]
pub struct Tables {
    log_index_bits: u32,
    power_index_bits: u32,
    logs: Vec<u32>,
    powers: Vec<u32>,
}

impl Tables {
    /// Tables of at most `budget_bytes` in total (at least about 100 bytes).
    pub fn within(budget_bytes: usize) -> Self {
        let entries = (budget_bytes / 4).max(6);
        // A quotient has the errors of two logarithms and of one power. At different sizes, the table of powers is the
        // larger one.
        let power_index_bits = (entries * 4 / 5).ilog2();
        let log_index_bits = (entries - (1 << power_index_bits)).max(2).ilog2().min(power_index_bits);
        let middle = |k: usize, bits: u32| (k as f64 + 0.5) / f64::from(1u32 << bits);
        let log = |k| (libm::log2(1.0 + middle(k, log_index_bits)) * f64::from(1u32 << LOG_BITS)).round() as u32;
        let power = |k| (libm::exp2(middle(k, power_index_bits)) * f64::from(1u32 << POWER_BITS)).round() as u32;
        Tables {
            log_index_bits,
            power_index_bits,
            logs: (0..1usize << log_index_bits).map(log).collect(),
            powers: (0..1usize << power_index_bits).map(power).collect(),
        }
    }

    /// Size of the tables, bytes.
    pub fn bytes(&self) -> usize {
        4 * (self.logs.len() + self.powers.len())
    }

    /// Largest relative error of a quotient: half a step of each logarithm's argument, and of the power's.
    pub fn error(&self) -> f64 {
        libm::exp2(-f64::from(self.log_index_bits)) + libm::exp2(-f64::from(self.power_index_bits + 1))
    }

    /// Approximate log2 of a positive integer, in units of 2^-LOG_BITS.
    fn log2(&self, x: u64) -> i64 {
        let exponent = x.ilog2();
        let behind = x ^ (1 << exponent);
        let index = ((behind << self.log_index_bits) >> exponent) as usize;
        (i64::from(exponent) << LOG_BITS) + i64::from(self.logs[index])
    }

    /// Index bits of both tables, and the tables themselves: logarithms first, then powers.
    pub fn parts(&self) -> (u32, u32, &[u32], &[u32]) {
        (self.log_index_bits, self.power_index_bits, &self.logs, &self.powers)
    }

    /// Approximate `x` / `y`, rounded to an integer, for positive integers below 2^47, as in the eBPF program.
    pub fn quotient(&self, x: u64, y: u64) -> u64 {
        let log = self.log2(x) - self.log2(y);
        let (whole, fraction) = (log >> LOG_BITS, log & ((1 << LOG_BITS) - 1));
        let index = (fraction >> (LOG_BITS - self.power_index_bits)) as usize;
        let power = u64::from(self.powers[index]);
        // An entry has 31 bits: every right shift by 40 or more gives 0, and these operands need no left shift above
        // 32.
        let shift = (POWER_BITS as i64 - whole).clamp(-32, 40);
        if shift <= 0 { power << -shift } else { (power + (1 << (shift - 1))) >> shift }
    }

    /// Approximate `x` / `y`, for positive integers below 2^40.
    fn divide(&self, x: u64, y: u64) -> f64 {
        let log = self.log2(x) - self.log2(y);
        let (whole, fraction) = (log >> LOG_BITS, log & ((1 << LOG_BITS) - 1));
        let index = (fraction >> (LOG_BITS - self.power_index_bits)) as usize;
        let power = self.powers[index];
        libm::ldexp(f64::from(power), whole as i32 - POWER_BITS as i32)
    }
}

impl PercDivision {
    /// The division that the parameter `division_kb` selects.
    pub fn read(params: &Params) -> Result<Self, InputError> {
        match params.within("division_kb", 0.0, 4096.0)? {
            0.0 => Ok(PercDivision::Exact),
            kb => Ok(PercDivision::Table(Arc::new(Tables::within((kb * 1024.0) as usize)))),
        }
    }

    /// Largest relative error of a quotient, in addition to that of floating point.
    pub fn error(&self) -> f64 {
        match self {
            PercDivision::Exact => 0.0,
            PercDivision::Table(tables) => tables.error(),
        }
    }

    /// Rate per unit of weight: `x` bit/s shared by a total weight `y`. The tables need integers: `x` in bit/s (below
    /// 2^40 up to 1 Tb/s), and `y` with as many fractional bits as fit in 32 bits, since weights may be fractions.
    #[inline]
    pub fn divide(&self, x: f64, y: f64) -> f64 {
        match self {
            PercDivision::Exact => x / y,
            PercDivision::Table(tables) => {
                let (places, exponent) = libm::frexp(y.max(f64::MIN_POSITIVE));
                let quotient = tables.divide(x.clamp(1.0, 1e12) as u64, libm::ldexp(places, WEIGHT_BITS) as u64);
                libm::ldexp(quotient, WEIGHT_BITS - exponent)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::rng::Stream;

    #[test]
    fn larger_tables_are_closer_and_all_fit() {
        let mut worst = Vec::new();
        for kb in [13, 52, 340] {
            let tables = Tables::within(kb * 1024);
            assert!(tables.bytes() <= kb * 1024 && tables.bytes() * 3 > kb * 1024, "{kb} KB: {}", tables.bytes());
            let mut random = Stream::new(kb as u64, "division");
            let error = |_| {
                let (x, y) = (1 + random.below(10_000_000_000) as u64, 1 + random.below(500) as u64);
                (tables.divide(x, y) / (x as f64 / y as f64) - 1.0).abs()
            };
            worst.push((0..100_000).map(error).fold(0.0, f64::max));
            assert!(worst.last().is_some_and(|w| *w <= tables.error()), "{kb} KB: {worst:?} over {}", tables.error());
        }
        assert!(worst[0] < 2e-3 && worst[1] < worst[0] / 2.0 && worst[2] < worst[1] / 2.0, "{worst:?}");
    }

    #[test]
    fn weights_need_not_be_whole() {
        let tables = Arc::new(Tables::within(52 * 1024));
        let division = PercDivision::Table(tables.clone());
        let mut random = Stream::new(1, "weights");
        for _ in 0..100_000 {
            let (x, y) = (1e6 + 1e10 * random.unit(), libm::exp2(60.0 * random.unit() - 30.0));
            let error = (division.divide(x, y) / (x.floor() / y) - 1.0).abs();
            assert!(error <= tables.error(), "{x} / {y} is wrong by {error}");
        }
    }

    #[test]
    fn a_count_is_divided_by_as_before_weights() {
        let tables = Arc::new(Tables::within(13 * 1024));
        let division = PercDivision::Table(tables.clone());
        for y in (1..3000).chain([65_537, 1_000_003]) {
            assert_eq!(division.divide(10e9, y as f64), tables.divide(10_000_000_000, y), "{y}");
        }
    }
}
