//! What flows do at given prices: rates, the curvature of the dual, and the products with it that conjugate gradients
//! need.
//!
//! A flow of one path has the rate U'^-1(q) at path price q. A pooled flow holds a barrier on each of its paths, which
//! makes its split smooth: x_p (q_p - U'(y)) = mu w_p with y the sum of its x_p. At its demand a flow no longer
//! responds.

use super::program::Program;

/// Rates and all else that follows from prices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
    /// Rate of each path.
    pub rate: Vec<f64>,
    /// -dy/dq of each flow, its paths' barriers aside.
    pub slope: Vec<f64>,
    /// x_p / z_p of each path of a pooled flow.
    pub swap: Vec<f64>,
    /// Load of each link.
    pub load: Vec<f64>,
}

impl Response {
    /// The response to `prices`, with barriers of `mu` on the paths of pooled flows.
    pub fn evaluate(&mut self, program: &Program, prices: &[f64], mu: f64) {
        let (flows, paths) = (program.flows.len(), program.paths.len());
        self.rate.resize(paths, 0.0);
        self.slope.resize(flows, 0.0);
        self.load.clear();
        self.load.resize(program.capacity.len(), 0.0);
        if flows == paths {
            self.single(program, prices);
        } else {
            self.swap.resize(paths, 0.0);
            for f in 0..flows {
                self.pooled(program, prices, f, mu);
            }
        }
    }

    fn single(&mut self, program: &Program, prices: &[f64]) {
        for f in 0..program.flows.len() {
            let path = program.path(f);
            let price: f64 = path.iter().map(|&l| prices[l as usize]).sum();
            let (rate, slope) = program.respond(f, price);
            self.rate[f] = rate;
            self.slope[f] = slope;
            for &l in path {
                self.load[l as usize] += rate;
            }
        }
    }

    fn pooled(&mut self, program: &Program, prices: &[f64], f: usize, mu: f64) {
        let paths = program.paths_of(f);
        let own = &mut self.swap[paths.clone()];
        for (place, p) in own.iter_mut().zip(paths.clone()) {
            *place = program.path(p).iter().map(|&l| prices[l as usize]).sum();
        }
        let lowest = own.iter().copied().fold(f64::INFINITY, f64::min);
        if own.len() == 1 {
            let (rate, slope) = program.respond(f, lowest);
            (self.slope[f], self.rate[paths.start], own[0]) = (slope, rate, 1.0);
        } else {
            let barrier = mu * program.revenue[f] / own.len() as f64;
            let below = split(program, f, own, lowest, barrier);
            let (total, slope) = program.respond(f, lowest - below);
            self.slope[f] = slope;
            let sum: f64 = own.iter().map(|q| barrier / (q - lowest + below)).sum();
            for (place, p) in own.iter_mut().zip(paths.clone()) {
                let z = *place - lowest + below;
                self.rate[p] = barrier / z * (total / sum);
                *place = self.rate[p] / z;
            }
        }
        for p in paths {
            for &l in program.path(p) {
                self.load[l as usize] += self.rate[p];
            }
        }
    }

    /// Adds the dual's curvature without the barrier: `out += R M^-1 R' v`, M block-diagonal by flow.
    pub fn multiply(&self, program: &Program, v: &[f64], out: &mut [f64]) {
        if program.flows.len() == program.paths.len() {
            for f in 0..program.flows.len() {
                let path = program.path(f);
                let sum: f64 = path.iter().map(|&l| v[l as usize]).sum();
                let flow = self.slope[f] * sum;
                for &l in path {
                    out[l as usize] += flow;
                }
            }
            return;
        }
        let mut sums = Vec::new();
        for f in 0..program.flows.len() {
            let paths = program.paths_of(f);
            let swap = &self.swap[paths.clone()];
            sums.clear();
            sums.extend(paths.clone().map(|p| program.path(p).iter().map(|&l| v[l as usize]).sum::<f64>()));
            let all: f64 = swap.iter().sum();
            let held = self.slope[f] * (all / (self.slope[f] + all));
            let mean = swap.iter().zip(&sums).map(|(a, s)| a * s).sum::<f64>() / all;
            for (k, p) in paths.enumerate() {
                let flow = swap[k] * (sums[k] - mean) + swap[k] / all * held * mean;
                for &l in program.path(p) {
                    out[l as usize] += flow;
                }
            }
        }
    }

    /// The diagonal of what [`Response::multiply`] multiplies by.
    pub fn diagonal(&self, program: &Program, out: &mut [f64]) {
        for f in 0..program.flows.len() {
            let paths = program.paths_of(f);
            let single = paths.len() == 1;
            let all: f64 = if single { 1.0 } else { self.swap[paths.clone()].iter().sum() };
            let held = if single { self.slope[f] } else { self.slope[f] * (all / (self.slope[f] + all)) };
            for p in paths {
                let own = if single { 1.0 } else { self.swap[p] };
                let term = own * ((all - own) / all) + (own / all) * (own / all) * held;
                for &l in program.path(p) {
                    out[l as usize] += term;
                }
            }
        }
    }
}

/// How far below the lowest of `prices` flow `f`'s marginal utility lies: the root of sum barrier / (q_p - lowest + d) =
/// rate(lowest - d) in d, where the left falls and the right rises with d. Newton in ln d, inside a bracket.
fn split(program: &Program, f: usize, prices: &[f64], lowest: f64, barrier: f64) -> f64 {
    let bounded = program.demand[f] < f64::INFINITY;
    let (mut low, mut high) = (0.0f64, if bounded { f64::INFINITY } else { lowest });
    let mut d = (barrier / program.respond(f, lowest).0.max(f64::MIN_POSITIVE)).min(0.5 * lowest);
    for _ in 0..100 {
        let (rate, slope) = program.respond(f, lowest - d);
        let (sum, squares) = prices.iter().fold((0.0, 0.0), |(s, t), q| {
            let x = barrier / (q - lowest + d);
            (s + x, t + x * x / barrier)
        });
        let miss = libm::log(sum / rate);
        if miss > 0.0 { low = d } else { high = d }
        let step = miss / (d * (squares / sum + slope / rate));
        let next = d * libm::exp(step.clamp(-5.0, 5.0));
        if (next - d).abs() <= 1e-14 * d || (high - low) <= 1e-15 * high {
            return d;
        }
        d = if next > low && next < high { next } else { 0.5 * (low + high) };
    }
    d
}
