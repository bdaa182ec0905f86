//! Fixed-point sums. A link adds a flow's allocation when it classifies the flow, and subtracts the same number at
//! the next visit. In integers the two cancel exactly, so that a link's state never drifts.

/// Unit of a sum: a power of two, so that scaling a float is exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SumUnit {
    size: f64,
    per_one: f64,
}

impl SumUnit {
    /// A unit of 2^-92 times `typical`: sums can hold up to 2^35 times `typical`, and a float down to 2^-39 of it is
    /// added without rounding.
    pub fn for_sums_near(typical: f64) -> Self {
        let (_, exponent) = libm::frexp(typical);
        SumUnit { size: libm::ldexp(1.0, exponent - 92), per_one: libm::ldexp(1.0, 92 - exponent) }
    }
}

/// A sum in fixed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedSum(i128);

impl FixedSum {
    /// The sum of a single number.
    #[inline]
    pub fn of(x: f64, unit: SumUnit) -> Self {
        FixedSum((x * unit.per_one) as i128)
    }
    /// Adds `x`.
    #[inline]
    pub fn add(&mut self, x: f64, unit: SumUnit) {
        self.0 = self.0.saturating_add(FixedSum::of(x, unit).0);
    }
    /// Subtracts `x`: exactly what an addition of the same `x` added.
    #[inline]
    pub fn sub(&mut self, x: f64, unit: SumUnit) {
        self.0 = self.0.saturating_sub(FixedSum::of(x, unit).0);
    }
    /// `whole` minus this sum, as a float.
    #[inline]
    pub fn left_of(self, whole: FixedSum, unit: SumUnit) -> f64 {
        whole.0.saturating_sub(self.0) as f64 * unit.size
    }
    /// The sum as a float.
    #[inline]
    pub fn value(self, unit: SumUnit) -> f64 {
        self.0 as f64 * unit.size
    }
}

/// Sums of a link without per-flow state: SumE, and NumB in units of weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    sum_e: FixedSum,
    num_b: FixedSum,
}

/// A link's capacity and the units of its sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    capacity: FixedSum,
    rates: SumUnit,
    weights: SumUnit,
}

impl Scale {
    /// Capacity and units of a link of `capacity_bps`.
    pub fn new(capacity_bps: f64) -> Self {
        let rates = SumUnit::for_sums_near(capacity_bps);
        Scale { capacity: FixedSum::of(capacity_bps, rates), rates, weights: SumUnit::for_sums_near(1.0) }
    }

    /// Sets the link's capacity; its sums keep their units.
    pub fn resize(&mut self, capacity_bps: f64) {
        self.capacity = FixedSum::of(capacity_bps, self.rates);
    }
}

impl Sums {
    /// Sums of a link without flows.
    pub const NONE: Sums = Sums { sum_e: FixedSum(0), num_b: FixedSum(0) };

    /// Moves a flow with allocation `a` from "bottlenecked elsewhere" to "bottlenecked here", until it is classified
    /// again.
    #[inline]
    pub fn assume_bottlenecked(&mut self, a: f64, weight: f64, scale: &Scale) {
        self.sum_e.sub(a * weight, scale.rates);
        self.num_b.add(weight, scale.weights);
    }

    /// Changes a flow's weight. `elsewhere` is its allocation, or `None` if it is bottlenecked here.
    #[inline]
    pub fn reweigh(&mut self, elsewhere: Option<f64>, was: f64, weight: f64, scale: &Scale) {
        if let Some(a) = elsewhere {
            self.sum_e.sub(a * was, scale.rates);
            self.sum_e.add(a * weight, scale.rates);
        } else {
            self.num_b.sub(was, scale.weights);
            self.num_b.add(weight, scale.weights);
        }
    }

    /// Counts a new flow as bottlenecked here.
    #[inline]
    pub fn count(&mut self, weight: f64, scale: &Scale) {
        self.num_b.add(weight, scale.weights);
    }

    /// Removes a flow that counted as bottlenecked here.
    #[inline]
    pub fn uncount(&mut self, weight: f64, scale: &Scale) {
        self.num_b.sub(weight, scale.weights);
    }

    /// Moves a flow from "bottlenecked here" to "elsewhere", with allocation `a`.
    #[inline]
    pub fn allocate_elsewhere(&mut self, a: f64, weight: f64, scale: &Scale) {
        self.num_b.sub(weight, scale.weights);
        self.sum_e.add(a * weight, scale.rates);
    }

    /// C - SumE and NumB. NumB is at least `weight`, that of the flow just counted; it is less only after lost
    /// packets.
    #[inline]
    pub fn left(&self, weight: f64, scale: &Scale) -> (f64, f64) {
        let left = self.sum_e.left_of(scale.capacity, scale.rates).max(0.0);
        (left, self.num_b.value(scale.weights).max(weight))
    }

    /// Sum of the allocations of flows bottlenecked elsewhere, bit/s.
    pub fn sum_e(&self, scale: &Scale) -> f64 {
        self.sum_e.value(scale.rates)
    }

    /// Weight of the flows bottlenecked here.
    pub fn num_b(&self, scale: &Scale) -> f64 {
        self.num_b.value(scale.weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::rng::Stream;

    #[test]
    fn ten_million_updates_leave_nothing_behind() {
        let unit = SumUnit::for_sums_near(10e9);
        let (mut sum, mut float) = (FixedSum::default(), 0.0f64);
        let mut held = [0.0f64; 64];
        let mut random = Stream::new(1, "sum");
        for _ in 0..10_000_000 {
            let k = random.below(held.len());
            let x = 10e9 * random.unit();
            sum.sub(held[k], unit);
            sum.add(x, unit);
            float = float - held[k] + x;
            held[k] = x;
        }
        for x in held {
            sum.sub(x, unit);
            float -= x;
        }
        assert_eq!(sum, FixedSum::default());
        assert!(float.abs() > 0.0, "floats drift: this is why sums are in fixed point");
    }

    #[test]
    fn small_and_large_capacities_keep_their_precision() {
        for capacity in [20.0, 1e3, 10e9, 400e9, 1e15] {
            let unit = SumUnit::for_sums_near(capacity);
            let mut sum = FixedSum::default();
            sum.add(capacity / 3.0, unit);
            let left = sum.left_of(FixedSum::of(capacity, unit), unit);
            assert!((left / (capacity * 2.0 / 3.0) - 1.0).abs() < 1e-15, "{capacity}");
        }
    }
}
