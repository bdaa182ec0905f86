//! Exact rates of the active flows.

use std::sync::Arc;
use subak_core::backend::{FlowPlan, LinkChange, Route};
use subak_core::utility::Urgency;
use subak_core::{Case, Flow, FlowId, Flows, IdVec, InputError, LinkId, Network, Ns, Offsets, Policy, Utility};
use subak_solve::max_min::{MaxMin, PathRows};
use subak_solve::{Answer, SolveOptions, maximize_from, solve};

/// Largest relative error of a certificate at which a solution is accepted.
const WORST: f64 = 1e-6;

/// Number of times that rates are recomputed, with capacity reserved for the ACKs of the previous rates. Each time
/// multiplies the error by the ratio of ACK bytes to data bytes, about 0.04.
const ACK_ROUNDS: usize = 2;

/// Smallest fraction of a link that ACKs leave to data.
const LEAST_LEFT: f64 = 0.01;

/// Exact rates of flows that start and end, with demands; a flow's subflows are pooled.
///
/// Flows without a utility function share by weighted max-min. If every flow has one path this is water-filling,
/// otherwise the exact multipath solver, which is far slower. Flows with utility functions maximize their sum, or,
/// with bandwidth functions, share by max-min in the fair share. Either all flows have a utility function, or none.
#[derive(Debug)]
pub struct Rates {
    network: Network,
    solver: MaxMin,
    /// Utility function of each flow.
    utility: IdVec<FlowId, Option<Arc<Utility>>>,
    urgency: IdVec<FlowId, Urgency>,
    start_ns: IdVec<FlowId, Ns>,
    /// Logarithm of the urgency, the factor on the utility.
    ln_urgency: IdVec<FlowId, f64>,
    /// Prices of the last optimum, as a warm start.
    prices: Option<IdVec<LinkId, f64>>,
    failures: u64,
    data_share: f64,
    /// Number of faults due to which each link is down.
    down: IdVec<LinkId, u32>,
    capacity_bps: IdVec<LinkId, f64>,
    /// Range of subflows of each flow.
    sub_ptr: Offsets<FlowId>,
    /// The links of each subflow.
    link_ptr: Offsets,
    links: Vec<LinkId>,
    /// Bytes of ACKs per byte of data.
    ack_share: f64,
    /// Links of the ACKs of each subflow.
    back: Vec<Vec<LinkId>>,
    /// Weight of each subflow: the weight of its flow.
    weight: Vec<f64>,
    demand_bps: Vec<f64>,
    sub_bps: Vec<f64>,
    /// Flow of each active subflow; the solver treats these subflows as flows.
    active: Vec<FlowId>,
}

impl Rates {
    /// A solver without flows. Data may use the fraction `data_share` of each capacity of `network`.
    pub fn new(network: &Network, data_share: f64) -> Self {
        let mut network = network.clone();
        for l in LinkId::first(network.links().len()) {
            network.link_mut(l).capacity_bps *= data_share;
        }
        Rates {
            solver: MaxMin::new(),
            utility: IdVec::new(),
            urgency: IdVec::new(),
            start_ns: IdVec::new(),
            ln_urgency: IdVec::new(),
            prices: None,
            failures: 0,
            data_share,
            down: IdVec::filled(0, network.links().len()),
            capacity_bps: network.links().iter().map(|l| l.capacity_bps).collect(),
            sub_ptr: Offsets::default(),
            link_ptr: Offsets::default(),
            links: Vec::new(),
            ack_share: 0.0,
            back: Vec::new(),
            weight: Vec::new(),
            demand_bps: Vec::new(),
            sub_bps: Vec::new(),
            active: Vec::new(),
            network,
        }
    }

    /// Reserves capacity for ACKs: `share` bytes per byte of data in the opposite direction.
    #[must_use]
    pub fn beside_acks(mut self, share: f64) -> Self {
        self.ack_share = share;
        self
    }

    /// Adds a flow with rate 0. Flows are numbered in the order in which they are added.
    pub fn add(&mut self, plan: &FlowPlan) {
        for route in &plan.routes {
            self.links.extend_from_slice(&route.forward);
            self.link_ptr.push(self.links.len());
            self.weight.push(plan.weight);
            self.demand_bps.push(plan.demand_bps);
            self.sub_bps.push(0.0);
            self.back.push(route.back.clone());
        }
        self.sub_ptr.push(self.weight.len());
        self.utility.push(plan.utility.clone());
        self.urgency.push(plan.urgency);
        self.start_ns.push(plan.start_ns);
        self.ln_urgency.push(0.0);
    }

    /// Sets the start time of flow `f`, ns.
    pub fn set_start(&mut self, f: FlowId, at_ns: Ns) {
        self.start_ns[f] = at_ns;
    }

    /// Sets weight and utility function of flow `f` for the next solve.
    pub fn set_weight(&mut self, f: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        let subflows = self.subflows(f);
        self.weight[subflows].fill(weight);
        self.utility[f] = utility;
    }

    /// Sets the paths of the subflows of flow `f`, one each, for the next solve.
    pub fn reroute(&mut self, f: FlowId, routes: &[Route]) {
        let own = self.subflows(f);
        let paths: Vec<Vec<LinkId>> = (0..self.weight.len())
            .map(|sub| match own.contains(&sub).then(|| routes.get(sub - own.start)).flatten() {
                Some(route) => route.forward.clone(),
                None => self.path(sub).to_vec(),
            })
            .collect();
        for (sub, route) in own.zip(routes) {
            self.back[sub].clone_from(&route.back);
        }
        self.links.clear();
        self.link_ptr.clear();
        for path in paths {
            self.links.extend(path);
            self.link_ptr.push(self.links.len());
        }
    }

    /// Whether the urgency of flow `f` changes while it runs.
    pub fn hurries(&self, f: FlowId) -> bool {
        self.urgency[f] != Urgency::Constant
    }

    /// Updates the urgency of flow `f` at `now_ns`, with `remaining_bytes` left.
    pub fn hurry(&mut self, f: FlowId, now_ns: Ns, remaining_bytes: u64) {
        let age_ns = now_ns.saturating_sub(self.start_ns[f]);
        self.ln_urgency[f] = libm::log(self.urgency[f].factor(remaining_bytes, age_ns));
    }

    /// The utility function of flow `f`, with its current urgency.
    fn utility_now(&self, f: FlowId) -> Option<Utility> {
        let utility = self.utility[f].as_deref().cloned();
        match utility {
            Some(Utility::Power { alpha, ln_gain }) => {
                Some(Utility::Power { alpha, ln_gain: ln_gain + self.ln_urgency[f] })
            }
            other => other,
        }
    }

    /// Number of solves that failed. A failed solve sets its flows' rates to 0.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Applies a link's failure, recovery or new capacity at the next solve.
    pub fn change(&mut self, link: LinkId, change: LinkChange) {
        match change {
            LinkChange::Down => self.down[link] += 1,
            LinkChange::Up => self.down[link] -= 1,
            LinkChange::Capacity(capacity_bps) => {
                self.capacity_bps[link] = capacity_bps * self.data_share;
                self.network.link_mut(link).capacity_bps = capacity_bps * self.data_share;
            }
        }
    }

    /// Computes the rates of the flows in `live`. Subflows over a link that is down get 0; other flows keep their
    /// rates.
    pub fn solve(&mut self, live: &[FlowId]) {
        self.solve_once(live);
        if self.ack_share > 0.0 {
            let whole_bps = self.capacity_bps.clone();
            for _ in 0..ACK_ROUNDS {
                self.set_capacities(&whole_bps, true);
                self.solve_once(live);
            }
            self.set_capacities(&whole_bps, false);
        }
    }

    /// Sets the solver's capacities: the current ones, minus the ACKs at the present rates if `less_acks`.
    fn set_capacities(&mut self, whole_bps: &IdVec<LinkId, f64>, less_acks: bool) {
        self.capacity_bps.copy_from_slice(whole_bps);
        if less_acks {
            for &sub in &self.active {
                let acks_bps = self.ack_share * self.sub_bps[sub.index()];
                self.back[sub.index()].iter().for_each(|&l| self.capacity_bps[l] -= acks_bps);
            }
        }
        for (l, left_bps) in self.capacity_bps.iter_enumerated_mut() {
            *left_bps = left_bps.max(whole_bps[l] * LEAST_LEFT);
            self.network.link_mut(l).capacity_bps = *left_bps;
        }
    }

    fn solve_once(&mut self, live: &[FlowId]) {
        self.active.clear();
        let mut solved = false;
        for &f in live {
            let before = self.active.len();
            for sub in self.subflows(f) {
                self.sub_bps[sub] = 0.0;
                if !self.path(sub).iter().any(|&l| self.down[l] > 0) {
                    self.active.push(FlowId::from_index(sub));
                }
            }
            solved |= self.active.len() > before + 1 || self.utility[f].is_some();
        }
        if self.active.is_empty() {
            return;
        }
        if !solved {
            self.fill();
        } else if self.solve_case(live).is_err() {
            self.failures += 1;
        }
    }

    /// Water-filling, with each subflow as a flow.
    fn fill(&mut self) {
        let rows = PathRows {
            capacity_bps: &self.capacity_bps,
            link_ptr: self.link_ptr.raw(),
            links: &self.links,
            weight: &self.weight,
            demand_bps: &self.demand_bps,
            active: Some(&self.active),
        };
        self.solver.solve(&rows, &mut self.sub_bps, &mut []);
    }

    fn solve_case(&mut self, live: &[FlowId]) -> Result<(), InputError> {
        let (flows, utilities, order) = self.case_flows(live)?;
        let functions = matches!(utilities.first(), Some(Utility::BandwidthFunction { .. }));
        let policy = if functions { Policy::BANDWIDTH_FUNCTION } else { Policy::MaxMin };
        let case = Case { network: std::mem::take(&mut self.network), flows, policy };
        let answer = if functions || utilities.is_empty() {
            solve(&case, &SolveOptions::default())
        } else {
            maximize_from(&case, &utilities, &SolveOptions::default(), self.prices.as_deref())
        };
        self.network = case.network;
        let Answer { path_rates_bps, link_price, certificate, .. } = answer?;
        if certificate.worst() > WORST {
            return Err(InputError::new("", "the optimum was not found", "tell the authors"));
        }
        self.prices = Some(link_price);
        for (&sub, &rate) in order.iter().zip(&path_rates_bps) {
            self.sub_bps[sub.index()] = rate;
        }
        Ok(())
    }

    /// The flows of `live` with an active subflow, their utility functions, and the subflow of each of their paths.
    fn case_flows(&self, live: &[FlowId]) -> Result<(Flows, Vec<Utility>, Vec<FlowId>), InputError> {
        let (mut flows, mut utilities) = (Flows::new(), Vec::new());
        let mut order: Vec<FlowId> = Vec::with_capacity(self.active.len());
        let mut rest = self.active.as_slice();
        for &f in live {
            let own = self.subflows(f);
            let (mine, others) = rest.split_at(rest.iter().take_while(|&&s| own.contains(&s.index())).count());
            rest = others;
            let Some(&first) = mine.first() else { continue };
            // If a reroute puts two subflows on one path, the first has the rate of both.
            let is_first = |k: &usize| mine[..*k].iter().all(|s| self.path(s.index()) != self.path(mine[*k].index()));
            let mine: Vec<FlowId> = (0..mine.len()).filter(is_first).map(|k| mine[k]).collect();
            let demand = self.demand_bps[first.index()];
            let utility = self.utility_now(f);
            let flow = Flow {
                paths: mine.iter().map(|&s| self.path(s.index()).to_vec()).collect(),
                weight: self.weight[first.index()],
                demand_bps: Some(demand).filter(|d| d.is_finite()),
                bandwidth_function: match &utility {
                    Some(Utility::BandwidthFunction { function, .. }) => Some(function.points().to_vec()),
                    _ => None,
                },
                ..Flow::over(String::new(), Vec::new())
            };
            flows.push(flow, &self.network)?;
            utilities.extend(utility);
            order.extend(mine);
        }
        Ok((flows, utilities, order))
    }

    /// The subflows of flow `f`.
    pub fn subflows(&self, f: FlowId) -> std::ops::Range<usize> {
        self.sub_ptr.row(f)
    }

    /// The links of a subflow.
    pub fn path(&self, sub: usize) -> &[LinkId] {
        &self.links[self.link_ptr.row(sub)]
    }

    /// Current capacity of a link, bit/s: 0 while the link is down.
    pub fn capacity_bps(&self, link: LinkId) -> f64 {
        if self.down[link] > 0 { 0.0 } else { self.capacity_bps[link] }
    }

    /// The rate of a subflow, bit/s.
    pub fn sub_bps(&self, sub: usize) -> f64 {
        self.sub_bps[sub]
    }

    /// The rate of flow `f`, bit/s.
    pub fn flow_bps(&self, f: FlowId) -> f64 {
        self.sub_bps[self.subflows(f)].iter().sum()
    }

    /// Sets the rate of flow `f` to 0.
    pub fn clear(&mut self, f: FlowId) {
        let subflows = self.subflows(f);
        self.sub_bps[subflows].fill(0.0);
    }
}
