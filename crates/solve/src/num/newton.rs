//! Damped Newton on the dual of a utility maximization, with a barrier that keeps prices positive.
//!
//! For mu falling to zero, the prices p minimize D(p) - mu sum w_l ln p_l, D the dual function: at the minimum a link's
//! price times its idle capacity is mu w_l. D's curvature is R M^-1 R' (R the routing matrix); the barrier adds s/p, s
//! the idle capacity, which makes the system definite however many links are parallel, dominated or idle, and however
//! few the flows. Steps are taken in ln p, and the residual of an overloaded link is taken in logarithms too: that is
//! what makes far starts and alphas far from 1 converge in few steps. Systems are solved by conjugate gradients.

use super::program::Program;
use super::response::Response;

/// How far the solver may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub tolerance: f64,
    pub max_iterations: u64,
}

/// Prices and rates at the end.
pub(crate) struct Outcome {
    pub prices: Vec<f64>,
    pub response: Response,
    pub iterations: u64,
    /// Products with the curvature, over all iterations.
    pub products: u64,
    pub converged: bool,
}

/// One Newton system, and the room its solution needs.
#[derive(Default)]
struct System {
    /// Barrier's part of the diagonal, and the inverse of the whole diagonal.
    barrier: Vec<f64>,
    precondition: Vec<f64>,
    rhs: Vec<f64>,
    x: Vec<f64>,
    r: Vec<f64>,
    d: Vec<f64>,
    q: Vec<f64>,
}

/// Idle capacity as the barrier sees it, its share of the diagonal, and the right-hand side, of one link.
fn row(price: f64, capacity: f64, load: f64, barrier: f64) -> (f64, f64) {
    let target = barrier / price;
    let idle = capacity - load;
    let s = idle.max(target);
    let room = capacity - s.min(0.5 * capacity);
    let excess = if load > room { load * libm::log(load / room) } else { load - (capacity - s) };
    (s / price, excess + target - s)
}

impl System {
    fn build(&mut self, program: &Program, prices: &[f64], response: &Response, weight: &[f64], mu: f64) {
        self.barrier.clear();
        self.rhs.clear();
        for l in 0..prices.len() {
            let (barrier, rhs) = row(prices[l], program.capacity[l], response.load[l], mu * weight[l]);
            self.barrier.push(barrier);
            self.rhs.push(rhs);
        }
        self.precondition.clear();
        self.precondition.resize(prices.len(), 0.0);
        response.diagonal(program, &mut self.precondition);
        for (p, b) in self.precondition.iter_mut().zip(&self.barrier) {
            *p = 1.0 / (*p + b);
        }
    }

    /// Conjugate gradients to a residual of `tolerance` in the preconditioner's norm. Returns the products taken.
    fn solve(&mut self, program: &Program, response: &Response, tolerance: f64) -> u64 {
        let n = self.rhs.len();
        let System { x, r, d, q, precondition, barrier, rhs, .. } = self;
        x.clear();
        x.resize(n, 0.0);
        r.clone_from(rhs);
        d.clear();
        d.extend(r.iter().zip(precondition.iter()).map(|(r, m)| r * m));
        q.resize(n, 0.0);
        let mut rho: f64 = r.iter().zip(d.iter()).map(|(r, d)| r * d).sum();
        let enough = rho * tolerance * tolerance;
        let most = (2 * n as u64 + 10).min(500);
        for k in 0..most {
            if rho <= enough || rho == 0.0 {
                return k;
            }
            q.iter_mut().zip(d.iter().zip(barrier.iter())).for_each(|(q, (d, b))| *q = d * b);
            response.multiply(program, d, q);
            let step = rho / d.iter().zip(q.iter()).map(|(d, q)| d * q).sum::<f64>();
            let mut next = 0.0;
            for i in 0..n {
                x[i] += step * d[i];
                r[i] -= step * q[i];
                next += r[i] * r[i] * precondition[i];
            }
            let beta = next / rho;
            rho = next;
            for i in 0..n {
                d[i] = r[i] * precondition[i] + beta * d[i];
            }
        }
        most
    }
}

/// To how much of their residual the linear systems are solved: loosely, until a step fails.
const LOOSEST: f64 = 1e-2;
const TIGHTEST: f64 = 1e-13;

/// Solves from the prices `prices`.
pub(crate) fn solve(program: &mut Program, mut prices: Vec<f64>, limits: Limits) -> Outcome {
    // Each link's share of the barrier: the revenue it has at the start.
    let weight = program.link_revenue.clone();
    let weight = &weight[..];
    let last = 0.1 * limits.tolerance;
    let mut mu = 1e-2f64;
    let mut precision = LOOSEST;
    let mut response = Response::default();
    let mut trial = Response::default();
    let mut system = System::default();
    let mut products = 0;
    response.evaluate(program, &prices, mu);
    for iteration in 0..limits.max_iterations {
        let state = progress(program, &prices, &response);
        if state.excess <= last && state.gap <= 0.1 * limits.tolerance && mu <= last {
            return Outcome { prices, response, iterations: iteration, products, converged: true };
        }
        system.build(program, &prices, &response, weight, mu);
        products += system.solve(program, &response, precision);
        let (step, largest) = descend(program, &mut prices, &mut response, &mut trial, &Step { change: &system.x, weight, mu });
        if std::env::var_os("SUBAK_TRACE").is_some() {
            eprintln!("{iteration} mu {mu:e} excess {:e} gap {:e} products {products} step {step} largest {largest}", state.excess, state.gap);
        }
        if step == 0.0 && precision <= TIGHTEST || mu < 1e-15 {
            return Outcome { prices, response, iterations: iteration, products, converged: false };
        }
        precision = if step < 0.5 { (precision * 1e-3).max(TIGHTEST) } else { (precision * 3.0).min(LOOSEST) };
        if (step > 0.9 && largest < 2.0 && mu > last) || (largest < 1e-9 && mu > 1e-16) {
            mu = (mu * 0.1).min(mu.powf(1.5)).max(if mu > last { last } else { 0.0 });
            if !response.swap.is_empty() {
                program.reweigh(&prices, &response.rate);
                response.evaluate(program, &prices, mu);
            }
        }
    }
    Outcome { prices, response, iterations: limits.max_iterations, products, converged: false }
}

/// How far from done: the worst overload, and prices times idle capacity over revenue.
struct Progress {
    excess: f64,
    gap: f64,
}

fn progress(program: &Program, prices: &[f64], response: &Response) -> Progress {
    let (mut excess, mut idle) = (0.0f64, 0.0);
    for ((price, capacity), load) in prices.iter().zip(&program.capacity).zip(&response.load) {
        excess = excess.max(load / capacity - 1.0);
        idle += price * (capacity - load).max(0.0);
    }
    let revenue: f64 = program.revenue.iter().sum();
    Progress { excess, gap: if revenue > 0.0 { idle / revenue } else { 0.0 } }
}

/// A step of the prices.
struct Step<'a> {
    change: &'a [f64],
    weight: &'a [f64],
    mu: f64,
}

impl Step<'_> {
    /// Slope of the barrier function along the step at `prices`.
    fn slope(&self, program: &Program, prices: &[f64], response: &Response) -> f64 {
        let up = |l: usize| program.capacity[l] - response.load[l] - self.mu * self.weight[l] / prices[l];
        (0..prices.len()).map(|l| self.change[l] * up(l)).sum()
    }
}

/// The largest share of its price that a link loses in one step.
const BOUNDARY: f64 = 0.995;

/// Moves the prices along the solution of the system. Returns the share of the step taken and the largest relative
/// change of a price.
fn descend(
    program: &Program,
    prices: &mut Vec<f64>,
    response: &mut Response,
    trial: &mut Response,
    step: &Step,
) -> (f64, f64) {
    let from = prices.clone();
    let start = step.slope(program, prices, response);
    let relative = || step.change.iter().zip(&from).map(|(x, p)| x / p);
    let falls = relative().fold(0.0, |a: f64, x| a.max(-x));
    let mut length = if falls > BOUNDARY { BOUNDARY / falls } else { 1.0 };
    let largest = relative().fold(0.0, |a: f64, x| a.max(x.abs())) * length;
    for _ in 0..30 {
        for (price, (old, change)) in prices.iter_mut().zip(from.iter().zip(step.change)) {
            *price = old + length * change;
        }
        trial.evaluate(program, prices, step.mu);
        let slope = step.slope(program, prices, trial);
        // The barrier function is convex: past its minimum along the step the slope is positive.
        if slope <= 0.9 * start.abs() {
            std::mem::swap(response, trial);
            return (length, largest);
        }
        length *= (start.abs() / (start.abs() + slope)).clamp(0.1, 0.7);
    }
    *prices = from;
    (0.0, largest)
}
