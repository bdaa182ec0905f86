//! Gradient projection (Low and Lapsley 1999; Flowtune, appendix B): a price moves by gamma times the over-allocation.

use super::real::Real;
use super::{LawInput, PriceUpdate};

/// Gradient projection, in the cluster's scale (capacities and weights of order 1).
#[derive(Debug, Clone, Copy)]
pub struct Gradient {
    gamma: f64,
}

impl Default for Gradient {
    /// Largest step size that converges with single flows on paths of four links: H is at most 1 there.
    fn default() -> Self {
        Gradient { gamma: 0.4 }
    }
}

impl Gradient {
    /// Sets the step size.
    pub fn with_gamma(gamma: f64) -> Self {
        Gradient { gamma }
    }
}

impl<T: Real> PriceUpdate<T> for Gradient {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        let gamma = T::of(self.gamma);
        for ((price, &capacity), &[load, h]) in price.iter_mut().zip(seen.capacity).zip(seen.sums) {
            let moved = (*price + gamma * (load - capacity)).or_more(T::ZERO);
            // A link without flows keeps its price, as with the other price updates.
            *price = if h > T::TINY { moved } else { *price };
        }
    }
}
