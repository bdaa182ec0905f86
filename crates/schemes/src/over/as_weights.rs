//! An optimizer of rates over a transport of weights: the target rate is the weight. At the optimum, the weighted
//! max-min allocation with the optimal rates as weights is the optimum itself.
//!
//! Such a transport keeps links full, so that the arriving load is always the capacity. A packet therefore carries the
//! ratio of its subflow's target rate to its rate. A price multiplies the packet's bytes by this ratio, which sums up
//! the target rates. Prices ignore the queue, since the transport controls it.
//!
//! One type, [`AsWeights`], wraps all optimizers of rates, so that each transport of weights is compiled with it only
//! once.

use super::{Centre, Feedback, Optimizer, OptimizerSource, Part, Price, Rate, Weight};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{Around, Doubt, FlowInfo, Goal, Params, Port, Settles};
use subak_core::{FlowId, IdVec, InputError, LinkId, Network, Ns, SubflowId, Utility};

/// Upper bound of the ratio of target rate to rate: a flow that has just started has a rate near zero.
const MOST_SCALE: f64 = 16.0;
/// Minimum weight of a subflow, as a fraction of the line rate.
const LEAST_WEIGHT: f64 = 1e-3;
/// Fraction of its value to which a weight may fall in an RTT, and at a message from the controller. In a fair queue
/// the packets of a window sent at almost no weight delay the flow long after its weight has risen again.
const LARGEST_FALL: f64 = 0.25;

/// Data from an optimizer's source for the links (a note), as one number: one packet header then serves all optimizers.
pub trait NumberNote: Copy + Default {
    /// Converts a number to the note.
    fn of(number: f64) -> Self;
    /// Converts the note to a number.
    fn number(self) -> f64;
}

impl NumberNote for () {
    fn of(_: f64) -> Self {}
    fn number(self) -> f64 {
        0.0
    }
}

/// [`Optimizer`] as a trait object, for optimizers of rates whose notes are numbers.
pub trait RateOptimizer: Debug + Send + Sync {
    /// Time between two updates of a link's price: see [`Optimizer::interval_ns`].
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns>;
    /// Warnings if the parameters do not suit the network: see [`Optimizer::doubts`].
    fn doubts(&self, around: &Around) -> Vec<Doubt>;
    /// Whether a controller computes the rates: see [`Optimizer::is_central`].
    fn is_central(&self) -> bool;
    /// Whether flows begin with a handshake: see [`Optimizer::has_handshake`].
    fn has_handshake(&self) -> bool;
    /// State machine of the controller: see [`Optimizer::centre`].
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Rate>>>;
    /// The sender of `flow`: see [`Optimizer::source`].
    fn source(&self, flow: &FlowInfo) -> Box<dyn RateSource>;
    /// The price of a link: see [`Optimizer::price`].
    fn price(&self, port: &Port) -> Box<dyn NumberPrice>;
}

/// [`OptimizerSource`] as a trait object, for optimizers of rates.
pub trait RateSource: Send {
    /// Handles the start of the flow.
    fn on_start(&mut self, now_ns: Ns);
    /// Target rate of subflow `k`, bit/s.
    fn wish_bps(&self, k: SubflowId) -> f64;
    /// Sets the flow's weight and utility.
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>);
    /// Sets the controller's target rate for subflow `k`.
    fn on_wish(&mut self, k: SubflowId, wish: Rate);
    /// Updates `flow` before the source sends it to the controller.
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo);
    /// Data for the links in the packets of subflow `k`, as a number.
    fn note(&self, k: SubflowId) -> f64;
    /// Handles feedback for subflow `k`.
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback);
}

/// [`Price`] as a trait object, for notes that are numbers.
pub trait NumberPrice: Send {
    /// Time of the first price update, ns; `None`: never.
    fn first_update_ns(&self) -> Option<Ns>;
    /// The present price.
    fn now(&self) -> f64;
    /// Counts an arriving packet as a load of `bytes`.
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
    fn has_handshake(&self) -> bool {
        Optimizer::has_handshake(self)
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

/// An optimizer of rates whose target rates serve as weights.
#[derive(Debug, Clone)]
pub struct AsWeights(Arc<dyn RateOptimizer>);

/// Data of a packet for the links: the optimizer's note, and the ratio of target rate to rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScaledNote {
    note: f64,
    scale: f32,
}

impl AsWeights {
    /// Wraps `optimizer`.
    pub fn of<O: Optimizer<Wish = Rate, Note: NumberNote> + Sync>(optimizer: O) -> Self {
        AsWeights(Arc::new(optimizer.behind_weights()))
    }
}

impl Optimizer for AsWeights {
    // Not used: the registry describes the pair by the wrapped optimizer.
    const PART: Part = Part { name: "", about: "", paper: "", params: &[], goal: Goal::Own, settles: Settles::AT_ONCE };
    const WEIGHTS_OF_RATES: bool = true;
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
    fn has_handshake(&self) -> bool {
        self.0.has_handshake()
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

/// Sender: each subflow's weight follows its target rate.
pub struct AsWeightsSource {
    source: Box<dyn RateSource>,
    /// Demand of the flow, bit/s: a target rate counts as load only up to it.
    demand_bps: f64,
    subflows: IdVec<SubflowId, WeightedSubflow>,
}

/// Weight of a subflow, as a rate in bit/s.
#[derive(Debug, Clone, Copy)]
struct WeightedSubflow {
    least_bps: f64,
    weight_bps: f64,
    /// Time of the latest feedback, ns; the weight may fall further the longer ago it is.
    fell_ns: Ns,
    /// Ratio of target rate to rate.
    scale: f32,
}

impl WeightedSubflow {
    fn new(least_bps: f64) -> Self {
        WeightedSubflow { least_bps, weight_bps: 0.0, fell_ns: 0, scale: 1.0 }
    }

    /// Sets the weight to `target_bps`, but at least to `fall` times the present weight, and to the minimum.
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

/// Price of a link, computed from target rates.
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

/// State machine of the controller; its target rates serve as weights.
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
