//! Flow response to prices: rates, the curvature of the dual, and its products for conjugate gradients.
//!
//! A single-path flow has the rate U'^-1(q) at path price q, so prices determine it. A pooled flow's split does not follow
//! from prices: its paths' rates x_p and its marginal utility v are unknowns of Newton's method too, eliminated flow by
//! flow. They solve x_p z_p = mu w_p with z_p = q_p - v, and sum x_p = U'^-1(v). At its demand a flow is constant.

use super::dense::Dense;
use super::program::{Program, Shape};
use subak_core::curve::Curve;
use subak_core::{IdVec, LinkId};

/// Largest factor by which the product of a path's rate and price excess, or of a link's price and idle capacity, may
/// lie below its target.
pub(super) const OFF_CENTER: f64 = 10.0;

/// Rates and derived values at given prices.
#[derive(Debug, Clone, Default)]
pub(crate) struct PriceResponse {
    /// Rate of each path, stored only for pooled flows: others follow from the prices.
    pub rate: Vec<f64>,
    /// Marginal utility of each pooled flow.
    pub marginal: Vec<f64>,
    /// Excess z_p of each path's price over its flow's marginal utility. Newton's method treats z_p as an unknown, so
    /// that it equals this difference only after convergence.
    pub dearness: Vec<f64>,
    /// Weight of the proximal terms that keep the linear systems of pooled flows regular; 0 for none.
    pub proximal: f64,
    /// Load of each link.
    pub load: Vec<f64>,
    /// Load of each link, and the contribution of single-path flows to the diagonal of the dual's curvature.
    sums: IdVec<LinkId, (f64, f64)>,
    /// -dy/dq of each flow (y: rate, q: path price), with the barriers on its paths' rates.
    held: Vec<f64>,
    /// x_p / z_p (rate over price excess) of each path of a pooled flow.
    swap: Vec<f64>,
    /// Rate of each path after a Newton step at constant prices.
    ahead: Vec<f64>,
    marginal_ahead: Vec<f64>,
}

/// The Newton step of pooled flows.
#[derive(Debug, Clone, Default)]
pub(crate) struct PoolStep {
    pub rate: Vec<f64>,
    pub marginal: Vec<f64>,
    pub dearness: Vec<f64>,
}

impl PriceResponse {
    /// Starts from the program's initial rates and marginal utilities.
    pub fn new(program: &Program) -> Self {
        let size = |n: usize| if program.pooled() { vec![0.0; n] } else { Vec::new() };
        let (flows, paths) = (program.flows.len(), program.paths.len());
        PriceResponse {
            rate: program.start_rate.clone(),
            marginal: program.start_marginal.clone(),
            dearness: size(paths),
            proximal: 0.0,
            load: Vec::new(),
            sums: IdVec::new(),
            held: vec![0.0; flows],
            swap: size(paths),
            ahead: size(paths),
            marginal_ahead: size(flows),
        }
    }

    /// Initializes the price excess of pooled paths: at least a tenth of the flow's marginal utility, so that it is
    /// positive.
    pub fn start_pools(&mut self, program: &Program, prices: &[f64]) {
        if self.pooled() {
            for f in 0..program.flows.len() {
                for p in program.paths_of(f) {
                    let price: f64 = program.sum(p, prices);
                    self.dearness[p] = (price - self.marginal[f]).max(0.1 * self.marginal[f]);
                }
            }
        }
    }

    pub fn pooled(&self) -> bool {
        !self.swap.is_empty()
    }

    /// Computes rates of single-path flows and loads from `prices`.
    pub fn evaluate(&mut self, program: &Program, prices: &[f64]) {
        self.sums.clear();
        self.sums.resize(program.capacity.len(), (0.0, 0.0));
        if program.pooled() {
            (0..program.flows.len()).for_each(|f| self.evaluate_pooled(program, prices, f));
        } else {
            let (held, sums) = (&mut self.held[..], &mut self.sums);
            let answer = |f: usize, price| {
                let (rate, slope) = program.respond(f, price);
                held[f] = slope;
                (rate, slope)
            };
            program.through_paths(prices, answer, |l, (rate, slope)| {
                sums[l] = (sums[l].0 + rate, sums[l].1 + slope);
            });
        }
        self.load.clear();
        self.load.extend(self.sums.iter().map(|s| s.0));
    }

    fn evaluate_pooled(&mut self, program: &Program, prices: &[f64], f: usize) {
        let (paths, own) = (program.paths_of(f), program.has_own_rates(f));
        if !own {
            let price = program.sum(paths.start, prices);
            (self.rate[paths.start], self.held[f]) = program.respond(f, price);
        }
        for p in paths.clone() {
            for &l in program.path(p) {
                let sum = &mut self.sums[l];
                sum.0 += self.rate[p];
                sum.1 += if !program.has_own_rates(f) { self.held[f] } else { 0.0 };
            }
        }
    }

    /// Linearizes the pooled flows at `prices` and `mu`, and adds to `load` their change by a Newton step at constant
    /// prices.
    pub fn look_ahead(&mut self, program: &Program, prices: &[f64], mu: f64, load: &mut [f64]) {
        if !self.pooled() {
            return;
        }
        for f in 0..program.flows.len() {
            let paths = program.paths_of(f);
            if program.has_own_rates(f) {
                self.linearize(program, prices, f, mu);
                for p in paths {
                    program.add(p, self.ahead[p] - self.rate[p], load);
                }
            }
        }
    }

    fn linearize(&mut self, program: &Program, prices: &[f64], f: usize, mu: f64) {
        let paths = program.paths_of(f);
        let total: f64 = paths.clone().map(|p| self.rate[p]).sum();
        let (wanted, slope) = program.wish(f, total, self.marginal[f]);
        let worth = if program.seeks_rates() { total } else { wanted };
        let (mut all, mut excess) = (0.0, 0.0);
        for p in paths.clone() {
            let price: f64 = program.sum(p, prices);
            let z = self.dearness[p];
            let own = self.rate[p] / z;
            self.swap[p] = own / (1.0 + self.proximal * own * (self.marginal[f] / worth));
            self.ahead[p] = self.rate[p]
                + self.swap[p] * (mu * program.barrier[p] / self.rate[p] - z - (price - self.marginal[f] - z));
            all += self.swap[p];
            excess += self.ahead[p];
        }
        self.held[f] = slope * (all / (slope + all));
        self.marginal_ahead[f] = (wanted - excess) / (all + slope);
        for p in paths {
            self.ahead[p] += self.swap[p] * self.marginal_ahead[f];
        }
    }

    /// Adds a product with the dual's curvature, without the barrier: `out += R M^-1 R' v`, where M is block-diagonal
    /// by flow.
    pub fn multiply(&self, program: &Program, v: &[f64], out: &mut [f64]) {
        let sum = |p: usize| program.sum(p, v);
        if !self.pooled() {
            program.through_paths(v, |f, sum| self.held[f] * sum, |l, flow| out[l.index()] += flow);
            return;
        }
        for f in 0..program.flows.len() {
            let paths = program.paths_of(f);
            if !program.has_own_rates(f) {
                let flow = self.held[f] * sum(paths.start);
                program.add(paths.start, flow, out);
                continue;
            }
            let (all, mean) = self.mean(program, f, &sum);
            for p in paths {
                let flow = self.swap[p] * (sum(p) - mean) + self.swap[p] / all * self.held[f] * mean;
                program.add(p, flow, out);
            }
        }
    }

    /// Adds the matrix of the dual's curvature, without the barrier, to `whole`.
    pub fn add_to(&self, program: &Program, whole: &mut Dense) {
        let mut add = |p: usize, q: usize, term: f64| {
            for &l in program.path(p) {
                program.path(q).iter().for_each(|m| whole.add(l.index(), m.index(), term));
            }
        };
        for f in 0..program.flows.len() {
            let paths = program.paths_of(f);
            if !program.has_own_rates(f) {
                add(paths.start, paths.start, self.held[f]);
                continue;
            }
            let all: f64 = self.swap[paths.clone()].iter().sum();
            for p in paths.clone() {
                for q in paths.clone() {
                    let (own, other) = (self.swap[p], self.swap[q] / all);
                    let kept = if p == q { own * ((all - own) / all) } else { -own * other };
                    add(p, q, kept + own / all * other * self.held[f]);
                }
            }
        }
    }

    /// Sum of x_p / z_p over a pooled flow's paths, and the mean of `sum` over its paths with these weights.
    fn mean(&self, program: &Program, f: usize, sum: &impl Fn(usize) -> f64) -> (f64, f64) {
        let (mut all, mut mean) = (0.0, 0.0);
        for p in program.paths_of(f) {
            all += self.swap[p];
            mean += self.swap[p] * sum(p);
        }
        (all, mean / all)
    }

    /// Diagonal of the matrix of [`PriceResponse::multiply`].
    pub fn diagonal(&self, program: &Program, out: &mut Vec<f64>) {
        out.clear();
        out.extend(self.sums.iter().map(|s| s.1));
        for f in (0..program.flows.len()).filter(|_| program.pooled()) {
            let paths = program.paths_of(f);
            if !program.has_own_rates(f) {
                continue;
            }
            let all: f64 = self.swap[paths.clone()].iter().sum();
            for p in paths {
                let own = self.swap[p];
                let term = own * ((all - own) / all) + (own / all) * (own / all) * self.held[f];
                program.add(p, term, out);
            }
        }
    }

    /// Newton step of the pooled flows if prices change by `change`.
    pub fn pool_step(&self, program: &Program, change: &[f64], mu: f64, step: &mut PoolStep) {
        if !self.pooled() {
            return;
        }
        step.rate.resize(self.rate.len(), 0.0);
        step.dearness.resize(self.rate.len(), 0.0);
        step.marginal.resize(program.flows.len(), 0.0);
        let sum = |p: usize| program.sum(p, change);
        for f in 0..program.flows.len() {
            let paths = program.paths_of(f);
            if program.has_own_rates(f) {
                let (all, mean) = self.mean(program, f, &sum);
                // held / all = slope / (slope + all): the part of the mean that the marginal utility does not follow.
                let lag = self.held[f] / all;
                step.marginal[f] = self.marginal_ahead[f] + mean * (1.0 - lag);
                for p in paths {
                    let follow = self.swap[p] * (sum(p) - mean + mean * lag);
                    step.rate[p] = self.ahead[p] - self.rate[p] - follow;
                    let barrier = mu * program.barrier[p];
                    step.dearness[p] =
                        barrier / self.rate[p] - self.dearness[p] - step.rate[p] / self.rate[p] * self.dearness[p];
                }
            }
        }
    }

    /// Sets the pooled flows to those of `from` plus `length` times `step`.
    pub fn step_pool(&mut self, program: &Program, from: &PriceResponse, step: &PoolStep, length: f64) {
        if !self.pooled() {
            return;
        }
        for f in (0..program.flows.len()).filter(|&f| program.has_own_rates(f)) {
            self.marginal[f] = from.marginal[f] + length * step.marginal[f];
            for p in program.paths_of(f) {
                self.rate[p] = from.rate[p] + length * step.rate[p];
                self.dearness[p] = from.dearness[p] + length * step.dearness[p];
            }
        }
    }

    /// Keeps the product of each path's rate and price excess near its target, `mu` times the path's barrier weight.
    pub fn center(&mut self, program: &Program, mu: f64) {
        for f in (0..program.flows.len()).filter(|&f| program.has_own_rates(f)) {
            for p in program.paths_of(f) {
                let target = mu * program.barrier[p] / self.rate[p];
                self.dearness[p] = self.dearness[p].max(target / OFF_CENTER).min(target * OFF_CENTER * 1e3);
            }
        }
    }

    /// Range of -d ln U' / d ln x over all flows, at their present marginal utilities.
    pub fn alphas(&self, program: &Program, prices: &[f64]) -> (f64, f64) {
        let Shape::Curves(curves) = &program.shape else { return program.alphas };
        let marginal = |f: usize| match program.has_own_rates(f) {
            true => self.marginal[f],
            false => program.sum(program.paths_of(f).start, prices),
        };
        let alpha = |(f, curve): (usize, &Curve)| curve.alpha_of(libm::log(marginal(f)));
        let span = |(least, most): (f64, f64), alpha: f64| (least.min(alpha), most.max(alpha));
        curves.iter().enumerate().map(alpha).fold((f64::INFINITY, 0.0), span)
    }

    /// Residuals of pooled flows, where v is a flow's marginal utility. The first is the larger of two maxima: over flows,
    /// the relative difference between the sum of the path rates and U'^-1(v); over paths, the relative amount by which
    /// the path's price is below v. The second is the sum over paths of the rate times the excess of the path's price
    /// over v.
    pub fn pool_miss(&self, program: &Program, prices: &[f64]) -> (f64, f64) {
        let (mut miss, mut idle) = (0.0f64, 0.0);
        if self.pooled() {
            for f in (0..program.flows.len()).filter(|&f| program.has_own_rates(f)) {
                let sum: f64 = self.rate[program.paths_of(f)].iter().sum();
                miss = miss.max((sum / program.respond(f, self.marginal[f]).0 - 1.0).abs());
                for p in program.paths_of(f) {
                    let price: f64 = program.sum(p, prices);
                    idle += self.rate[p] * (price - self.marginal[f]).max(0.0);
                    miss = miss.max(1.0 - price / self.marginal[f]);
                }
            }
        }
        (miss, idle)
    }
}
