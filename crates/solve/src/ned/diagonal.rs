//! NED: equation 4 of Flowtune, a Newton step with the exact diagonal of the Hessian.
//!
//! Bound of gamma, from the fixed point. Near it a step multiplies errors by I - gamma D^-1 H, with H the dual's
//! Hessian and D its diagonal. Row l of D^-1 H sums to at most the mean number of priced links on the paths of l's
//! flows. No eigenvalue therefore exceeds L, the largest number of priced links on a path, and gamma < 2 / L
//! converges. On two tiers L is at most 4 and 2 / L = 0.5; on three tiers 6 and 0.33. Most small workloads price one
//! link per path and converge up to 2, as the paper observed.
//!
//! Increases are bounded: under the logarithm load/H is a mean of path prices, so that a step raises a price by at most
//! gamma times this mean. By equation 4, a price may fall to 0 in one step. With [`Ned::bounded`], an addition, a step
//! reduces a price to no less than a quarter. A price that rounding makes negligible beside the paths' prices becomes
//! 0.

use super::real::Real;
use super::{LawInput, PriceUpdate};

/// The paper's gamma, which converges on two tiers (section 5.3: "0.4").
const GAMMA: f64 = 0.4;

/// A gamma that converges for any set of priced links: the paper's 0.4 for paths of up to 4 links, 1.6 / L beyond.
pub fn safe_gamma(longest_path: usize) -> f64 {
    GAMMA.min(1.6 / longest_path.max(1) as f64)
}

/// Newton-Exact-Diagonal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ned {
    gamma: Option<f64>,
    /// Smallest ratio of a price after a step to the price before.
    least: f64,
}

/// Smallest ratio of a price after a step to the price before, under [`Ned::bounded`].
pub(super) const QUARTER: f64 = 0.25;

impl Ned {
    /// Sets gamma; [`Ned::default`] uses [`safe_gamma`] of the flows' paths.
    pub fn with_gamma(gamma: f64) -> Self {
        Ned { gamma: Some(gamma), ..Ned::default() }
    }

    /// Bounds steps: one step reduces a price to no less than a quarter.
    #[must_use]
    pub fn bounded(self) -> Self {
        Ned { least: QUARTER, ..self }
    }
}

/// Price after one step of equation 4, at least the fraction `least` of the price before.
#[inline(always)]
pub(super) fn step<T: Real>(gamma: T, capacity: T, [load, h]: [T; 2], price: T, least: T) -> T {
    let inverse = T::ONE / h.or_more(T::TINY);
    let moved = price + gamma * (load - capacity) * inverse;
    let moved = moved.or_more(price * least);
    let moved = if moved > T::EPSILON * load * inverse { moved } else { T::ZERO };
    if h > T::TINY { moved } else { price }
}

impl<T: Real> PriceUpdate<T> for Ned {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        let gamma = T::of(self.gamma.unwrap_or_else(|| safe_gamma(seen.cluster.longest_path())));
        let least = T::of(self.least);
        seen.each(price, |price, capacity, sums| {
            for ((price, &capacity), &sums) in price.iter_mut().zip(capacity).zip(sums) {
                *price = step(gamma, capacity, sums, *price, least);
            }
        });
    }
}
