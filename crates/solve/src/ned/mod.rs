//! Central optimizers as iterations, one step at a time: Newton-Exact-Diagonal (NED; Flowtune, section 2.3 and
//! algorithm 1) and its baselines (appendix B), with the normalizers of section 3.
//!
//! A [`NedIteration`] is a [`Cluster`] of links and flows, prices, and a [`PriceUpdate`]. A step computes rates from
//! prices, then prices from rates. Each price update is a file; common parts are here.
//!
//! Additions to the paper:
//! - equation 4 needs H negative; [`LawInput::sums`] hold -H, which is positive;
//! - a link that no flow crosses has H = 0 and keeps its price;
//! - a path's price is at least the flow's marginal utility at the capacity of its narrowest link, so that no rate
//!   exceeds its line rate, and nothing is divided by a price of zero. H is still computed as x/q there. With
//!   H = 0, a link whose flows all have that smallest price would never get a price. The fixed point is the same: such a
//!   flow fills its narrowest link alone, or is at its demand;
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
mod serving;
mod slices;
pub mod straight;
mod team;
#[cfg(test)]
mod team_tests;

/// Primitives of thread synchronization, which tests replace.
mod sync {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use std::thread::{Builder, yield_now};

    /// Number of times that a waiting thread spins before it yields to other threads.
    pub const SPINS: usize = 1000;
}

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
pub use serving::{ServedFlow, ServedInterval, Serving, ServingPlan};

/// Number of links or flows processed together (lanes).
const LANES: usize = 16;

/// Input of a price update: link capacities, and flow rates at the current prices.
#[derive(Debug)]
pub struct LawInput<'a, T> {
    /// The links and flows.
    pub cluster: &'a Cluster<T>,
    /// Capacity of each link; 0 for a failed one.
    pub capacity: &'a [T],
    /// For each link the sums over its flows of the rates x and of -dx/dp, which is -H.
    pub sums: &'a [[T; 2]],
    team: &'a team::Team,
    /// -dx/dp (rate by price) of the flow in each slot, for Hessian products.
    answers: &'a dyn Answers<T>,
}

/// Hessian products, for price updates that need more than the diagonal.
trait Answers<T>: std::fmt::Debug {
    /// Product of the dual's Hessian and `change`: for each link the sum over its flows of -dx/dp times the path's
    /// sum of `change`.
    fn hessian_times(&self, change: &[T], product: &mut [T]);
    /// Sums of each link at prices of 0, where every flow is at its floor price.
    fn at_floor(&self) -> Vec<[T; 2]>;
}

/// Number of links for each thread, below which one thread updates prices as fast.
const LEAST_LINKS: usize = 1024;

impl<T: Real> LawInput<'_, T> {
    /// Calls `update` for parts of the links, with their prices, capacities and sums; on several threads if there are.
    fn each(&self, price: &mut [T], update: impl Fn(&mut [T], &[T], &[[T; 2]]) + Sync) {
        let part = self.team.part(price.len(), LEAST_LINKS);
        let parts = price.chunks_mut(part).zip(self.capacity.chunks(part)).zip(self.sums.chunks(part));
        self.team.each(parts, |((price, capacity), sums)| update(price, capacity, sums));
    }

    /// Product of the dual's Hessian and `change`, one value per link.
    pub fn hessian_times(&self, change: &[T], product: &mut [T]) {
        self.answers.hessian_times(change, product);
    }

    /// Sums of each link at prices of 0, where every flow has the capacity of its narrowest link.
    pub fn at_floor(&self) -> Vec<[T; 2]> {
        self.answers.at_floor()
    }
}

/// A price update.
pub trait PriceUpdate<T: Real> {
    /// Updates `price`, one value per link, from `seen`. Prices of failed links are not changed, or are restored by
    /// the caller. Every other price must stay finite and not negative.
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]);
}

impl<T: Real, L: PriceUpdate<T> + ?Sized> PriceUpdate<T> for Box<L> {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        (**self).update(seen, price);
    }
}
