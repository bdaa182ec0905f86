//! Distributed NED (Flowtune, section 2.3): sources compute rates, links compute prices, and packets carry the
//! derivatives that a link needs for its Newton step.
//!
//! A source sends at x = U'^-1(q), where q is the price of its path. Each data packet carries -(dx/dq) / x, which is
//! 1/(alpha q). A link sums up bytes, and bytes times this value, over an interval. The first sum is its load, the
//! second -H, where H is the derivative of its load by its price. A flow's share of the bytes is its share of the load,
//! so that no link has per-flow state. The link then updates its price by equation 4.
//!
//! Additions to the paper:
//! - if a window limits a source below its target rate, the target rate counts as load;
//! - the queue counts as load to be drained over some intervals, because no normalizer keeps rates to the capacities;
//! - q is at least U' of the line rate, or of the end of a bandwidth function, so that the derivative at a price of zero is
//!   finite: without one, prices would stay at zero;
//! - a step reduces a price to a quarter at most, and an interval without derivatives leaves the price unchanged;
//! - a bandwidth function has the derivative of a function that is linear from zero.

use super::prices::{PriceInterval, SHARE_TIME, SubflowTargets, share_ns};
use crate::over::{Feedback, HANDSHAKE, NumberNote, Optimizer, OptimizerSource, Part, Price, Rate};
use std::sync::Arc;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{FlowInfo, Goal, Param, Params, Port, Settles, Utilities};
use subak_core::{IdVec, InputError, Ns, SubflowId, Utility};

/// Upper bound of the ratio of target rate to rate in a packet.
const MOST_SCALE: f64 = 100.0;

/// Minimum rate, as a fraction of the path's slowest link: a flow that sends no packets would receive no new price.
const FLOOR: f64 = 0.001;

/// Parameter `price_interval`: time between two updates of a link's price.
const PRICE_INTERVAL: Param = Param::number(
    "price_interval",
    0.0,
    ValueType::Time,
    "time between two updates of a link's price; 0: 3 of the network's longest base RTTs",
);

/// The optimizer ned: distributed NED.
#[derive(Debug, Clone, Copy)]
pub struct NedOptimizer {
    gamma: f64,
    drain: f64,
    interval: PriceInterval,
    /// Time constant of the average of a subflow's share, ns; `None`: the default.
    share_ns: Option<Ns>,
    handshake: bool,
}

/// Values that a data packet carries to the links.
#[derive(Debug, Clone, Copy)]
pub struct NedNote {
    /// -(dx/dq) / x for rate x and path price q; zero before the source knows the price of its path.
    derivative: f64,
    /// Ratio of target rate to rate: above 1 while a window limits the source.
    scale: f32,
}

impl Default for NedNote {
    fn default() -> Self {
        Self::of(0.0)
    }
}

impl NumberNote for NedNote {
    fn of(derivative: f64) -> Self {
        NedNote { derivative, scale: 1.0 }
    }
    fn number(self) -> f64 {
        self.derivative
    }
}

impl Optimizer for NedOptimizer {
    const PART: Part = Part {
        name: "ned",
        about: "rates that maximize utility, from link prices moved by Newton's exact diagonal (NED), without a centre",
        paper: "Perry et al., Flowtune, NSDI 2017, section 2.3 and equation 4",
        params: &[
            Param::number("gamma", 0.2, AMOUNT, "the share of Newton's step that a price moves by"),
            Param::number("drain", 10.0, AMOUNT, "intervals over which a queue is to be drained"),
            PRICE_INTERVAL,
            SHARE_TIME,
            HANDSHAKE,
        ],
        goal: Goal::Utility(Utilities { ranks: false, curves: true, pooled_alpha: 1.0, ..Utilities::ALL }),
        settles: Settles { within: 0.1, rtts: 500.0 },
    };
    type Wish = Rate;
    type Note = NedNote;
    type Source = NedSource;
    type Price = NedPrice;

    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        Some(self.interval.on(rtt_ns))
    }
    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(NedOptimizer {
            gamma: params.within("gamma", 1e-6, 2.0)?,
            drain: params.within("drain", 1.0, 1e9)?,
            interval: PriceInterval::new(params, 3.0, 1e-7)?,
            share_ns: share_ns(params)?,
            handshake: params.flag("handshake"),
        })
    }
    fn has_handshake(&self) -> bool {
        self.handshake
    }
    fn source(&self, flow: &FlowInfo) -> NedSource {
        let top_bps = flow.utility.top_bps();
        let most_bps: IdVec<_, f64> = flow.paths.iter().map(|p| p.line_rate_bps.min(top_bps)).collect();
        NedSource {
            wishes: SubflowTargets::for_rates(flow, FLOOR, self.share_ns),
            answers: IdVec::filled(NedNote::default(), most_bps.len()),
            most_bps,
            demand_bps: flow.demand_bps,
        }
    }
    fn price(&self, port: &Port) -> NedPrice {
        NedPrice { ned: *self, interval_ns: self.interval.on(port.rtt_ns), price: 0.0, arrived_bytes: 0, answered: 0.0 }
    }
}

/// Sender of distributed NED: target rates by Flowtune, equation 3, and their derivatives.
#[derive(Debug, Clone)]
pub struct NedSource {
    wishes: SubflowTargets,
    /// Line rate, or the rate above which the utility is constant if that is smaller, bit/s.
    most_bps: IdVec<SubflowId, f64>,
    /// Demand of the flow, bit/s.
    demand_bps: f64,
    answers: IdVec<SubflowId, NedNote>,
}

impl OptimizerSource<NedOptimizer> for NedSource {
    fn on_start(&mut self, now_ns: Ns) {
        self.wishes.on_start(now_ns);
    }
    #[inline]
    fn wish(&self, k: SubflowId) -> Rate {
        Rate(self.wishes.wish_bps(k))
    }
    fn on_weight(&mut self, _weight: f64, utility: &Arc<Utility>) {
        self.wishes.set_utility(utility);
    }
    #[inline]
    fn note(&self, k: SubflowId) -> NedNote {
        self.answers[k]
    }
    #[inline]
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        self.wishes.on_feedback(k, feedback.path_price, feedback);
        let floor = self.wishes.marginal().at(self.most_bps[k]);
        let price = feedback.path_price.max(floor);
        let answer = 1.0 / (self.wishes.marginal().alpha_of(price) * price);
        let load_bps = self.wishes.wish_bps(k).min(self.demand_bps);
        let scale = feedback.rate_bps.map_or(1.0, |bps| (load_bps / bps).clamp(1.0, MOST_SCALE));
        let derivative = if answer.is_finite() { answer } else { 0.0 };
        self.answers[k] = NedNote { derivative, scale: scale as f32 };
    }
}

/// Price of a link by Flowtune, equation 4.
#[derive(Debug, Clone)]
pub struct NedPrice {
    ned: NedOptimizer,
    interval_ns: Ns,
    price: f64,
    arrived_bytes: u64,
    /// Sum over packets of bytes times the derivative that the packet carries.
    answered: f64,
}

impl Price<NedNote> for NedPrice {
    fn first_update_ns(&self) -> Option<Ns> {
        Some(self.interval_ns)
    }
    #[inline]
    fn now(&self) -> f64 {
        self.price
    }
    #[inline]
    fn on_enqueue(&mut self, _now_ns: Ns, bytes: u32, note: Option<&NedNote>) {
        let NedNote { derivative, scale } = note.copied().unwrap_or_default();
        let load_bytes = bytes as f32 * scale;
        self.arrived_bytes += load_bytes.round() as u64;
        self.answered += f64::from(load_bytes) * derivative;
    }
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let per_s = 8e9 / self.interval_ns as f64;
        // A long queue counts as a full link's load: it may be full, and packets that it drops do not count as load.
        let is_long = port.queued_bytes > port.buffer_bytes / 2;
        let queue_bps = if is_long { port.capacity_bps } else { port.queued_bytes as f64 * per_s / self.ned.drain };
        let (load_bps, h) = (self.arrived_bytes as f64 * per_s, self.answered * per_s);
        if h > 0.0 {
            let step = self.ned.gamma * (load_bps + queue_bps - port.capacity_bps) / h;
            // A price too small to change the price of a path counts as zero.
            let moved = (self.price + step).max(0.25 * self.price);
            self.price = if moved > 1e-9 * load_bps / h { moved } else { 0.0 };
        }
        self.arrived_bytes = 0;
        self.answered = 0.0;
        now_ns + self.interval_ns
    }
}
