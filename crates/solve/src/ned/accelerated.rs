//! NED with Nesterov's acceleration, restarted when the momentum opposes the step (O'Donoghue and Candes 2015). This is
//! an addition: Flowtune's paper has no such method. One step reduces a price to no less than a quarter.

use super::diagonal::{QUARTER, safe_gamma};
use super::real::Real;
use super::{LawInput, PriceUpdate};

/// NED with restarted acceleration.
#[derive(Debug, Clone)]
pub struct Accelerated<T> {
    gamma: Option<f64>,
    last: Vec<T>,
    t: f64,
}

impl<T> Default for Accelerated<T> {
    /// Half of NED's safe gamma, to allow for the momentum.
    fn default() -> Self {
        Accelerated { gamma: None, last: Vec::new(), t: 1.0 }
    }
}

impl<T> Accelerated<T> {
    /// Sets the step size gamma.
    pub fn with_gamma(gamma: f64) -> Self {
        Accelerated { gamma: Some(gamma), ..Accelerated::default() }
    }
}

impl<T: Real> PriceUpdate<T> for Accelerated<T> {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        let gamma = self.gamma.unwrap_or_else(|| safe_gamma(seen.cluster.longest_path()) / 2.0);
        if self.last.len() != price.len() {
            self.last = price.to_vec();
        }
        let mut uphill = 0.0;
        let mut moved = price.to_vec();
        for (l, moved) in moved.iter_mut().enumerate().filter(|(l, _)| seen.capacity[*l] > T::ZERO) {
            *moved = super::diagonal::step(T::of(gamma), seen.capacity[l], seen.sums[l], *moved, T::of(QUARTER));
            let slope = seen.capacity[l].f64() - seen.sums[l][0].f64();
            uphill += slope * (moved.f64() - self.last[l].f64());
        }
        if uphill > 0.0 {
            self.t = 1.0;
        }
        let t = 0.5 * (1.0 + libm::sqrt(1.0 + 4.0 * self.t * self.t));
        let momentum = T::of((self.t - 1.0) / t);
        self.t = t;
        for (l, &moved) in moved.iter().enumerate().filter(|(l, _)| seen.capacity[*l] > T::ZERO) {
            // Momentum at most halves a price: at 0 it could not rise again.
            price[l] = (moved + momentum * (moved - self.last[l])).or_more(moved * T::of(0.5));
            self.last[l] = moved;
        }
    }
}
