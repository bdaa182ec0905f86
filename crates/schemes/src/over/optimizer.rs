//! What an optimizer is: wishes at the source, a price at the link, and sometimes a centre.

use super::{Centre, Part, Wish};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{FlowInfo, Params, Port, Utilities};
use subak_core::{InputError, Network, Ns, SubflowId, Utility};

/// An optimizer: wishes at the source, a price at the link.
pub trait Optimizer: Clone + Debug + Send + 'static {
    /// Name, parameters, source.
    const PART: Part;
    /// What it says.
    type Wish: Wish;
    /// What a source tells the links of the path in each data packet.
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
    /// Time between two updates of a link's price, ns, where links have prices.
    fn interval_ns(&self) -> Option<Ns> {
        None
    }
    /// The optimizer with `params`.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// The same over a transport that is `by` times slower: see [`super::Transport::SLOWDOWN`].
    #[must_use]
    fn slowed(self, by: f64) -> Self {
        let _ = by;
        self
    }
    /// The share of what the transport gives to data that it hands out.
    fn share(&self) -> f64 {
        1.0
    }
    /// Whether it has a centre, to which its sources announce their flows.
    fn is_central(&self) -> bool {
        false
    }
    /// Its centre, for a network with these links; asked for if [`Optimizer::is_central`].
    fn centre(&self, network: &Network) -> Option<Box<dyn Centre<Self::Wish>>> {
        let _ = network;
        None
    }
    /// The sender's side of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The price of a link.
    fn price(&self, port: &Port) -> Self::Price;
}

/// What an acknowledgement tells an optimizer.
#[derive(Debug, Clone, Copy)]
pub struct Feedback {
    /// Now, ns.
    pub now_ns: Ns,
    /// Sum of the prices of the path's links.
    pub path_price: f64,
    /// How many they are.
    pub path_len: u8,
    /// The subflow's rate, bit/s, where the transport knows it.
    pub rate_bps: Option<f64>,
    /// The packet's round trip, ns.
    pub rtt_ns: Ns,
    /// Bytes of the flow not acknowledged; `u64::MAX` for a flow without end.
    pub remaining_bytes: u64,
}

/// The sender's side of an optimizer.
pub trait OptimizerSource<O: Optimizer>: Send {
    /// The flow starts.
    fn on_start(&mut self, now_ns: Ns) {
        let _ = now_ns;
    }
    /// What subflow `k` wishes now.
    fn wish(&self, k: SubflowId) -> O::Wish;
    /// The flow has another weight from now on, and with it this utility.
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>);
    /// The centre wishes this for subflow `k` from now on.
    fn on_wish(&mut self, k: SubflowId, wish: O::Wish) {
        let _ = (k, wish);
    }
    /// What the centre is told of the flow: `flow` as it was when it started, or got another weight or path.
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo) {
        let _ = (now_ns, flow);
    }
    /// What its packets tell the links.
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
    /// When the price is updated first, ns; `None`: never.
    fn first_update_ns(&self) -> Option<Ns> {
        None
    }
    /// The price now.
    fn now(&self) -> f64;
    /// A packet comes to the queue, a data packet with its note.
    fn on_enqueue(&mut self, now_ns: Ns, bytes: u32, note: Option<&N>) {
        let _ = (now_ns, bytes, note);
    }
    /// A packet leaves onto the link, one of those that share what the transport fills.
    fn on_dequeue(&mut self, now_ns: Ns, bytes: u32) {
        let _ = (now_ns, bytes);
    }
    /// The time of an update has come; when is the next, ns? The port's capacity is what the transport fills of it.
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let _ = port;
        now_ns + 1
    }
}
