//! Centralized NED (Flowtune, sections 2 and 3): the controller knows the flows and their paths, iterates, normalizes
//! rates to the capacities (F-NORM), and sends rates that changed by more than a threshold to the sources.
//!
//! The iteration is that of `subak_solve::ned`, one step per interval. Each path is a flow of its own in it: a
//! subflow's share of its flow's weight is its share of the flow's rate, as in NUMFabric's resource pooling (section
//! 6.3).
//!
//! Rates fill links except for the fraction `reserve`, which is left to ACKs and messages, since no congestion control
//! reacts if data leaves them no room. A source without a rate from the controller sends at `first` times its line
//! rate.

use super::given::NoPrice;
use crate::over::{Centre, Feedback, Optimizer, OptimizerSource, Part, Rate};
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{FlowInfo, Follows, Goal, Param, Params, Port, Settles, Utilities};
use subak_core::utility::Urgency;
use subak_core::{FlowId, IdVec, InputError, LinkId, Network, Ns, SubflowId, Utility};
use subak_solve::ned::{Cluster, FlowKey, Ned, NedIteration, Normalizer};

/// Minimum fraction of its flow's weight that a subflow has: a subflow of weight 0 would stay at rate 0.
const LEAST_SHARE: f64 = 0.01;

/// Upper bound of the logarithm of a weight, and of its inverse's.
const MOST_LN_WEIGHT: f64 = 230.0;

/// Parameter `threshold`: relative change of a rate above which the controller sends it.
pub(super) const THRESHOLD: Param =
    Param::number("threshold", 0.01, AMOUNT, "relative change above which a rate is sent");
/// Parameter `reserve`: fraction of a link that rates leave to ACKs and messages.
pub(super) const RESERVE: Param = Param::number(
    "reserve",
    0.02,
    AMOUNT,
    "share of a link left to messages; where traffic runs in both directions, the default is larger by the ACKs' share (64 of \
        1500 bytes: 0.043)",
)
.following(Follows::Acks);
/// Parameter `first`: rate before the controller has sent one, as a multiple of the line rate.
pub(super) const FIRST: Param =
    Param::number("first", 0.01, AMOUNT, "rate of a source before the first from the controller, in line rates");

/// The optimizer ned-central: NED at a controller.
#[derive(Debug, Clone, Copy)]
pub struct NedCentral {
    gamma: f64,
    alpha: f64,
    interval_ns: Ns,
    threshold: f64,
    reserve: f64,
    first: f64,
}

impl Optimizer for NedCentral {
    const PART: Part = Part {
        name: "ned-central",
        about: "rates that maximize utility, handed out by a central allocator (NED with F-NORM)",
        paper: "Perry et al., Flowtune, NSDI 2017, sections 2 and 3",
        params: &[
            Param::number("gamma", 0.2, AMOUNT, "step size, as a fraction of Newton's"),
            Param::number("alpha", 1.0, AMOUNT, "the policy's alpha").following(Follows::Alpha),
            Param::number("interval", 10e-6, ValueType::Time, "time between two iterations"),
            THRESHOLD,
            RESERVE,
            FIRST,
        ],
        goal: Goal::Utility(Utilities { bandwidth_functions: false, pooled_alpha: 2.0, ..Utilities::ALL }),
        settles: Settles { within: 0.05, rtts: 100.0 },
    };
    type Wish = Rate;
    type Note = ();
    type Source = CentralSource;
    type Price = NoPrice;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(NedCentral {
            gamma: params.within("gamma", 1e-6, 2.0)?,
            alpha: params.within("alpha", 0.01, 100.0)?,
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
        Some(Box::new(NedCentre::new(*self, network)?))
    }
    fn source(&self, flow: &FlowInfo) -> CentralSource {
        CentralSource::new(self.first, flow)
    }
    fn price(&self, _port: &Port) -> NoPrice {
        NoPrice
    }
}

/// Sender of an optimizer with a controller: its target rates are those that the controller sent.
#[derive(Debug, Clone)]
pub struct CentralSource {
    wish_bps: IdVec<SubflowId, f64>,
    urgency: Urgency,
    start_ns: Ns,
    remaining_bytes: u64,
}

impl CentralSource {
    /// The sender of `flow`, with a target rate of `first` times the line rate until the controller sends one.
    pub fn new(first: f64, flow: &FlowInfo) -> Self {
        CentralSource {
            wish_bps: flow.paths.iter().map(|p| first * p.line_rate_bps).collect(),
            urgency: flow.urgency,
            start_ns: 0,
            remaining_bytes: flow.size_bytes.unwrap_or(u64::MAX),
        }
    }
}

impl<O: Optimizer<Wish = Rate, Note = ()>> OptimizerSource<O> for CentralSource {
    fn on_start(&mut self, now_ns: Ns) {
        self.start_ns = now_ns;
    }
    #[inline]
    fn wish(&self, k: SubflowId) -> Rate {
        Rate(self.wish_bps[k])
    }
    fn on_weight(&mut self, _weight: f64, _utility: &Arc<Utility>) {}
    fn on_wish(&mut self, k: SubflowId, Rate(bps): Rate) {
        if let Some(wish) = self.wish_bps.get_mut(k) {
            *wish = bps;
        }
    }
    /// Multiplies the flow's utility by its present urgency, a factor of remaining bytes and age.
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo) {
        if let (Utility::Power { alpha, ln_gain }, false) = (&*flow.utility, self.urgency == Urgency::Constant) {
            let factor = self.urgency.factor(self.remaining_bytes, now_ns - self.start_ns);
            flow.utility = Arc::new(Utility::Power { alpha: *alpha, ln_gain: ln_gain + libm::log(factor) });
        }
    }
    #[inline]
    fn on_feedback(&mut self, _k: SubflowId, feedback: &Feedback) {
        self.remaining_bytes = feedback.remaining_bytes;
    }
}

/// State of the controller.
struct NedCentre {
    ned: NedCentral,
    iteration: NedIteration<f64, Ned>,
    flows: BTreeMap<FlowId, Known>,
    /// Logarithm of the unit of weights. Rates do not depend on it. It is 0 unless a weight would exceed its bounds, as
    /// under `fct` with a small epsilon: 10 TB at 0.125, or 100 KB at 0.05.
    ln_unit: f64,
}

/// State of a flow at the controller.
struct Known {
    /// Logarithm of the flow's weight in the marginal utility w^alpha x^-alpha.
    ln_weight: f64,
    /// The weight in the iteration.
    weight: f64,
    links: IdVec<SubflowId, Vec<LinkId>>,
    subflows: IdVec<SubflowId, NedCentralSubflow>,
}

/// A subflow: its key in the iteration, unless its path is invalid, and the latest rate sent to its source.
#[derive(Clone, Copy)]
struct NedCentralSubflow {
    key: Option<FlowKey>,
    told_bps: Option<f64>,
}

impl NedCentre {
    fn new(ned: NedCentral, network: &Network) -> Option<Self> {
        let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps * ned.share()).collect();
        let cluster = Cluster::new(&capacity_bps, ned.alpha).ok()?;
        let iteration = NedIteration::new(cluster, Ned::with_gamma(ned.gamma));
        Some(NedCentre { ned, iteration, flows: BTreeMap::new(), ln_unit: 0.0 })
    }

    /// Logarithm of the weight w of the marginal utility w^alpha x^-alpha.
    fn ln_weight(&self, flow: &FlowInfo) -> f64 {
        match &*flow.utility {
            Utility::Power { ln_gain, .. } => ln_gain / self.ned.alpha,
            Utility::BandwidthFunction { .. } | Utility::Curve { .. } => libm::log(flow.weight),
        }
    }

    /// The weight in the iteration.
    fn weight(&self, ln_weight: f64) -> f64 {
        libm::exp((ln_weight - self.ln_unit).clamp(-MOST_LN_WEIGHT, MOST_LN_WEIGHT))
    }

    /// Centres the unit on the weights of all flows and `ln_weight`, if that is out of bounds.
    fn fit_unit(&mut self, ln_weight: f64) {
        if (ln_weight - self.ln_unit).abs() <= MOST_LN_WEIGHT {
            return;
        }
        let known = self.flows.values().map(|known| known.ln_weight);
        let (low, high) = known.fold((ln_weight, ln_weight), |(low, high), ln| (ln.min(low), ln.max(high)));
        self.ln_unit = (low + high) / 2.0;
        let flows: Vec<(FlowId, f64)> = self.flows.iter().map(|(&flow, known)| (flow, known.ln_weight)).collect();
        flows.into_iter().for_each(|(flow, ln_weight)| self.set_weight(flow, ln_weight));
    }

    /// Sets the weight of a known flow, divided equally among its subflows.
    fn set_weight(&mut self, flow: FlowId, ln_weight: f64) {
        let weight = self.weight(ln_weight);
        let Some(known) = self.flows.get_mut(&flow) else { return };
        (known.ln_weight, known.weight) = (ln_weight, weight);
        let part = weight / known.subflows.len().max(1) as f64;
        for key in known.subflows.iter().filter_map(|s| s.key) {
            // Cannot fail: the iteration has the key, and the weight is within its bounds.
            let _ = self.iteration.cluster_mut().set_weight(key, part);
        }
    }
}

impl Centre<Rate> for NedCentre {
    fn interval_ns(&self) -> Ns {
        self.ned.interval_ns
    }

    fn on_flow(&mut self, flow: &FlowInfo) {
        if self.flows.get(&flow.flow).is_some_and(|known| known.links != flow.links) {
            self.on_gone(flow.flow);
        }
        let ln_weight = self.ln_weight(flow);
        self.fit_unit(ln_weight);
        if let Some(known) = self.flows.get(&flow.flow) {
            if known.ln_weight != ln_weight {
                self.set_weight(flow.flow, ln_weight);
            }
            return;
        }
        let weight = self.weight(ln_weight);
        let parts = flow.links.len().max(1) as f64;
        let (part, demand_bps) = (weight / parts, flow.demand_bps / parts);
        let cluster = self.iteration.cluster_mut();
        let add = |path: &Vec<LinkId>| NedCentralSubflow {
            key: cluster.add_within(path, part, demand_bps).ok(),
            told_bps: None,
        };
        let subflows = flow.links.iter().map(add).collect();
        self.flows.insert(flow.flow, Known { ln_weight, weight, links: flow.links.clone(), subflows });
    }

    fn on_gone(&mut self, flow: FlowId) {
        for key in self.flows.remove(&flow).into_iter().flat_map(|known| known.subflows).filter_map(|s| s.key) {
            let _ = self.iteration.cluster_mut().remove(key);
        }
    }

    fn on_capacity(&mut self, link: LinkId, capacity_bps: f64) {
        let _ = self.iteration.cluster_mut().set_capacity(link, capacity_bps * self.ned.share());
    }

    fn step(&mut self, _now_ns: Ns, tell: &mut dyn FnMut(FlowId, SubflowId, Rate)) {
        let NedCentre { ned, iteration, flows, .. } = self;
        iteration.step();
        let keys: Vec<FlowKey> = flows.values().flat_map(|known| &known.subflows).filter_map(|s| s.key).collect();
        let mut rates = iteration.rates_bps(Normalizer::Flow, &keys).into_iter();
        for (&flow, known) in flows.iter_mut() {
            let mut sum_bps = 0.0;
            let mut own_bps = Vec::with_capacity(known.subflows.len());
            for (k, subflow) in known.subflows.iter_enumerated_mut() {
                let bps = if subflow.key.is_some() { rates.next().unwrap_or(0.0) } else { 0.0 };
                sum_bps += bps;
                own_bps.push(bps);
                let differs = |told: f64| (bps - told).abs() > ned.threshold * told;
                // A rate of zero is sent as 1 bit/s: a flow at rate 0 would send no packet any more.
                if subflow.key.is_some() && subflow.told_bps.is_none_or(differs) {
                    subflow.told_bps = Some(bps);
                    tell(flow, k, Rate(bps.max(1.0)));
                }
            }
            if known.subflows.len() > 1 && sum_bps > 0.0 {
                for (subflow, bps) in known.subflows.iter().zip(own_bps) {
                    let share = (bps / sum_bps).max(LEAST_SHARE);
                    if let Some(key) = subflow.key {
                        let _ = iteration.cluster_mut().set_weight(key, known.weight * share);
                    }
                }
            }
        }
    }

    fn told(&self, flow: FlowId, k: SubflowId) -> Option<Rate> {
        let known = self.flows.get(&flow)?;
        known.subflows.get(k)?.told_bps.map(|bps| Rate(bps.max(1.0)))
    }
}
