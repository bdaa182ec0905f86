//! Optimizers: target weights or rates at the source, a price at the link, and in some schemes a central controller.

use super::{Centre, Part, Wish};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{Around, Doubt, FlowInfo, Params, Port, Utilities};
use subak_core::{InputError, Network, Ns, SubflowId, Utility};

/// An optimizer: targets at the source, a price at the link.
pub trait Optimizer: Clone + Debug + Send + 'static {
    /// Name, parameters, source.
    const PART: Part;
    /// Its output: target weights or target rates.
    type Wish: Wish;
    /// Data from a source for the links of the path, in each data packet.
    type Note: Copy + Default + Debug + Send;
    /// Its sender's side.
    type Source: OptimizerSource<Self>;
    /// A link's price.
    type Price: Price<Self::Note>;
    /// Processor time of its prices at a packet-hop, in DCTCP's packet-hops, for an estimate before a run.
    const PER_HOP: f64 = 0.1;

    /// The utilities of `all` under which rates come near the optimum over `transport`; [`Utilities::NONE`] where they never
    /// converge. Measured in crates/packet/tests/it/table.rs.
    fn serves_over(transport: &str, all: Utilities) -> Utilities {
        let _ = transport;
        all
    }
    /// Time between two updates of a link's price, ns, where links have prices, in a network whose longest base RTT is `rtt_ns`.
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        let _ = rtt_ns;
        None
    }
    /// Warnings of a network for which its parameters are unsuitable.
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let rtt_ns = around.ports.first().map_or(0, |port| port.rtt_ns);
        let interval_ns = self.interval_ns(rtt_ns);
        interval_ns.and_then(|ns| Doubt::of_price_interval(around, ns)).into_iter().collect()
    }
    /// The optimizer with `params`.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// The same over a transport that is `by` times slower: see [`super::Transport::SLOWDOWN`].
    #[must_use]
    fn slowed(self, by: f64) -> Self {
        let _ = by;
        self
    }
    /// Share of the transport's capacity for data that it allocates.
    fn share(&self) -> f64 {
        1.0
    }
    /// Whether it is centralized, with a controller to which sources announce their flows.
    fn is_central(&self) -> bool {
        false
    }
    /// Its central machine, for a network with these links; called if [`Optimizer::is_central`].
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Self::Wish>>> {
        let _ = network;
        None
    }
    /// The sender's side of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The price of a link.
    fn price(&self, port: &Port) -> Self::Price;
}

/// Content of an ACK for an optimizer.
#[derive(Debug, Clone, Copy)]
pub struct Feedback {
    /// Now, ns.
    pub now_ns: Ns,
    /// Sum of the prices of the path's links.
    pub path_price: f64,
    /// Number of the path's links.
    pub path_len: u8,
    /// The subflow's rate, bit/s, where the transport knows it.
    pub rate_bps: Option<f64>,
    /// RTT of the packet, ns.
    pub rtt_ns: Ns,
    /// Unacknowledged bytes of the flow; `u64::MAX` for an unlimited flow.
    pub remaining_bytes: u64,
}

/// The sender's side of an optimizer.
pub trait OptimizerSource<O: Optimizer>: Send {
    /// The flow starts.
    fn on_start(&mut self, now_ns: Ns) {
        let _ = now_ns;
    }
    /// Target weight or rate of subflow `k` now.
    fn wish(&self, k: SubflowId) -> O::Wish;
    /// Sets the flow's weight, and with it the utility.
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>);
    /// Sets the controller's target for subflow `k`.
    fn on_wish(&mut self, k: SubflowId, wish: O::Wish) {
        let _ = (k, wish);
    }
    /// Updates `flow`, the state at the start or the latest new weight or path, before the source sends it to the controller.
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo) {
        let _ = (now_ns, flow);
    }
    /// Data for the links in the packets of subflow `k`.
    fn note(&self, k: SubflowId) -> O::Note {
        let _ = k;
        O::Note::default()
    }
    /// Feedback for subflow `k`.
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        let _ = (k, feedback);
    }
}

/// A link's price.
pub trait Price<N>: Send {
    /// Time of the first price update, ns; `None`: never.
    fn first_update_ns(&self) -> Option<Ns> {
        None
    }
    /// The price now.
    fn now(&self) -> f64;
    /// A packet arrives at the queue, a data packet with its note.
    fn on_enqueue(&mut self, now_ns: Ns, bytes: u32, note: Option<&N>) {
        let _ = (now_ns, bytes, note);
    }
    /// A packet leaves onto the link, of those that share the capacity for data.
    fn on_dequeue(&mut self, now_ns: Ns, bytes: u32) {
        let _ = (now_ns, bytes);
    }
    /// Updates the price; returns the time of the next update, ns. The port's capacity is that for data.
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let _ = port;
        now_ns + 1
    }
}
