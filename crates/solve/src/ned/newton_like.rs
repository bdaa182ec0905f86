//! The Newton-like method (Athuraliya and Low 2000; Flowtune, section 7 and appendix B): NED's step, with H estimated from
//! the change of a link's load after its price's last change instead of computed.
//!
//! The papers do not bound the estimate. Here it is averaged over the last steps, and kept within a factor of 16 of an
//! initial guess, load squared over the number of flows. The guess is exact if all flows of a saturated link have the
//! same path price.

use super::real::Real;
use super::{LawInput, PriceUpdate};

/// Weight of the newest measurement in the estimate.
const SHARE: f64 = 0.5;
/// Largest factor between the estimate and its initial guess.
const RANGE: f64 = 16.0;

/// The Newton-like method.
#[derive(Debug, Clone)]
pub struct NewtonLike<T> {
    gamma: f64,
    estimate: Vec<T>,
    last: Vec<[T; 2]>,
}

impl<T> NewtonLike<T> {
    /// Sets the step size gamma.
    pub fn with_gamma(gamma: f64) -> Self {
        NewtonLike { gamma, estimate: Vec::new(), last: Vec::new() }
    }
}

impl<T> Default for NewtonLike<T> {
    fn default() -> Self {
        NewtonLike::with_gamma(0.4)
    }
}

impl<T: Real> PriceUpdate<T> for NewtonLike<T> {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        let (gamma, share, range) = (T::of(self.gamma), T::of(SHARE), T::of(RANGE));
        self.estimate.resize(price.len(), T::ZERO);
        self.last.resize(price.len(), [T::ZERO; 2]);
        for (l, price) in price.iter_mut().enumerate() {
            let (load, capacity) = (seen.sums[l][0], seen.capacity[l]);
            let flows = seen.cluster.slices.degree.raw()[l];
            if flows == 0 || capacity <= T::ZERO {
                continue;
            }
            let guess = capacity * capacity / T::of(f64::from(flows));
            let [old_price, old_load] = self.last[l];
            let change = *price - old_price;
            let known = if self.estimate[l] > T::ZERO { self.estimate[l] } else { guess };
            let moved = change != T::ZERO;
            let measured = if moved { (old_load - load) / change } else { known };
            let mixed = known + share * (measured - known);
            let within = mixed.or_more(guess / range);
            let h = if within < guess * range { within } else { guess * range };
            self.last[l] = [*price, load];
            self.estimate[l] = h;
            *price = (*price + gamma * (load - capacity) / h).or_more(T::ZERO);
        }
    }
}
