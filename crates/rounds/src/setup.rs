//! Fixed sets of flows over links, and the random ones of the PERC thesis (section 3.3): K links, J flows, P links
//! per flow.

use crate::backend::Wire;
use subak_core::rng::Stream;
use subak_core::{Case, Flow, FlowId, Flows, IdVec, InputError, Link, LinkId, Network, Ns, Policy};

/// Default delay of a link, ns, as in section 3.3 of the PERC thesis.
pub const DELAY_NS: Ns = 10_000;

/// Largest one-way delay of a flow, ns: an hour.
const LONGEST_NS: Ns = 3_600_000_000_000;

/// Links and flows in the form that the round-based backend runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The links.
    pub wires: IdVec<LinkId, Wire>,
    /// The links of each flow.
    pub paths: IdVec<FlowId, Vec<LinkId>>,
    /// Weight of each flow.
    pub weights: IdVec<FlowId, f64>,
}

/// Capacities of a random setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityDraw {
    /// 10 Gb/s everywhere.
    Equal,
    /// 1 to 100 Gb/s, drawn for each link.
    Mixed,
}

/// A random setup (PERC thesis, section 3.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Random {
    /// Number of links (K).
    pub links: usize,
    /// Number of flows (J).
    pub flows: usize,
    /// Number of links per flow (P), all distinct.
    pub hops: usize,
    /// Capacities of the links.
    pub capacities: CapacityDraw,
    /// Largest weight; weights are drawn from 1 to this.
    pub heaviest: u32,
    /// Seed of all draws.
    pub seed: u64,
}

impl Random {
    /// Draws the setup.
    pub fn draw(&self) -> Setup {
        let mut random = Stream::new(self.seed, "setup");
        let wires = (0..self.links).map(|_| {
            let gbps = match self.capacities {
                CapacityDraw::Equal => 10.0,
                CapacityDraw::Mixed => 1.0 + random.below(100) as f64,
            };
            Wire { capacity_bps: gbps * 1e9, delay_ns: DELAY_NS }
        });
        let wires = wires.collect();
        let mut deck: Vec<LinkId> = LinkId::first(self.links).collect();
        let mut path = || {
            for k in 0..self.hops.min(self.links) {
                let other = k + random.below(self.links - k);
                deck.swap(k, other);
            }
            deck[..self.hops.min(self.links)].to_vec()
        };
        let paths = (0..self.flows).map(|_| path()).collect();
        let weights = (0..self.flows).map(|_| 1.0 + random.below(self.heaviest.max(1) as usize) as f64).collect();
        Setup { wires, paths, weights }
    }
}

impl Setup {
    /// The links and flows of `case`, which must be single-path max-min. A demand becomes a link without delay at the
    /// head of the flow's path: the virtual link l0 of the PERC thesis (section 4.1). The caller removes flows with
    /// demand 0.
    pub fn from_case(case: &Case) -> Result<Self, InputError> {
        if case.policy != Policy::MaxMin {
            return Err(InputError::new(
                "policy.kind",
                "control messages compute max-min rates only",
                "choose \"max-min\", or leave the policy out",
            ));
        }
        let delay = |ns: Ns| if ns == 0 { DELAY_NS } else { ns.min(LONGEST_NS) };
        let links = case.network.links().iter();
        let wires = links.map(|l| Wire { capacity_bps: l.capacity_bps, delay_ns: delay(l.delay_ns) }).collect();
        let mut setup = Setup { wires, paths: IdVec::new(), weights: IdVec::new() };
        for f in 0..case.flows.len() {
            let paths = case.flows.paths_of(f);
            if paths.len() != 1 {
                return Err(InputError::new(
                    format!("flows[{f}].paths"),
                    "a flow with several paths",
                    "give each flow one path: the round-based backend does not pool",
                ));
            }
            let mut path = case.flows.links_of(paths.start).to_vec();
            check(f, &path, case.flows.weight()[f], &setup.wires)?;
            let demand_bps = case.flows.demand_bps()[f];
            if demand_bps.is_finite() {
                path.insert(0, setup.wires.push(Wire { capacity_bps: demand_bps, delay_ns: 0 }));
            }
            setup.paths.push(path);
            setup.weights.push(case.flows.weight()[f]);
        }
        Ok(setup)
    }

    /// The setup as a case for the exact solvers.
    pub fn to_case(&self) -> Result<Case, InputError> {
        let mut network = Network::new();
        for (k, wire) in self.wires.iter().enumerate() {
            network.add(Link {
                id: format!("l{k}"),
                from: None,
                to: None,
                capacity_bps: wire.capacity_bps,
                delay_ns: wire.delay_ns,
                buffer_bytes: None,
            })?;
        }
        let mut flows = Flows::new();
        for (k, path) in self.paths.iter_enumerated() {
            flows.push(Flow { weight: self.weights[k], ..Flow::over(format!("f{k}"), path.clone()) }, &network)?;
        }
        Ok(Case { network, flows, policy: Policy::MaxMin })
    }

    /// Largest RTT, ns, with up to `jitter_ns` on each link.
    pub fn rtt_ns(&self, jitter_ns: Ns) -> Ns {
        let one_way = |path: &Vec<LinkId>| -> Ns { path.iter().map(|&l| self.wires[l].delay_ns + jitter_ns).sum() };
        2 * self.paths.iter().map(one_way).max().unwrap_or(0).max(1)
    }

    /// Capacities of the links, bit/s.
    pub fn capacities_bps(&self) -> Vec<f64> {
        self.wires.iter().map(|w| w.capacity_bps).collect()
    }
}

/// An error for a flow that this backend cannot run: more links than the 16-bit number of a hop allows, a delay above
/// an hour, or weights whose sums would lose precision.
pub(crate) fn check(f: usize, path: &[LinkId], weight: f64, wires: &IdVec<LinkId, Wire>) -> Result<(), InputError> {
    let fault = |key: &str, what: String, hint: &str| Err(InputError::new(format!("flows[{f}].{key}"), what, hint));
    if path.len() >= usize::from(u16::MAX) {
        return fault("path", format!("a path of {} links", path.len()), "give paths of fewer than 65,535 links");
    }
    let way_ns = path.iter().fold(0, |sum: Ns, &l| sum.saturating_add(wires[l].delay_ns));
    if way_ns > LONGEST_NS {
        return fault("path", "the path takes over an hour".into(), "give the links shorter delays");
    }
    if !(1e-9..=1e9).contains(&weight) {
        return fault(
            "weight",
            format!("the weight is {weight}"),
            "give a weight from 1e-9 to 1e9 to the round-based backend",
        );
    }
    Ok(())
}
