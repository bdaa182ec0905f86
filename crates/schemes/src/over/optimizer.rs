//! Optimizers: target weights or rates at the source, a price at the link, and in some schemes a central controller.

use super::{Centre, Part, Wish};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{Around, Doubt, FlowInfo, Params, Port, Utilities};
use subak_core::{InputError, Network, Ns, SubflowId, Utility};

/// An optimizer: targets at the source, a price at the link.
pub trait Optimizer: Clone + Debug + Send + 'static {
    /// Name, parameters, paper and goal.
    const PART: Part;
    /// Kind of the targets: weights or rates.
    type Wish: Wish;
    /// Data from a source for the links of the path, in each data packet.
    type Note: Copy + Default + Debug + Send;
    /// State machine at the sender of a flow.
    type Source: OptimizerSource<Self>;
    /// A link's price.
    type Price: Price<Self::Note>;
    /// Whether the targets are weights that stand for rates: see [`super::Weight::of_rate`].
    const WEIGHTS_OF_RATES: bool = false;
    /// Processor time of the prices per packet and hop, as a multiple of DCTCP's, to estimate a run's duration before
    /// it starts.
    const PER_HOP: f64 = 0.1;

    /// The utilities of `all` for which rates converge to the optimum over `transport`; [`Utilities::NONE`] if there
    /// are none. Measured in crates/packet/tests/it/table.rs.
    fn serves_over(transport: &str, all: Utilities) -> Utilities {
        let _ = transport;
        all
    }
    /// Time between two updates of a link's price, ns, in a network whose longest base RTT is `rtt_ns`. `None`: there
    /// are no prices.
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        let _ = rtt_ns;
        None
    }
    /// Warnings if the parameters do not suit the network.
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let rtt_ns = around.ports.first().map_or(0, |port| port.rtt_ns);
        let interval_ns = self.interval_ns(rtt_ns);
        interval_ns.and_then(|ns| Doubt::of_price_interval(around, ns)).into_iter().collect()
    }
    /// Creates the optimizer with `params`.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// The optimizer for a transport that converges `by` times slower: see [`super::Transport::SLOWDOWN`].
    #[must_use]
    fn slowed(self, by: f64) -> Self {
        let _ = by;
        self
    }
    /// The optimizer of rates for a transport of weights: rates follow its targets only after the transport's own
    /// measurement.
    #[must_use]
    fn behind_weights(self) -> Self {
        self
    }
    /// Fraction of the transport's capacity for data that the optimizer allocates.
    fn share(&self) -> f64 {
        1.0
    }
    /// Whether the optimizer is centralized: sources announce their flows to a controller.
    fn is_central(&self) -> bool {
        false
    }
    /// Whether a flow's data follow a handshake, whose answer brings the price of its path.
    fn has_handshake(&self) -> bool {
        false
    }
    /// State machine of the controller for `network`; called only if [`Optimizer::is_central`].
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Self::Wish>>> {
        let _ = network;
        None
    }
    /// The sender of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The price of a link.
    fn price(&self, port: &Port) -> Self::Price;
}

/// Content of an ACK for an optimizer.
#[derive(Debug, Clone, Copy)]
pub struct Feedback {
    /// Present time, ns.
    pub now_ns: Ns,
    /// Sum of the prices of the path's links.
    pub path_price: f64,
    /// Number of the path's links.
    pub path_len: u8,
    /// The subflow's rate, bit/s; `None` if the transport does not know it.
    pub rate_bps: Option<f64>,
    /// RTT of the ACKed packet, ns.
    pub rtt_ns: Ns,
    /// Bytes of the flow without an ACK; `u64::MAX` for an unlimited flow.
    pub remaining_bytes: u64,
}

/// The optimizer's state machine at the sender of a flow.
pub trait OptimizerSource<O: Optimizer>: Send {
    /// Handles the start of the flow.
    fn on_start(&mut self, now_ns: Ns) {
        let _ = now_ns;
    }
    /// Target weight or rate of subflow `k` now.
    fn wish(&self, k: SubflowId) -> O::Wish;
    /// Sets the flow's weight and utility.
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>);
    /// Sets the controller's target for subflow `k`.
    fn on_wish(&mut self, k: SubflowId, wish: O::Wish) {
        let _ = (k, wish);
    }
    /// Updates `flow` before the source sends it to the controller. `flow` has its state at the start, with the latest
    /// weight, utility and paths.
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo) {
        let _ = (now_ns, flow);
    }
    /// Data for the links in the packets of subflow `k`.
    fn note(&self, k: SubflowId) -> O::Note {
        let _ = k;
        O::Note::default()
    }
    /// Handles feedback for subflow `k`.
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        let _ = (k, feedback);
    }
}

/// State machine of a link's price. `N`: data that packets carry from sources.
pub trait Price<N>: Send {
    /// Time of the first price update, ns; `None`: never.
    fn first_update_ns(&self) -> Option<Ns> {
        None
    }
    /// The present price.
    fn now(&self) -> f64;
    /// Handles the arrival of a packet at the queue. `note` is the data from its source; `None` if it is no data
    /// packet.
    fn on_enqueue(&mut self, now_ns: Ns, bytes: u32, note: Option<&N>) {
        let _ = (now_ns, bytes, note);
    }
    /// Handles the departure of a packet onto the link. If the transport reserves capacity for control packets and
    /// ACKs, it is called for data packets only.
    fn on_dequeue(&mut self, now_ns: Ns, bytes: u32) {
        let _ = (now_ns, bytes);
    }
    /// Updates the price; returns the time of the next update, ns. `port` has the capacity for data.
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let _ = port;
        now_ns + 1
    }
}
