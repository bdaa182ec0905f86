//! Damped Newton method on the dual of a utility maximization, with a barrier that keeps prices positive.
//!
//! For mu falling to 0, the prices p minimize D(p) - mu sum w_l ln p_l, with D the dual function and w_l the weight of
//! link l in the barrier: at the minimum a link's price times its idle capacity is mu w_l. D's curvature is R M^-1 R'
//! (R the routing matrix). The barrier adds s/p, with s the idle capacity. The system is therefore definite even with
//! parallel, dominated or idle links, and with few flows. Steps are taken in ln p, and the residual of an overloaded
//! link is a logarithm too. This speeds up convergence from distant starts and for alphas far from 1. Systems are
//! solved by conjugate gradients. If rates are unknowns and there are few links, they are factored, since near the
//! optimum they are too ill-conditioned for conjugate gradients.

use super::dense::Dense;
use super::program::Program;
use super::response::{OFF_CENTER, PoolStep, PriceResponse};

/// Iteration limits of the solver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub tolerance: f64,
    pub max_iterations: u64,
    pub start: Start,
}

/// Quality of the initial prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Cold start: prices of the max-min allocation.
    Cold,
    /// Warm start: prices before a small change.
    Warm,
    /// Prices of unknown quality: the solver starts with a larger mu, decreases it slowly and solves the linear systems
    /// tightly.
    Careful,
    /// Prices of the max-min allocation, with so many pooled flows that the linear systems need proximal terms.
    Proximal,
}

/// Final prices and rates.
pub(crate) struct Outcome {
    pub prices: Vec<f64>,
    pub response: PriceResponse,
    pub iterations: u64,
    pub converged: bool,
}

/// A Newton system, and memory for its solution.
#[derive(Default)]
struct System {
    /// The barrier's part of the diagonal of the system.
    barrier: Vec<f64>,
    precondition: Vec<f64>,
    rhs: Vec<f64>,
    load: Vec<f64>,
    x: Vec<f64>,
    pool: PoolStep,
    r: Vec<f64>,
    d: Vec<f64>,
    q: Vec<f64>,
    z: Vec<f64>,
    whole: Dense,
}

/// The barrier's part of the diagonal of the Newton system, and the right-hand side, for a link with idle capacity `s`.
fn row(pooled: bool, price: f64, capacity: f64, load: f64, s: f64, barrier: f64) -> (f64, f64) {
    let room = capacity - s.min(0.5 * capacity);
    let excess = if load > room && !pooled { load * libm::log(load / room) } else { load - (capacity - s) };
    (s / price, excess + barrier / price - s)
}

impl System {
    fn build(
        &mut self,
        program: &Program,
        prices: &[f64],
        idle: &[f64],
        response: &mut PriceResponse,
        weight: &[f64],
        mu: f64,
    ) {
        self.load.clone_from(&response.load);
        response.look_ahead(program, prices, mu, &mut self.load);
        self.barrier.clear();
        self.rhs.clear();
        for l in 0..prices.len() {
            let (barrier, rhs) =
                row(response.pooled(), prices[l], program.capacity.raw()[l], self.load[l], idle[l], mu * weight[l]);
            self.barrier.push(barrier + 0.1 * response.proximal * program.capacity.raw()[l] / prices[l]);
            self.rhs.push(rhs);
        }
        response.diagonal(program, &mut self.precondition);
        for (p, b) in self.precondition.iter_mut().zip(&self.barrier) {
            *p = 1.0 / (*p + b);
        }
    }

    /// Solves the system: by a factorization, or by conjugate gradients to the relative residual `tolerance`.
    fn solve(&mut self, program: &Program, response: &PriceResponse, tolerance: f64) {
        let System { x, precondition, barrier, rhs, whole, .. } = self;
        if response.pooled() && rhs.len() <= MOST_IN_FULL {
            whole.reset(barrier);
            response.add_to(program, whole);
            whole.solve(|i| precondition[i].sqrt(), rhs, x);
        } else {
            self.approach(program, response, tolerance);
        }
    }

    /// Conjugate gradients to a residual of `tolerance` in the preconditioner's norm.
    fn approach(&mut self, program: &Program, response: &PriceResponse, tolerance: f64) {
        let n = self.rhs.len();
        let System { x, r, d, q, z, precondition, barrier, rhs, .. } = self;
        x.clear();
        x.resize(n, 0.0);
        r.clone_from(rhs);
        z.resize(n, 0.0);
        q.resize(n, 0.0);
        d.resize(n, 0.0);
        // Slices of equal known length, so that the loops need no bounds checks.
        let (x, r, d, q, z) = (&mut x[..n], &mut r[..n], &mut d[..n], &mut q[..n], &mut z[..n]);
        let (precondition, barrier) = (&precondition[..n], &barrier[..n]);
        (0..n).for_each(|i| z[i] = r[i] * precondition[i]);
        d.copy_from_slice(z);
        let mut rho = dot(r, z);
        let proximal = response.proximal > 0.0;
        let tolerance = if proximal { tolerance.max(1e-6) } else { tolerance };
        let most = (2 * n as u64 + 10).min(if proximal { 2000 } else { 500 });
        let enough = rho * tolerance * tolerance;
        for _ in 0..most {
            if rho <= enough || rho == 0.0 {
                return;
            }
            (0..n).for_each(|i| q[i] = d[i] * barrier[i]);
            response.multiply(program, d, q);
            let step = rho / dot(d, q);
            for i in 0..n {
                x[i] += step * d[i];
                r[i] -= step * q[i];
                z[i] = r[i] * precondition[i];
            }
            let next = dot(r, z);
            let beta = next / rho;
            rho = next;
            (0..n).for_each(|i| d[i] = z[i] + beta * d[i]);
        }
    }
}

/// Dot product, in several partial sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.0.iter().zip(b.0) {
        (0..8).for_each(|i| sums[i] += a[i] * b[i]);
    }
    sums.iter().sum::<f64>() + a.1.iter().zip(b.1).map(|(a, b)| a * b).sum::<f64>()
}

/// Largest number of links for which Newton systems are factored.
pub(super) const MOST_IN_FULL: usize = 600;

/// Relative residual to which conjugate gradients solve the Newton systems, until a step fails; then it is reduced.
const LOOSEST: f64 = 0.1;
const TIGHTEST: f64 = 1e-13;

/// Weight of proximal terms, relative to the rates and prices. Near the optimum the splits of pooled flows, and with
/// them the prices, may have no curvature. The proximal method of multipliers (Rockafellar 1976; within an interior
/// point method Friedlander and Orban 2012) adds curvature around the present point without moving the optimum.
const PROXIMAL: f64 = 1e-4;

/// Solves from the initial prices `prices`.
pub(crate) fn solve(program: &mut Program, mut prices: Vec<f64>, limits: Limits) -> Outcome {
    // Weight of each link in the barrier: its initial revenue.
    let mut weight = program.link_revenue.clone();
    let last = 0.1 * limits.tolerance;
    let careful = limits.start == Start::Careful;
    let mut mu: f64 = match limits.start {
        Start::Cold | Start::Proximal => 1e-2,
        Start::Warm => 1e-5,
        Start::Careful => 1.0,
    };
    let mut response = PriceResponse::new(program);
    if limits.start == Start::Proximal {
        response.proximal = PROXIMAL;
    }
    let loosest = if careful {
        TIGHTEST
    } else if response.pooled() {
        0.1 * LOOSEST
    } else {
        LOOSEST
    };
    let mut precision = loosest;
    let mut trial = response.clone();
    let mut system = System::default();
    response.evaluate(program, &prices);
    if !response.pooled() && limits.start == Start::Cold {
        approach(program, &mut prices, &mut response);
    }
    response.start_pools(program, &prices);
    let mut idle: Vec<f64> = response.load.iter().zip(&program.capacity).map(|(l, c)| (c - l).max(0.1 * c)).collect();
    // Polishing of pooled flows that are within the tolerance: steps left, and the prices and rates when it began.
    let (mut polish, mut settled) = (None, None);
    let mut iterations = 0;
    while iterations < limits.max_iterations {
        let state = progress(program, &prices, &response);
        let end = |prices, response, converged| Outcome { prices, response, iterations, converged };
        let alphas = response.alphas(program, &prices);
        let sharp = alphas.1.max(1.0);
        // The excess of a path's price over its flow's marginal utility changes the rate by 1/alpha times as much.
        let dull = if program.seeks_rates() { alphas.0 } else { 1.0 };
        let closed = state.gap <= 0.7 * limits.tolerance * dull / sharp;
        let fine = state.excess <= 0.3 * limits.tolerance / sharp && closed && mu <= last;
        if fine && (!response.pooled() || polish == Some(0)) {
            return end(prices, response, true);
        }
        match &mut polish {
            None if fine => {
                polish = Some(POLISH);
                settled = Some((prices.clone(), response.clone()));
                program.sharpen(&prices, &response.dearness, &mut weight);
            }
            Some(0) => break,
            Some(steps) => *steps -= 1,
            None => {}
        }
        if !response.pooled() {
            for l in 0..prices.len() {
                idle[l] = (program.capacity.raw()[l] - response.load[l]).max(mu * weight[l] / prices[l]);
            }
        }
        system.build(program, &prices, &idle, &mut response, &weight, mu);
        system.solve(program, &response, precision);
        response.pool_step(program, &system.x, mu, &mut system.pool);
        let step = NewtonStep { change: &system.x, pool: &system.pool, weight: &weight, mu };
        let (length, largest) = step.take(program, &mut prices, &mut idle, &mut response, &mut trial);
        if polish.is_some() && length > 0.9 && largest < 0.1 {
            polish = Some(0);
        }
        if length == 0.0 && precision <= TIGHTEST || mu < 1e-3 * last {
            break;
        }
        precision = match (response.pooled(), length) {
            (true, ..0.5) | (false, ..0.1) => (precision * 1e-3).max(TIGHTEST),
            (true, _) => (precision * 3.0).min(loosest),
            (false, _) => (precision * 1e3).min(loosest),
        };
        if response.pooled() {
            response.center(program, mu);
            for l in 0..idle.len() {
                let target = mu * weight[l] / prices[l];
                idle[l] = idle[l].max(target / OFF_CENTER).min(target * OFF_CENTER * 1e3);
            }
        }
        if length > 0.9 && largest < 2.0 && mu > last {
            mu = if careful { 0.3 * mu } else { (mu * 0.1).min(mu.powf(1.5)) }.max(last);
            program.reweigh(&prices, &response.rate);
        } else if largest < 1e-6 {
            mu *= 0.1;
            program.reweigh(&prices, &response.rate);
        }
        iterations += 1;
    }
    match settled {
        Some((prices, response)) => Outcome { prices, response, iterations, converged: true },
        None => Outcome { prices, response, iterations, converged: false },
    }
}

/// Largest number of polishing steps once pooled flows are within the tolerance, with barriers weighted by path.
const POLISH: u64 = 20;

/// Number of diagonal steps before Newton's; each costs as much as one matrix product.
const APPROACH: usize = 12;

/// Newton steps of each price alone, by the diagonal of the Hessian (Flowtune's NED, equation 4). Far from the optimum
/// such a step is nearly as good as a full Newton step, at a tenth of the cost.
fn approach(program: &Program, prices: &mut [f64], response: &mut PriceResponse) {
    let mut diagonal = Vec::new();
    for _ in 0..APPROACH {
        response.diagonal(program, &mut diagonal);
        for (l, price) in prices.iter_mut().enumerate() {
            let step = GAMMA * (response.load[l] - program.capacity.raw()[l]) / diagonal[l].max(f64::MIN_POSITIVE);
            *price = (*price + step).clamp(0.3 * *price, 3.0 * *price);
        }
        response.evaluate(program, prices);
    }
}

/// Damping of the diagonal step, since all prices move at once and links share flows.
const GAMMA: f64 = 0.5;

/// Residuals: largest overload, and complementarity gap (prices times idle capacity, over revenue).
struct NewtonProgress {
    excess: f64,
    gap: f64,
}

fn progress(program: &Program, prices: &[f64], response: &PriceResponse) -> NewtonProgress {
    let (mut excess, mut idle, mut revenue) = (0.0f64, 0.0, 0.0);
    for ((price, capacity), load) in prices.iter().zip(&program.capacity).zip(&response.load) {
        excess = excess.max(load / capacity - 1.0);
        idle += price * (capacity - load).max(0.0);
        revenue += price * load;
    }
    let (miss, unused) = response.pool_miss(program, prices);
    // Prices so high that all rates are 0 are no optimum.
    let silent = !prices.is_empty() && response.load.iter().all(|&load| load == 0.0);
    let none = if silent { f64::INFINITY } else { 0.0 };
    let gap = if revenue > 0.0 { (idle + unused) / revenue } else { none };
    NewtonProgress { excess: excess.max(miss), gap }
}

/// A step of the prices and of the pooled flows.
struct NewtonStep<'a> {
    change: &'a [f64],
    pool: &'a PoolStep,
    weight: &'a [f64],
    mu: f64,
}

impl NewtonStep<'_> {
    /// The barrier function's derivative by the price of link `l`.
    fn upward(&self, program: &Program, prices: &[f64], response: &PriceResponse, l: usize) -> f64 {
        program.capacity.raw()[l] - response.load[l] - self.mu * self.weight[l] / prices[l]
    }

    fn idle_change(&self, prices: &[f64], idle: &[f64], l: usize) -> f64 {
        self.mu * self.weight[l] / prices[l] - idle[l] - idle[l] * self.change[l] / prices[l]
    }

    /// Largest relative decrease and largest relative change of an unknown in the whole step.
    fn reach(&self, program: &Program, prices: &[f64], idle: &[f64], response: &PriceResponse) -> (f64, f64) {
        let (mut falls, mut largest) = (0.0f64, 0.0f64);
        let mut see = |x: f64| (falls, largest) = (falls.max(-x), largest.max(x.abs()));
        self.change.iter().zip(prices).for_each(|(x, p)| see(x / p));
        if !self.pool.rate.is_empty() {
            for f in (0..program.flows.len()).filter(|&f| program.has_own_rates(f)) {
                if program.demand[f] == f64::INFINITY {
                    see(self.pool.marginal[f] / response.marginal[f]);
                }
                for p in program.paths_of(f) {
                    see(self.pool.rate[p] / response.rate[p]);
                    see(self.pool.dearness[p] / response.dearness[p]);
                }
            }
            (0..idle.len()).for_each(|l| see(self.idle_change(prices, idle, l) / idle[l]));
        }
        (falls, largest)
    }

    /// Takes the step, or the part of it that makes progress. Returns the fraction taken and the largest relative change.
    fn take(
        &self,
        program: &Program,
        prices: &mut Vec<f64>,
        idle: &mut [f64],
        response: &mut PriceResponse,
        trial: &mut PriceResponse,
    ) -> (f64, f64) {
        if !response.pooled() {
            return self.take_bounded(program, prices, response, trial);
        }
        let from = prices.clone();
        let (falls, largest) = self.reach(program, prices, idle, response);
        let length = if falls > BOUNDARY { BOUNDARY / falls } else { 1.0 };
        let largest = largest * length;
        for (price, (old, change)) in prices.iter_mut().zip(from.iter().zip(self.change)) {
            *price = old + length * change;
        }
        trial.step_pool(program, response, self.pool, length);
        trial.evaluate(program, prices);
        for l in 0..idle.len() {
            idle[l] += length * self.idle_change(&from, idle, l);
        }
        std::mem::swap(response, trial);
        (length, largest)
    }

    /// Takes the step, or the part of it that decreases the barrier function. Each price stops at its own bound, so
    /// that vanishing prices do not shorten the steps of others.
    fn take_bounded(
        &self,
        program: &Program,
        prices: &mut Vec<f64>,
        response: &mut PriceResponse,
        trial: &mut PriceResponse,
    ) -> (f64, f64) {
        let from = prices.clone();
        let bounded = |l: usize, length: f64| (length * self.change[l]).max(-FALL * from[l]);
        let start: f64 = (0..from.len()).map(|l| bounded(l, 1.0) * self.upward(program, prices, response, l)).sum();
        let largest = (0..from.len()).map(|l| (bounded(l, 1.0) / from[l]).abs()).fold(0.0, f64::max);
        let mut length = 1.0;
        for _ in 0..30 {
            (0..from.len()).for_each(|l| prices[l] = from[l] + bounded(l, length));
            trial.evaluate(program, prices);
            let slope: f64 =
                (0..from.len()).map(|l| (prices[l] - from[l]) / length * self.upward(program, prices, trial, l)).sum();
            // The barrier function is convex: beyond its minimum along the step the slope is positive.
            if slope <= 0.9 * start.abs() {
                std::mem::swap(response, trial);
                return (length, largest * length);
            }
            length *= (start.abs() / (start.abs() + slope)).clamp(0.1, 0.7);
        }
        *prices = from;
        (0.0, largest)
    }
}

/// Largest relative decrease of a price if each price has its own bound: a larger one would overload the link in the
/// next step.
const FALL: f64 = 0.8;

/// Largest relative decrease of an unknown if all unknowns have the same step length.
const BOUNDARY: f64 = 0.995;
