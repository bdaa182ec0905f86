//! The two loops of an iteration: flows sum prices over their paths, links sum rates over their flows. Both process
//! sixteen lanes at a time, in an order that does not depend on the machine, so that results are the same bits.
//!
//! Table lengths are powers of two, and indices are masked by the length minus one. A read then needs no bounds
//! check, which took half of the time; the mask does not change a valid index.

use super::LANES;
use super::real::Real;
use subak_core::LinkId;

/// Sums over a link's flows: rates, and minus their derivatives by its price (-H).
pub(super) type Sums<T> = [T; 2];

/// Number of rows summed before they are added to the total: limits rounding errors in single precision.
pub(super) const CHUNK: usize = 16;

/// Runs `loops`, compiled for 256-bit registers if the machine has them. Wider registers are slower: the compiler
/// would use gather instructions, which on many machines take longer than sixteen loads.
pub(super) fn widest<F: pulp::NullaryFnOnce>(loops: F) -> F::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(machine) = pulp::x86::V3::try_new() {
        return machine.vectorize(loops);
    }
    loops.call()
}

/// A non-empty table whose length is a power of two.
#[derive(Clone, Copy)]
struct Table<'a, U>(&'a [U]);

impl<'a, U: Copy> Table<'a, U> {
    #[inline(always)]
    fn new(values: &'a [U]) -> Self {
        assert!(values.len().is_power_of_two(), "tables are made so");
        Table(values)
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn at(self, index: u32) -> U {
        // SAFETY: `new` has checked that the length is at least 1, and x & (length - 1) <= length - 1 for any x.
        unsafe { *self.0.get_unchecked(index as usize & (self.0.len() - 1)) }
    }
}

/// The inverse of each flow's path price, which is at least `floor` (equation 3 for a logarithm of weight 1).
#[inline(always)]
pub(super) fn inverse_prices<T: Real, const QUICK: bool>(
    paths: &[[LinkId; LANES]],
    width: usize,
    price: &[T],
    floor: &[[T; LANES]],
    inverse: &mut [[T; LANES]],
) {
    let price = Table::new(price);
    let runs = paths.chunks(width * RUN).zip(floor.chunks(RUN)).zip(inverse.chunks_mut(RUN));
    for ((paths, floor), inverse) in runs {
        let inverse = &mut inverse[..paths.len() / width];
        for (rows, out) in paths.chunks_exact(width).zip(inverse.iter_mut()) {
            let mut q = [T::ZERO; LANES];
            for row in rows {
                for i in 0..LANES {
                    q[i] += price.at(row[i].0);
                }
            }
            *out = q;
        }
        // A separate loop: together with the scalar sums above, compilers would not vectorize the division.
        for (q, &floor) in inverse.as_flattened_mut().iter_mut().zip(floor.as_flattened()) {
            let most = q.or_more(floor);
            *q = if QUICK { most.about_recip() } else { T::ONE / most };
        }
    }
}

/// Number of blocks of flows whose path prices are summed before the divisions.
pub(super) const RUN: usize = 8;

/// Sums of each link over flows with the logarithm of weight 1: x = 1/q and -dx/dq = 1/q^2.
#[inline(always)]
pub(super) fn gather_plain<T: Real>(rows: &[[u32; LANES]], inverse: &[T]) -> [Sums<T>; LANES] {
    let inverse = Table::new(inverse);
    let (mut load, mut answer) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    for chunk in rows.chunks(CHUNK) {
        let (mut l, mut a) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        for row in chunk {
            for i in 0..LANES {
                let x = inverse.at(row[i]);
                l[i] += x;
                a[i] += x * x;
            }
        }
        for i in 0..LANES {
            load[i] += l[i];
            answer[i] += a[i];
        }
    }
    std::array::from_fn(|i| [load[i], answer[i]])
}

/// Sums of each link over its flows' `pairs`, each a rate and minus its derivative.
#[inline(always)]
pub(super) fn gather_pairs<T: Real>(rows: &[[u32; LANES]], pairs: &[Sums<T>]) -> [Sums<T>; LANES] {
    let pairs = Table::new(pairs);
    let mut sums = [[T::ZERO; 2]; LANES];
    for chunk in rows.chunks(CHUNK) {
        let mut part = [[T::ZERO; 2]; LANES];
        for row in chunk {
            for i in 0..LANES {
                let [x, h] = pairs.at(row[i]);
                part[i][0] += x;
                part[i][1] += h;
            }
        }
        for i in 0..LANES {
            sums[i][0] += part[i][0];
            sums[i][1] += part[i][1];
        }
    }
    sums
}

/// The largest of `ratio` on each flow's path.
#[inline(always)]
pub(super) fn worst_ratios<T: Real>(
    paths: &[[LinkId; LANES]],
    width: usize,
    ratio: &[T],
    mut with: impl FnMut(usize, [T; LANES]),
) {
    let ratio = Table::new(ratio);
    for (b, rows) in paths.chunks_exact(width).enumerate() {
        let mut worst = [T::TINY; LANES];
        for row in rows {
            for i in 0..LANES {
                worst[i] = ratio.at(row[i].0).or_more(worst[i]);
            }
        }
        with(b, worst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::rng::Stream;

    /// Random numbers over six orders of magnitude, with the length of a table: a power of two.
    fn numbers<T: Real>(rng: &mut Stream, count: usize) -> Vec<T> {
        (0..count).map(|_| T::of(libm::pow(10.0, 6.0 * rng.unit() - 3.0))).collect()
    }

    /// Runs all loops over random tables, and returns the bits of the results.
    #[inline(always)]
    fn bits<T: Real>(prices: &[T], paths: &[[LinkId; LANES]], rows: &[[u32; LANES]]) -> Vec<u64> {
        let floor = vec![[T::of(0.01); LANES]; paths.len() / 4];
        let mut out = Vec::new();
        let mut keep = |x: T| out.push(x.f64().to_bits());
        let (mut exact, mut quick) = (floor.clone(), floor.clone());
        inverse_prices::<T, false>(paths, 4, prices, &floor, &mut exact);
        inverse_prices::<T, true>(paths, 4, prices, &floor, &mut quick);
        exact.as_flattened().iter().chain(quick.as_flattened()).for_each(|&x| keep(x));
        gather_plain(rows, prices).as_flattened().iter().for_each(|&x| keep(x));
        let pairs: Vec<Sums<T>> = prices.iter().map(|&x| [x, x * x]).collect();
        gather_pairs(rows, &pairs).as_flattened().iter().for_each(|&x| keep(x));
        worst_ratios(paths, 4, prices, |_, worst| worst.into_iter().for_each(&mut keep));
        out
    }

    fn same<T: Real>() {
        let mut rng = Stream::new(3, "kernels");
        let prices = numbers::<T>(&mut rng, 256);
        let mut lanes = || std::array::from_fn(|_| rng.below(256) as u32);
        let rows: Vec<[u32; LANES]> = (0..100).map(|_| lanes()).collect();
        let paths: Vec<[LinkId; LANES]> = (0..80).map(|_| lanes().map(LinkId)).collect();
        let narrow = bits(&prices, &paths, &rows);
        assert_eq!(widest(|| bits(&prices, &paths, &rows)), narrow);
        assert!(narrow.len() > 20 * LANES);
    }

    #[test]
    fn wide_registers_change_no_bit() {
        same::<f32>();
        same::<f64>();
    }
}
