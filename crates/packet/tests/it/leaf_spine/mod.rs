//! A leaf-spine network, random flows over it, and their rates by the exact solver.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, PacketSizes, Route};
use subak_core::rng::Stream;
use subak_core::{Case, Flow, FlowId, Flows, LinkId, Network, NodeKind, Policy, Utility};

pub const US: u64 = 1000;
pub const MS: u64 = 1_000_000;

pub struct LeafSpine {
    pub network: Network,
    hosts_per_leaf: usize,
    spines: usize,
    /// Uplink and downlink of each host.
    access: Vec<(LinkId, LinkId)>,
    core: Vec<Vec<(LinkId, LinkId)>>,
}

impl LeafSpine {
    /// A network with hosts at 10 Gb/s and 2 us per link, thus an RTT slightly above 16 us. The last node is for a
    /// controller.
    pub fn new(leaves: usize, spines: usize, hosts_per_leaf: usize, spine_bps: f64) -> Self {
        let mut network = Network::new();
        let tops: Vec<_> = (0..spines).map(|s| network.node(&format!("spine{s}"), NodeKind::Switch)).collect();
        let (mut access, mut core) = (Vec::new(), Vec::new());
        for leaf in 0..leaves {
            let node = network.node(&format!("leaf{leaf}"), NodeKind::Switch);
            core.push(tops.iter().map(|&t| network.connect(node, t, spine_bps, 2000, None).unwrap()).collect());
            for h in 0..hosts_per_leaf {
                let host = network.node(&format!("h{}", leaf * hosts_per_leaf + h), NodeKind::Host);
                access.push(network.connect(host, node, 10e9, 2000, None).unwrap());
            }
        }
        let controller = network.node("controller", NodeKind::Switch);
        network.connect(controller, tops[0], spine_bps, 2000, None).unwrap();
        LeafSpine { network, hosts_per_leaf, spines, access, core }
    }

    pub fn hosts(&self) -> usize {
        self.access.len()
    }

    pub fn route(&self, src: usize, dst: usize, spine: usize) -> Route {
        let (a, b) = (src / self.hosts_per_leaf, dst / self.hosts_per_leaf);
        let (mut forward, mut back) = (vec![self.access[src].0], vec![self.access[dst].0]);
        if a != b {
            forward.extend([self.core[a][spine].0, self.core[b][spine].1]);
            back.extend([self.core[b][spine].0, self.core[a][spine].1]);
        }
        forward.push(self.access[dst].1);
        back.push(self.access[src].1);
        Route { forward, back }
    }

    /// Random route from a host of the lower half to one of the upper half, so that ACKs do not share links with
    /// data.
    pub fn one_way(&self, rng: &mut Stream) -> Route {
        let half = self.hosts() / 2;
        self.route(rng.below(half), half + rng.below(half), rng.below(self.spines))
    }
}

pub fn plan(routes: Vec<Route>, weight: f64, utility: Option<Utility>) -> FlowPlan {
    FlowPlan { weight, utility: utility.map(Arc::new), ..FlowPlan::new(routes) }
}

pub fn start(scheme: &str, params: serde_json::Value, network: &Network) -> Box<dyn Backend> {
    let params = params.as_object().cloned().unwrap_or_default();
    let mut sim = subak_packet::build(scheme, &params, network, PacketSizes::default(), &[], 1).unwrap();
    crate::common::place_controller(&mut *sim, network);
    sim
}

fn case(network: &Network, plans: &[FlowPlan], policy: Policy) -> Case {
    let mut flows = Flows::new();
    for (f, plan) in plans.iter().enumerate() {
        let mut flow = Flow::over(format!("f{f}"), Vec::new());
        flow.paths = plan.routes.iter().map(|r| r.forward.clone()).collect();
        flow.weight = plan.weight;
        if let Some(Utility::BandwidthFunction { function, .. }) = plan.utility.as_deref() {
            flow.bandwidth_function = Some(function.points().to_vec());
        }
        flows.push(flow, network).unwrap();
    }
    Case { network: network.clone(), flows, policy }
}

/// Exact rates under bandwidth functions, bit/s: max-min of their fair shares, not the maximum of the sum of
/// utilities.
pub fn fair_shares(network: &Network, plans: &[FlowPlan]) -> Vec<f64> {
    let case = case(network, plans, Policy::BANDWIDTH_FUNCTION);
    subak_solve::solve(&case, &subak_solve::SolveOptions::default()).unwrap().rates_bps
}

/// Exact rates of `plans`, bit/s: by the flows' utility functions if all have one, otherwise by `policy`.
pub fn exact(network: &Network, plans: &[FlowPlan], policy: Policy) -> Vec<f64> {
    let case = case(network, plans, policy);
    let utilities: Option<Vec<Utility>> = plans.iter().map(|p| p.utility.as_deref().cloned()).collect();
    let options = subak_solve::SolveOptions::default();
    let answer = match utilities {
        Some(utilities) => subak_solve::maximize(&case, &utilities, &options).unwrap(),
        None => subak_solve::solve(&case, &options).unwrap(),
    };
    assert!(answer.certificate.worst() <= 1e-6, "{:?}, {:?}", answer.status, answer.certificate);
    answer.rates_bps
}

/// Mean received rates over the next `span_ns`, bit/s.
pub fn received_bps(sim: &mut dyn Backend, flows: &[FlowId], span_ns: u64) -> Vec<f64> {
    let until_ns = sim.now_ns() + span_ns;
    let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
    sim.run_until(until_ns);
    let rate = |(&f, b): (&FlowId, u64)| (sim.flow(f).received_wire_bytes - b) as f64 * 8e9 / span_ns as f64;
    flows.iter().zip(before).map(rate).collect()
}

/// Fraction of the rates `got` that are within `tolerance` of `want`.
pub fn share_within(got: &[f64], want: &[f64], tolerance: f64) -> f64 {
    let near = got.iter().zip(want).filter(|(g, w)| (*g / *w - 1.0).abs() <= tolerance).count();
    near as f64 / got.len() as f64
}
