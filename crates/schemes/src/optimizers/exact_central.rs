//! Exact rates from a controller that knows the flows and their paths. It solves the policy exactly whenever flows,
//! utilities or capacities have changed, and sends rates that changed by more than a threshold to the sources.
//!
//! It shows the best that a central allocator could do (Flowtune, section 2, with the exact solver in place of NED),
//! for every policy: weighted max-min, which maximizes no utility; bandwidth functions by their fair shares; multipath
//! (pooled) flows.

use super::given::NoPrice;
use super::ned_central::{CentralSource, FIRST, RESERVE, THRESHOLD};
use crate::over::{Centre, Optimizer, Part, Rate};
use std::collections::BTreeMap;
use subak_core::keys::ValueType;
use subak_core::scheme::{FlowInfo, Follows, Goal, Param, Params, Port, Settles};
use subak_core::{Case, Flow, FlowId, Flows, IdVec, InputError, LinkId, Network, Ns, Policy, SubflowId, Utility};
use subak_solve::{Answer, SolveOptions, maximize, solve};

/// Capacity of a failed link, bit/s: the solver requires positive capacities.
const LEAST_BPS: f64 = 1.0;

/// The optimizer exact-central: exact rates from a controller.
#[derive(Debug, Clone, Copy)]
pub struct ExactCentral {
    max_min: bool,
    interval_ns: Ns,
    threshold: f64,
    reserve: f64,
    first: f64,
}

impl Optimizer for ExactCentral {
    const PART: Part = Part {
        name: "exact-central",
        about: "exact rates of any policy, handed out by a central allocator",
        paper: "none: Flowtune's architecture (Perry et al., NSDI 2017, section 2) with the exact solver",
        params: &[
            Param::flag(
                "max_min",
                true,
                "whether the goal is weighted max-min, not the sum of utilities: as the policy",
            )
            .following(Follows::MaxMin),
            Param::number("interval", 10e-6, ValueType::Time, "time between two looks at what has changed"),
            THRESHOLD,
            RESERVE,
            FIRST,
        ],
        goal: Goal::Any,
        settles: Settles { within: 0.05, rtts: 100.0 },
    };
    type Wish = Rate;
    type Note = ();
    type Source = CentralSource;
    type Price = NoPrice;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(ExactCentral {
            max_min: params.flag("max_min"),
            interval_ns: (params.within("interval", 1e-7, 1.0)? * 1e9).round() as Ns,
            threshold: params.within("threshold", 0.0, 1.0)?,
            reserve: params.within("reserve", 0.0, 0.9)?,
            first: params.within("first", 1e-6, 1.0)?,
        })
    }
    fn share(&self) -> f64 {
        1.0 - self.reserve
    }
    fn is_central(&self) -> bool {
        true
    }
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Rate>>> {
        let mut network = network.clone();
        network.links().ids().for_each(|link| network.link_mut(link).capacity_bps *= self.share());
        Some(Box::new(ExactCentre { set: *self, network, flows: BTreeMap::new(), changed: false }))
    }
    fn source(&self, flow: &FlowInfo) -> CentralSource {
        CentralSource::new(self.first, flow)
    }
    fn price(&self, _port: &Port) -> NoPrice {
        NoPrice
    }
}

/// State of the controller.
struct ExactCentre {
    set: ExactCentral,
    /// The network with the fraction of each capacity that rates may use.
    network: Network,
    flows: BTreeMap<FlowId, KnownFlow>,
    /// Whether flows, utilities or capacities changed after the last solution.
    changed: bool,
}

struct KnownFlow {
    info: FlowInfo,
    told_bps: IdVec<SubflowId, Option<f64>>,
}

impl ExactCentre {
    /// The exact rates; `None` if the problem has no solution, for instance because a path is invalid.
    fn solve(&self) -> Option<Answer> {
        let mut flows = Flows::new();
        for KnownFlow { info, .. } in self.flows.values() {
            let mut flow = Flow::over(format!("{}", info.flow.0), Vec::new());
            flow.paths = info.links.iter().cloned().collect();
            flow.weight = info.weight;
            flow.demand_bps = Some(info.demand_bps).filter(|bps| bps.is_finite());
            if let Utility::BandwidthFunction { function, .. } = &*info.utility {
                flow.bandwidth_function = Some(function.points().to_vec());
            }
            flows.push(flow, &self.network).ok()?;
        }
        let utilities: Vec<Utility> = self.flows.values().map(|known| (*known.info.utility).clone()).collect();
        let functions = utilities.iter().all(|u| matches!(u, Utility::BandwidthFunction { .. }));
        let policy = if self.set.max_min { Policy::MaxMin } else { Policy::BANDWIDTH_FUNCTION };
        let case = Case { network: self.network.clone(), flows, policy };
        let options = SolveOptions::default();
        if self.set.max_min || functions { solve(&case, &options) } else { maximize(&case, &utilities, &options) }.ok()
    }
}

impl Centre<Rate> for ExactCentre {
    fn interval_ns(&self) -> Ns {
        self.set.interval_ns
    }

    fn on_flow(&mut self, flow: &FlowInfo) {
        let same = |known: &KnownFlow| {
            known.info.links == flow.links && known.info.utility == flow.utility && known.info.weight == flow.weight
        };
        if self.flows.get(&flow.flow).is_some_and(same) {
            return;
        }
        self.changed = true;
        let told_bps = IdVec::filled(None, flow.links.len());
        self.flows.insert(flow.flow, KnownFlow { info: flow.clone(), told_bps });
    }

    fn on_gone(&mut self, flow: FlowId) {
        self.changed |= self.flows.remove(&flow).is_some();
    }

    fn on_capacity(&mut self, link: LinkId, capacity_bps: f64) {
        self.network.link_mut(link).capacity_bps = (capacity_bps * self.set.share()).max(LEAST_BPS);
        self.changed = true;
    }

    fn step(&mut self, _now_ns: Ns, tell: &mut dyn FnMut(FlowId, SubflowId, Rate)) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let Some(answer) = self.solve() else { return };
        let mut rates = answer.path_rates_bps.into_iter();
        for (&flow, known) in &mut self.flows {
            for (k, told) in known.told_bps.iter_enumerated_mut() {
                let bps = rates.next().unwrap_or(0.0);
                if told.is_none_or(|told| (bps - told).abs() > self.set.threshold * told) {
                    *told = Some(bps);
                    tell(flow, k, Rate(bps.max(LEAST_BPS)));
                }
            }
        }
    }

    fn told(&self, flow: FlowId, k: SubflowId) -> Option<Rate> {
        self.flows.get(&flow)?.told_bps.get(k)?.map(|bps| Rate(bps.max(LEAST_BPS)))
    }
}
