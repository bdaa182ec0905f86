//! An optimizer of rates over a transport of weights: the target rate is the weight. At the optimum, the weighted max-min
//! allocation with the optimal rates as weights is the optimum itself.
//!
//! Such a transport keeps links full, so the load that arrives tells a price nothing. A packet therefore carries its
//! subflow's target rate over its rate, and a price counts the packet's bytes times that: the sum of the target rates.
//! The queue is the transport's own, and a price sees none of it.
//!
//! One type stands for all optimizers of rates: each transport of weights is compiled with it once.

use super::{Centre, Feedback, Optimizer, OptimizerSource, Part, Price, Rate, Weight};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{Around, Doubt, FlowInfo, Goal, Params, Port, Settles};
use subak_core::{FlowId, IdVec, InputError, LinkId, Network, Ns, SubflowId, Utility};

/// A target rate counts as at most this many times the subflow's rate: a flow that has just started has nearly none.
const MOST_SCALE: f64 = 16.0;
/// Minimum weight, in line rates.
const LEAST_WEIGHT: f64 = 1e-3;
/// A weight falls by at most this factor at a time: each RTT, and each message of the centre. In a fair queue the packets of a
/// window sent at almost no weight delay the flow long after its weight has risen again.
const LARGEST_FALL: f64 = 0.25;

/// The note of an optimizer of rates as a number, so that one packet header serves all of them.
pub trait NumberNote: Copy + Default {
    /// The note of this number.
    fn of(number: f64) -> Self;
    /// Its number.
    fn number(self) -> f64;
}

impl NumberNote for () {
    fn of(_: f64) -> Self {}
    fn number(self) -> f64 {
        0.0
    }
}

/// Any optimizer of rates whose notes are numbers.
pub trait RateOptimizer: Debug + Send + Sync {
    /// As [`Optimizer::interval_ns`].
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns>;
    /// As [`Optimizer::doubts`].
    fn doubts(&self, around: &Around) -> Vec<Doubt>;
    /// As [`Optimizer::is_central`].
    fn is_central(&self) -> bool;
    /// As [`Optimizer::centre`].
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Rate>>>;
    /// As [`Optimizer::source`].
    fn source(&self, flow: &FlowInfo) -> Box<dyn RateSource>;
    /// As [`Optimizer::price`].
    fn price(&self, port: &Port) -> Box<dyn NumberPrice>;
}

/// The sender's side of any optimizer of rates: as [`OptimizerSource`].
pub trait RateSource: Send {
    /// The flow starts.
    fn on_start(&mut self, now_ns: Ns);
    /// Target rate of subflow `k`, bit/s.
    fn wish_bps(&self, k: SubflowId) -> f64;
    /// The flow has another weight, and this utility.
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>);
    /// The centre's target rate for subflow `k`.
    fn on_wish(&mut self, k: SubflowId, wish: Rate);
    /// Changes what the centre is told of the flow.
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo);
    /// The note of subflow `k`'s packets.
    fn note(&self, k: SubflowId) -> f64;
    /// Feedback for subflow `k`.
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback);
}

/// A link's price whose notes are numbers: as [`Price`].
pub trait NumberPrice: Send {
    /// First update, ns.
    fn first_update_ns(&self) -> Option<Ns>;
    /// The price.
    fn now(&self) -> f64;
    /// A packet that counts as `bytes` comes.
    fn on_enqueue(&mut self, now_ns: Ns, bytes: u32, note: Option<f64>);
    /// Updates the price; returns the time of the next update, ns.
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns;
}

struct OneSource<O: Optimizer>(O::Source);
struct OnePrice<O: Optimizer>(O::Price);

impl<O: Optimizer<Wish = Rate, Note: NumberNote> + Sync> RateOptimizer for O {
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        Optimizer::interval_ns(self, rtt_ns)
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        Optimizer::doubts(self, around)
    }
    fn is_central(&self) -> bool {
        Optimizer::is_central(self)
    }
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Rate>>> {
        Optimizer::centre(self, network)
    }
    fn source(&self, flow: &FlowInfo) -> Box<dyn RateSource> {
        Box::new(OneSource::<O>(Optimizer::source(self, flow)))
    }
    fn price(&self, port: &Port) -> Box<dyn NumberPrice> {
        Box::new(OnePrice::<O>(Optimizer::price(self, port)))
    }
}

impl<O: Optimizer<Wish = Rate, Note: NumberNote>> RateSource for OneSource<O> {
    fn on_start(&mut self, now_ns: Ns) {
        self.0.on_start(now_ns);
    }
    fn wish_bps(&self, k: SubflowId) -> f64 {
        self.0.wish(k).0
    }
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>) {
        self.0.on_weight(weight, utility);
    }
    fn on_wish(&mut self, k: SubflowId, wish: Rate) {
        self.0.on_wish(k, wish);
    }
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo) {
        self.0.tell(now_ns, flow);
    }
    fn note(&self, k: SubflowId) -> f64 {
        self.0.note(k).number()
    }
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        self.0.on_feedback(k, feedback);
    }
}

impl<O: Optimizer<Note: NumberNote>> NumberPrice for OnePrice<O> {
    fn first_update_ns(&self) -> Option<Ns> {
        self.0.first_update_ns()
    }
    fn now(&self) -> f64 {
        self.0.now()
    }
    fn on_enqueue(&mut self, now_ns: Ns, bytes: u32, note: Option<f64>) {
        self.0.on_enqueue(now_ns, bytes, note.map(O::Note::of).as_ref());
    }
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        self.0.update(now_ns, port)
    }
}

/// An optimizer of rates whose target rates are weights.
#[derive(Debug, Clone)]
pub struct AsWeights(Arc<dyn RateOptimizer>);

/// What a packet tells the links: the optimizer's note, and the target rate over the rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScaledNote {
    note: f64,
    scale: f32,
}

impl AsWeights {
    /// The weights of `optimizer`.
    pub fn of<O: Optimizer<Wish = Rate, Note: NumberNote> + Sync>(optimizer: O) -> Self {
        AsWeights(Arc::new(optimizer))
    }
}

impl Optimizer for AsWeights {
    // The registry has the part of the optimizer within.
    const PART: Part = Part { name: "", about: "", paper: "", params: &[], goal: Goal::Own, settles: Settles::AT_ONCE };
    type Wish = Weight;
    type Note = ScaledNote;
    type Source = AsWeightsSource;
    type Price = AsWeightsPrice;

    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        self.0.interval_ns(rtt_ns)
    }
    fn new(_params: &Params) -> Result<Self, InputError> {
        unreachable!("made of an optimizer, by the registry")
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        self.0.doubts(around)
    }
    fn is_central(&self) -> bool {
        self.0.is_central()
    }
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Weight>>> {
        Some(Box::new(AsWeightsCentre(self.0.centre(network)?)))
    }
    fn source(&self, flow: &FlowInfo) -> AsWeightsSource {
        AsWeightsSource {
            source: self.0.source(flow),
            demand_bps: flow.demand_bps,
            subflows: flow.paths.iter().map(|p| WeightedSubflow::new(LEAST_WEIGHT * p.line_rate_bps)).collect(),
        }
    }
    fn price(&self, port: &Port) -> AsWeightsPrice {
        AsWeightsPrice(self.0.price(port))
    }
}

/// The sender's side.
pub struct AsWeightsSource {
    source: Box<dyn RateSource>,
    /// The most that the flow can use: a target above it is no load.
    demand_bps: f64,
    subflows: IdVec<SubflowId, WeightedSubflow>,
}

/// A subflow's weight, as a rate.
#[derive(Debug, Clone, Copy)]
struct WeightedSubflow {
    least_bps: f64,
    weight_bps: f64,
    /// When its weight last fell.
    fell_ns: Ns,
    /// Target rate over rate.
    scale: f32,
}

impl WeightedSubflow {
    fn new(least_bps: f64) -> Self {
        WeightedSubflow { least_bps, weight_bps: 0.0, fell_ns: 0, scale: 1.0 }
    }

    /// Moves to `target_bps`: up at once, down by at most the factor `fall`.
    fn follow(&mut self, target_bps: f64, fall: f64) {
        self.weight_bps = target_bps.max(fall * self.weight_bps).max(self.least_bps);
    }
}

impl OptimizerSource<AsWeights> for AsWeightsSource {
    fn on_start(&mut self, now_ns: Ns) {
        self.source.on_start(now_ns);
        for (k, subflow) in self.subflows.iter_enumerated_mut() {
            subflow.follow(self.source.wish_bps(k), 0.0);
        }
    }
    fn wish(&self, k: SubflowId) -> Weight {
        Weight::of_rate(self.subflows[k].weight_bps)
    }
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>) {
        self.source.on_weight(weight, utility);
    }
    fn on_wish(&mut self, k: SubflowId, wish: Weight) {
        self.source.on_wish(k, Rate(wish.rate_bps()));
        if let Some(subflow) = self.subflows.get_mut(k) {
            subflow.follow(wish.rate_bps(), LARGEST_FALL);
        }
    }
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo) {
        self.source.tell(now_ns, flow);
    }
    fn note(&self, k: SubflowId) -> ScaledNote {
        ScaledNote { note: self.source.note(k), scale: self.subflows[k].scale }
    }
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        self.source.on_feedback(k, feedback);
        let rate_bps = feedback.rate_bps.filter(|bps| *bps > 0.0);
        let (subflow, target_bps) = (&mut self.subflows[k], self.source.wish_bps(k));
        let load_bps = target_bps.min(self.demand_bps);
        subflow.scale = rate_bps.map_or(1.0, |bps| (load_bps / bps).min(MOST_SCALE)) as f32;
        let rtts = (feedback.now_ns - subflow.fell_ns) as f64 / feedback.rtt_ns.max(1) as f64;
        subflow.follow(target_bps, 1.0 - (1.0 - LARGEST_FALL) * rtts.min(1.0));
        subflow.fell_ns = feedback.now_ns;
    }
}

/// A link's price.
pub struct AsWeightsPrice(Box<dyn NumberPrice>);

impl Price<ScaledNote> for AsWeightsPrice {
    fn first_update_ns(&self) -> Option<Ns> {
        self.0.first_update_ns()
    }
    fn now(&self) -> f64 {
        self.0.now()
    }
    fn on_enqueue(&mut self, now_ns: Ns, bytes: u32, note: Option<&ScaledNote>) {
        if let Some(&ScaledNote { note, scale }) = note {
            self.0.on_enqueue(now_ns, (bytes as f32 * scale).round() as u32, Some(note));
        }
    }
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        self.0.update(now_ns, &Port { queued_bytes: 0, queued_packets: 0, ..*port })
    }
}

/// The centre, whose target rates are weights.
struct AsWeightsCentre(Box<dyn Centre<Rate>>);

impl Centre<Weight> for AsWeightsCentre {
    fn interval_ns(&self) -> Ns {
        self.0.interval_ns()
    }
    fn on_flow(&mut self, flow: &FlowInfo) {
        self.0.on_flow(flow);
    }
    fn on_gone(&mut self, flow: FlowId) {
        self.0.on_gone(flow);
    }
    fn on_capacity(&mut self, link: LinkId, capacity_bps: f64) {
        self.0.on_capacity(link, capacity_bps);
    }
    fn step(&mut self, now_ns: Ns, tell: &mut dyn FnMut(FlowId, SubflowId, Weight)) {
        self.0.step(now_ns, &mut |flow, k, Rate(bps)| tell(flow, k, Weight::of_rate(bps)));
    }
    fn told(&self, flow: FlowId, k: SubflowId) -> Option<Weight> {
        self.0.told(flow, k).map(|Rate(bps)| Weight::of_rate(bps))
    }
}
