//! The fast gradient method with a separate step size for each link (Beck, Nedic, Ozdaglar and Teboulle 2014):
//! Nesterov's momentum, and step sizes of one over a bound on the dual's curvature.
//!
//! The bound assumes the largest rates. Rates are at most the line rate, so that -dx/dq is at most its value at the
//! floor price. Row l of the Hessian sums to at most the length of the longest path times link l's sum of these
//! values. After each change of the flows the bound is recomputed, which costs as much as an iteration.

use super::real::Real;
use super::{LawInput, PriceUpdate};

/// The fast weighted gradient method.
#[derive(Debug, Clone)]
pub struct Fgm<T> {
    bound: Vec<T>,
    version: Option<u64>,
    /// Prices after the previous step, without momentum.
    last: Vec<T>,
    t: f64,
}

impl<T> Default for Fgm<T> {
    fn default() -> Self {
        Fgm { bound: Vec::new(), version: None, last: Vec::new(), t: 1.0 }
    }
}

impl<T: Real> PriceUpdate<T> for Fgm<T> {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        if self.version != Some(seen.cluster.version) {
            let longest = T::of(seen.cluster.longest_path() as f64);
            self.bound = seen.at_floor().iter().map(|s| s[1] * longest).collect();
            self.version = Some(seen.cluster.version);
        }
        if self.last.len() != price.len() {
            self.last = price.to_vec();
        }
        let t = 0.5 * (1.0 + libm::sqrt(1.0 + 4.0 * self.t * self.t));
        let momentum = T::of((self.t - 1.0) / t);
        self.t = t;
        for (l, price) in price.iter_mut().enumerate() {
            if seen.capacity[l] <= T::ZERO || self.bound[l] <= T::TINY {
                continue;
            }
            let moved = (*price + (seen.sums[l][0] - seen.capacity[l]) / self.bound[l]).or_more(T::ZERO);
            *price = (moved + momentum * (moved - self.last[l])).or_more(T::ZERO);
            self.last[l] = moved;
        }
    }
}
