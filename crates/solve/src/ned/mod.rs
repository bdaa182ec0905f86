//! Central optimizers as iterations, one step at a time: Newton-Exact-Diagonal (NED; Flowtune, section 2.3 and
//! algorithm 1) and its baselines (appendix B), with the normalizers of section 3.
//!
//! A [`NedIteration`] is a [`Cluster`] of links and flows, prices, and a [`PriceUpdate`]. A step computes
//! rates from prices, then prices from rates. One file a law; common parts are here.
//!
//! Additions to the paper:
//! - equation 4 needs H negative; [`LawInput::sums`] hold -H, which is positive;
//! - a link that no flow crosses has H = 0 and keeps its price;
//! - a path's price is at least the flow's marginal utility at the capacity of its narrowest link, so that no rate
//!   exceeds its line and prices of zero divide nothing. H is still counted as x/q there: where it were zero, links
//!   whose flows all are at the floor would never get a price. At the fixed point this changes nothing: a flow at its
//!   floor fills its narrowest link alone, or stands at its demand;
//! - a failed link's price is infinite, so that flows over it have the rate zero and contribute nothing to other links.

mod accelerated;
mod cluster;
mod diagonal;
mod fgm;
mod gradient;
mod iteration;
mod kernels;
mod methods;
mod newton;
mod newton_like;
mod normalize;
pub mod parallel;
mod real;
mod slices;
pub mod straight;

pub use accelerated::Accelerated;
pub use cluster::{Cluster, FlowKey, NewFlow};
pub use diagonal::{Ned, safe_gamma};
pub use fgm::Fgm;
pub use gradient::Gradient;
pub use iteration::{NedIteration, Reciprocal};
pub use methods::{AnyUpdate, NedMethod, NedRun, worst_off};
pub use newton::Newton;
pub use newton_like::NewtonLike;
pub use normalize::Normalizer;
pub use real::Real;

/// Links or flows processed together (lanes).
const LANES: usize = 16;

/// Input of a price update: link capacities, and flow rates at the current prices.
#[derive(Debug)]
pub struct LawInput<'a, T> {
    /// The links and flows.
    pub cluster: &'a Cluster<T>,
    /// Capacity of each link; zero for a failed one.
    pub capacity: &'a [T],
    /// Of each link: the sum of its flows' rates x, and of -dx/dp, which is -H.
    pub sums: &'a [[T; 2]],
    /// -dx/dp of the flow in each slot.
    answers: &'a dyn Answers<T>,
}

/// Hessian products, for price updates that need more than the diagonal.
trait Answers<T>: std::fmt::Debug {
    /// The links' sums of -dx/dp times the path's sum of `change`: a product with the dual's Hessian.
    fn hessian_times(&self, change: &[T], product: &mut [T]);
    /// The links' sums at prices of zero: every flow at its floor.
    fn at_floor(&self) -> Vec<[T; 2]>;
}

impl<T: Real> LawInput<'_, T> {
    /// The product of the dual's Hessian, sum over flows of -dx/dq on every pair of links, and `change`, one value a link.
    pub fn hessian_times(&self, change: &[T], product: &mut [T]) {
        self.answers.hessian_times(change, product);
    }

    /// The links' sums at prices of zero: every flow has the capacity of its narrowest link.
    pub fn at_floor(&self) -> Vec<[T; 2]> {
        self.answers.at_floor()
    }
}

/// A price update.
pub trait PriceUpdate<T: Real> {
    /// Updates `price`, one value a link, by `seen`. Prices of failed links are unchanged, or restored by the
    /// caller; every other price stays finite and at least zero.
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]);
}

impl<T: Real, L: PriceUpdate<T> + ?Sized> PriceUpdate<T> for Box<L> {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        (**self).update(seen, price);
    }
}
