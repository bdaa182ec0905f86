//! Flows that start and end while an optimizer iterates (Flowtune, section 5.4), without messages and without packets.
//!
//! A flow is active from the first interval after its start. Until the next interval it sends at its rate after F-NORM.
//! It ends at the first interval after its last byte.

use super::{FlowKey, NedIteration, Normalizer, PriceUpdate, Real};
use crate::options::SolveOptions;
use crate::solver::solve_from;
use subak_core::{Case, Flow, Flows, IdVec, InputError, LinkId, Network, Policy};

/// A flow to serve.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedFlow {
    /// Links of the path.
    pub path: Vec<LinkId>,
    /// Weight.
    pub weight: f64,
    /// Start, s.
    pub start_s: f64,
    /// Size, bytes.
    pub size_bytes: u64,
}

/// How flows are served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServingPlan {
    /// Time between two allocations, s.
    pub interval_s: f64,
    /// Optimizer steps per interval.
    pub steps: usize,
    /// Passes of F-NORM.
    pub passes: usize,
    /// Number of intervals from which on rates are compared with the optimum.
    pub compare_from: usize,
    /// Intervals between two comparisons; 0: no comparisons.
    pub compare_every: usize,
}

/// Observations of one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServedInterval {
    /// Number of active flows.
    pub flows: usize,
    /// Sum of the rates after F-NORM, bit/s.
    pub rate_bps: f64,
    /// Largest relative overload of a link by these rates.
    pub overload: f64,
    /// Load beyond capacity without normalization, Gb/s summed over links.
    pub excess_gbps: f64,
    /// Sum of the rates after U-NORM, bit/s, and of the optimal rates, where they were compared.
    pub compared_bps: Option<(f64, f64)>,
}

struct Active {
    key: FlowKey,
    /// Index of the flow among those to serve.
    flow: usize,
    left_bits: f64,
}

/// An optimizer's flows while they are served.
pub struct Serving {
    flows: Vec<ServedFlow>,
    network: Network,
    alpha: f64,
    plan: ServingPlan,
    capacity_bps: Vec<f64>,
    active: Vec<Active>,
    /// The next flow to start.
    next: usize,
    interval: usize,
    price: Option<IdVec<LinkId, f64>>,
}

impl Serving {
    /// Serves `flows`, in order of their starts, over `network`, whose utilities are alpha-fair.
    pub fn new(flows: Vec<ServedFlow>, network: Network, alpha: f64, plan: ServingPlan) -> Result<Self, InputError> {
        for (f, pair) in flows.windows(2).enumerate() {
            if pair[0].start_s > pair[1].start_s {
                let place = format!("start_s[{}]", f + 1);
                return Err(InputError::new(place, "the flow starts before the one ahead of it", "sort them by start"));
            }
        }
        let capacity_bps = network.links().iter().map(|l| l.capacity_bps).collect();
        let (active, price) = (Vec::new(), None);
        Ok(Serving { flows, network, alpha, plan, capacity_bps, active, next: 0, interval: 0, price })
    }

    /// Serves the next interval.
    pub fn step<T: Real, L: PriceUpdate<T>>(
        &mut self,
        iteration: &mut NedIteration<T, L>,
        rates: &mut Vec<T>,
    ) -> Result<ServedInterval, InputError> {
        let ServingPlan { interval_s, steps, passes, compare_from, compare_every } = self.plan;
        while let Some(flow) = self.flows.get(self.next).filter(|f| f.start_s < self.interval as f64 * interval_s) {
            let key = iteration.cluster_mut().add(&flow.path, flow.weight);
            let key = key.map_err(|e| e.below(&format!("flows[{}]", self.next)))?;
            self.active.push(Active { key, flow: self.next, left_bits: 8.0 * flow.size_bytes as f64 });
            self.next += 1;
        }
        (0..steps).for_each(|_| iteration.step());
        iteration.normalize(Normalizer::Flow, rates);
        (1..passes).for_each(|_| iteration.normalize_again(rates));
        let unit_bps = iteration.cluster().unit_bps();
        let rates_bps: Vec<f64> = self.active.iter().map(|flow| rates[flow.key.slot()].f64() * unit_bps).collect();
        let excess = |(load, c): (f64, &f64)| (load - c).max(0.0) / 1e9;
        let mut seen = ServedInterval {
            flows: self.active.len(),
            rate_bps: rates_bps.iter().sum(),
            overload: self.overload(&rates_bps),
            excess_gbps: iteration.loads_bps().zip(&self.capacity_bps).map(excess).sum(),
            compared_bps: None,
        };
        let compares =
            compare_every > 0 && self.interval >= compare_from && self.interval.is_multiple_of(compare_every);
        if compares && !self.active.is_empty() {
            let keys: Vec<FlowKey> = self.active.iter().map(|flow| flow.key).collect();
            let uniform_bps = iteration.rates_bps(Normalizer::Uniform, &keys).iter().sum();
            seen.compared_bps = Some((uniform_bps, self.optimum_bps()?));
        }
        for (flow, rate) in self.active.iter_mut().zip(&rates_bps) {
            flow.left_bits -= rate * interval_s;
        }
        let cluster = iteration.cluster_mut();
        self.active.iter().filter(|flow| flow.left_bits <= 0.0).try_for_each(|flow| cluster.remove(flow.key))?;
        self.active.retain(|flow| flow.left_bits > 0.0);
        self.interval += 1;
        Ok(seen)
    }

    /// Removes the flows that have not ended.
    pub fn end<T: Real, L: PriceUpdate<T>>(self, iteration: &mut NedIteration<T, L>) -> Result<(), InputError> {
        self.active.iter().try_for_each(|flow| iteration.cluster_mut().remove(flow.key))
    }

    fn overload(&self, rates_bps: &[f64]) -> f64 {
        let mut load = IdVec::<LinkId, f64>::filled(0.0, self.capacity_bps.len());
        for (flow, rate) in self.active.iter().zip(rates_bps) {
            self.flows[flow.flow].path.iter().for_each(|&l| load[l] += rate);
        }
        load.iter().zip(&self.capacity_bps).map(|(load, c)| load / c - 1.0).fold(0.0, f64::max)
    }

    /// Sum of the optimal rates of the active flows.
    fn optimum_bps(&mut self) -> Result<f64, InputError> {
        let mut flows = Flows::new();
        for (f, active) in self.active.iter().enumerate() {
            let ServedFlow { path, weight, .. } = &self.flows[active.flow];
            flows.push(Flow { weight: *weight, ..Flow::over(f.to_string(), path.clone()) }, &self.network)?;
        }
        let case = Case { network: self.network.clone(), flows, policy: Policy::AlphaFair { alpha: self.alpha } };
        let options = SolveOptions { tolerance: 1e-6, ..SolveOptions::default() };
        let answer = solve_from(&case, &options, self.price.as_deref())?;
        self.price = Some(answer.link_price);
        Ok(answer.rates_bps.iter().sum())
    }
}
