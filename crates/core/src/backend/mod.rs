//! The interface of every simulation backend: flows in, time advances, counters out.

mod watch;

pub use watch::{PaceView, PacketEvent, TraceRecord, Watcher};

use crate::utility::Urgency;
use crate::{FlowId, IdVec, LinkId, Network, NodeId, Ns, Utility};
use std::sync::Arc;

/// One subflow's way through the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Links of the data, source to destination.
    pub forward: Vec<LinkId>,
    /// Links of acknowledgements, destination to source.
    pub back: Vec<LinkId>,
}

/// The start of a flow that waits until it is told to start: see [`Backend::start_flow`].
pub const NOT_YET: Ns = Ns::MAX;

/// Per-packet load balancing of a flow over its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Each takes one at random (random packet spraying: Dixit et al., INFOCOM 2013).
    Packets,
    /// One is kept until nothing was sent for this time, ns, and then the next one is drawn (flowlets: Kandula et al., CCR
    /// 2007; Vanini et al., NSDI 2017).
    Flowlets(Ns),
}

/// A flow to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowPlan {
    /// One for each subflow; of a flow that is spread, the ways of its only one.
    pub routes: Vec<Route>,
    /// Whether its packets are spread over `routes`. What is sent back, and messages, take the first.
    pub spread: Option<Spread>,
    /// When it starts.
    pub start_ns: Ns,
    /// When it is told to stop, though it may have more to send.
    pub stop_ns: Option<Ns>,
    /// Payload bytes to send; `None` for a flow without end.
    pub size_bytes: Option<u64>,
    /// Weight.
    pub weight: f64,
    /// Upper bound on the rate on the wire, bit/s; infinite for none.
    pub demand_bps: f64,
    /// The utility that optimizers maximize for the flow. `None` is max-min; optimizers then take w log x.
    pub utility: Option<Arc<Utility>>,
    /// Growth of its utility over time.
    pub urgency: Urgency,
}

impl FlowPlan {
    /// A flow over `routes` from the start of the run, without end, bound or utility, of weight 1.
    pub fn new(routes: Vec<Route>) -> Self {
        FlowPlan {
            routes,
            spread: None,
            start_ns: 0,
            stop_ns: None,
            size_bytes: None,
            weight: 1.0,
            demand_bps: f64::INFINITY,
            utility: None,
            urgency: Urgency::Constant,
        }
    }
}

/// A flow as it stands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FlowView {
    /// When its last byte arrived at the destination, or its last acknowledgement at the sender
    /// ([`Backend::complete_at_sender`]).
    pub finished_ns: Option<Ns>,
    /// Distinct payload bytes that were sent at least once.
    pub sent_bytes: u64,
    /// Distinct payload bytes that arrived.
    pub received_bytes: u64,
    /// Bytes on the wire of the data packets that arrived for the first time, headers included.
    pub received_wire_bytes: u64,
    /// Payload bytes that arrived more than once.
    pub duplicate_bytes: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Data packets of it that were dropped or lost.
    pub drops: u64,
    /// Control messages of it that were dropped or lost.
    pub ctl_drops: u64,
    /// Rate on the wire assigned to the source now, bit/s, over all subflows: its pace, or its window over the base
    /// round trip where nothing paces it.
    pub assigned_bps: f64,
}

/// A link as it stands; counters run from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkView {
    /// Bytes waiting now.
    pub queued_bytes: u64,
    /// Packets waiting now.
    pub queued_packets: u64,
    /// Most bytes that waited since the start, or since [`Backend::restart_peaks`].
    pub peak_queued_bytes: u64,
    /// Bytes of data packets that have left. A packet on its way out counts as far as it is out.
    pub data_bytes: u64,
    /// Bytes of acknowledgements sent.
    pub ack_bytes: u64,
    /// Bytes of control packets sent.
    pub ctl_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_packets: u64,
    /// Bytes dropped because the queue was full.
    pub dropped_bytes: u64,
    /// Packets lost to injected faults.
    pub lost_packets: u64,
    /// Pauses of the link, summed over classes.
    pub pauses: u64,
    /// Paused time, ns, summed over classes.
    pub paused_ns: u64,
}

/// Which packets a loss takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds {
    /// Data packets.
    pub data: bool,
    /// Acknowledgements.
    pub ack: bool,
    /// Control packets.
    pub ctl: bool,
}

/// An impairment of a packet: loss, duplication or delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impairment {
    /// It is lost.
    Lost,
    /// It arrives twice.
    Doubled,
    /// It arrives later by this time, ns; others overtake it.
    Late(Ns),
}

/// A machine that may be restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// The central one.
    Controller,
    /// The machine of a node.
    Node(NodeId),
    /// The state at a link.
    Hop(LinkId),
}

/// A fault to be injected.
#[derive(Debug, Clone, PartialEq)]
pub enum Injected {
    /// Each packet of `kinds` that leaves a link of `links` (`None`: every link) between `from_ns` and `until_ns` meets
    /// the impairment with `probability`.
    Packets {
        /// The impairment.
        impairment: Impairment,
        /// Which packets.
        kinds: Kinds,
        /// At which links.
        links: Option<Vec<LinkId>>,
        /// Probability per packet, 0 to 1.
        probability: f64,
        /// From when.
        from_ns: Ns,
        /// Until when.
        until_ns: Ns,
    },
    /// The link has another capacity from a time on; a packet that is on its way out leaves at the old one.
    Capacity {
        /// The directed link.
        link: LinkId,
        /// Its capacity while the fault lasts, bit/s.
        capacity_bps: f64,
        /// From when.
        at_ns: Ns,
    },
    /// The machine forgets everything and starts again.
    Restart {
        /// Which.
        machine: Machine,
        /// When.
        at_ns: Ns,
    },
    /// The link carries nothing from `down_ns` to `up_ns`; what is on it at that moment is lost.
    Down {
        /// The directed link.
        link: LinkId,
        /// From when.
        down_ns: Ns,
        /// Until when.
        up_ns: Ns,
        /// Whether what waits before it, and what comes meanwhile, is kept until it is up again, and not dropped.
        keeps: bool,
    },
}

/// A change of a link's state or capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkChange {
    /// A fault that held it down is over.
    Up,
    /// It is held down by one more fault.
    Down,
    /// It has this capacity from now on, bit/s.
    Capacity(f64),
}

/// The current capacity of each link, updated by link changes.
#[derive(Debug, Clone)]
pub struct Capacities {
    bps: IdVec<LinkId, f64>,
    /// Number of active faults that hold each link down.
    down: IdVec<LinkId, u32>,
}

impl Capacities {
    /// Those of a network with all links up.
    pub fn of(network: &Network) -> Self {
        let bps: IdVec<_, _> = network.links().iter().map(|l| l.capacity_bps).collect();
        Capacities { down: IdVec::filled(0, bps.len()), bps }
    }

    /// By link, bit/s, whether it is up or not.
    pub fn bps(&self) -> &IdVec<LinkId, f64> {
        &self.bps
    }

    /// Applies `change` and returns the capacity of `link`, bit/s: 0 while it is down.
    pub fn change(&mut self, link: LinkId, change: LinkChange) -> f64 {
        match change {
            LinkChange::Up => self.down[link] = self.down[link].saturating_sub(1),
            LinkChange::Down => self.down[link] += 1,
            LinkChange::Capacity(bps) => self.bps[link] = bps,
        }
        if self.down[link] > 0 { 0.0 } else { self.bps[link] }
    }
}

impl Injected {
    /// Link changes in time order. A link that goes up and down at the same time is up in between.
    pub fn link_changes(faults: &[Injected]) -> Vec<(Ns, LinkId, LinkChange)> {
        let mut changes: Vec<_> = faults.iter().flat_map(Injected::changes).collect();
        changes.sort_by_key(|&(at_ns, link, change)| (at_ns, change == LinkChange::Down, link));
        changes
    }

    fn changes(&self) -> Vec<(Ns, LinkId, LinkChange)> {
        match *self {
            Injected::Packets { .. } | Injected::Restart { .. } => Vec::new(),
            Injected::Capacity { link, capacity_bps, at_ns } => vec![(at_ns, link, LinkChange::Capacity(capacity_bps))],
            Injected::Down { link, down_ns, up_ns, .. } => {
                vec![(down_ns, link, LinkChange::Down), (up_ns, link, LinkChange::Up)]
            }
        }
    }
}

/// Sizes of packets on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSizes {
    /// A full data packet.
    pub mtu_bytes: u32,
    /// The part of it that is headers.
    pub header_bytes: u32,
    /// An acknowledgement.
    pub ack_bytes: u32,
}

impl Default for PacketSizes {
    /// Ethernet, IPv4 and TCP headers without options on 1500 bytes; acknowledgements of the minimum frame.
    fn default() -> Self {
        PacketSizes { mtu_bytes: 1500, header_bytes: 54, ack_bytes: 64 }
    }
}

impl PacketSizes {
    /// Bytes of acknowledgements for each byte of full data packets.
    pub fn ack_share(&self) -> f64 {
        f64::from(self.ack_bytes) / f64::from(self.mtu_bytes)
    }
    /// With a scheme's own header in each: the payload of a full packet stays.
    #[must_use]
    pub fn with(self, headers: crate::scheme::Headers) -> Self {
        PacketSizes {
            mtu_bytes: self.mtu_bytes + headers.data_bytes,
            header_bytes: self.header_bytes + headers.data_bytes,
            ack_bytes: self.ack_bytes + headers.ack_bytes,
        }
    }
    /// Payload of a full packet.
    pub fn mss_bytes(&self) -> u32 {
        self.mtu_bytes - self.header_bytes
    }

    /// Bytes on the wire for `payload` bytes in full packets and one shorter one.
    pub fn wire_bytes(&self, payload: u64) -> u64 {
        payload + payload.div_ceil(u64::from(self.mss_bytes())) * u64::from(self.header_bytes)
    }
}

/// Statistics of a parallel run. For a run until a fixed time they are deterministic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Parts of the network.
    pub parts: usize,
    /// Windows, each ended by a barrier.
    pub windows: u64,
    /// Events of the part that had most of them, window by window: with a core for each part, all the others wait for these.
    pub longest_events: u64,
    /// Packets and control frames sent from one LP to another.
    pub crossed: u64,
}

/// A running simulation. Same inputs, same answers, bit for bit.
pub trait Backend: Send {
    /// Adds a flow that starts now or later. Flows are numbered in the order they are added.
    fn add(&mut self, plan: FlowPlan) -> FlowId;
    /// From now on a flow is complete when its last acknowledgement is back, not when its last byte has arrived. Told before
    /// flows are added.
    fn complete_at_sender(&mut self);
    /// Places the scheme's controller: the paths from each node to it and back. To be called before time goes on.
    fn place_controller(&mut self, ways: &[(NodeId, Route)]) {
        let _ = ways;
    }
    /// Routing has noticed that a link failed or came back. These nodes and the controller reach each other by other paths from
    /// now on; flows take theirs by [`Backend::reroute`] after this.
    fn on_routes(&mut self, ways: &[(NodeId, Route)]) {
        let _ = ways;
    }
    /// `watcher` hears of packets. Told before time goes on. Backends without packets have nothing to say.
    fn watch(&mut self, watcher: Box<dyn Watcher>) {
        drop(watcher);
    }
    /// Congestion windows and pacing rates of an open flow's subflows; empty for backends without them.
    fn paces(&self, flow: FlowId) -> Vec<PaceView> {
        let _ = flow;
        Vec::new()
    }
    /// The flow has another weight from now on, and with it another utility.
    fn set_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>);
    /// A flow whose plan does not say when it starts ([`NOT_YET`]) starts at `at_ns`.
    fn start_flow(&mut self, flow: FlowId, at_ns: Ns);
    /// The flow sends nothing new from now on.
    fn stop_flow(&mut self, flow: FlowId);
    /// The flow's subflows take these paths from now on, one each. What is under way goes on where it is.
    fn reroute(&mut self, flow: FlowId, routes: &[Route]);
    /// As [`Backend::run_until`], but stops as soon as a flow has finished.
    fn run_until_finish(&mut self, until_ns: Ns);
    /// The flows that finished since the last call, in the order in which they did; those of one time by their numbers.
    fn take_finished(&mut self) -> Vec<FlowId>;
    /// Lets time go on to `until_ns`: everything up to and including it has happened.
    fn run_until(&mut self, until_ns: Ns);
    /// As [`Backend::run_until`], but stops early once every flow with a size has finished.
    fn run_until_done(&mut self, until_ns: Ns);
    /// The time reached.
    fn now_ns(&self) -> Ns;
    /// Flows that were added and have neither finished nor been stopped.
    fn open_flows(&self) -> usize;
    /// Forgets the flows that have ended and of which nothing is on its way any more: their last views, in the order in
    /// which they ended. Who never asks can look at every flow until the end; who does keeps memory flat.
    fn forget(&mut self) -> Vec<(FlowId, FlowView)> {
        Vec::new()
    }
    /// A flow as it stands; an empty view once it is forgotten.
    fn flow(&self, flow: FlowId) -> FlowView;
    /// A link as it stands.
    fn link(&self, link: LinkId) -> LinkView;
    /// Links that are paused and wait for each other in a circle, each for the next and the last for the first, and since when:
    /// a deadlock. Empty if there is none.
    fn deadlock(&self) -> Vec<(LinkId, Ns)> {
        Vec::new()
    }
    /// Peaks of queues start again from what waits now.
    fn restart_peaks(&mut self);
    /// Time that data packets waited in queues over their whole path, ns, as `(upper edge of the bin, packets)`.
    fn waits_ns(&self) -> Vec<(Ns, u64)>;
    /// Packets that left one queue onto one link, so far.
    fn packet_hops(&self) -> u64;
    /// Events handled so far.
    fn events(&self) -> u64;
    /// Statistics of the parallel run so far.
    fn sharing(&self) -> Sharing {
        Sharing { parts: 1, longest_events: self.events(), ..Sharing::default() }
    }
    /// Failed computations of the backend. The results are invalid unless this is 0.
    fn failures(&self) -> u64 {
        0
    }
}
