//! The interface of every simulation backend: adds flows, advances time, reports counters.

mod watch;

pub use watch::{PaceView, PacketEvent, TraceRecord, Watcher};

pub use crate::capacities::{Capacities, LinkChange};
pub use crate::route::Route;

use crate::scheme::{Headers, Note};
use crate::utility::Urgency;
use crate::{FlowId, InputError, LinkId, NodeId, Ns, Utility};
use std::sync::Arc;

/// Start time of a flow that starts only when [`Backend::start_flow`] is called.
pub const NOT_YET: Ns = Ns::MAX;

/// Per-packet load balancing of a flow over its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Each packet takes a random path (random packet spraying: Dixit et al., INFOCOM 2013).
    Packets,
    /// Packets keep one path until the flow pauses for this time, ns; the next flowlet takes a random path (Kandula
    /// et al., CCR 2007; Vanini et al., NSDI 2017).
    Flowlets(Ns),
}

/// Description of a flow that a backend simulates.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowPlan {
    /// One route for each subflow. If `spread` is set, the flow has one subflow, and `routes` are its paths.
    pub routes: Vec<Route>,
    /// Per-packet load balancing over `routes`; `None` for a fixed path. ACKs and control messages take the first
    /// route.
    pub spread: Option<Spread>,
    /// Start time, ns.
    pub start_ns: Ns,
    /// Time at which the flow stops sending, ns, even if data remain; `None` for no such time.
    pub stop_ns: Option<Ns>,
    /// Payload bytes to send; `None` for unlimited data.
    pub size_bytes: Option<u64>,
    /// Weight, positive.
    pub weight: f64,
    /// Upper bound on the rate on the wire, bit/s; infinite for no bound.
    pub demand_bps: f64,
    /// Utility function of the flow. `None` means max-min; optimizers that maximize utilities then use w log x.
    pub utility: Option<Arc<Utility>>,
    /// Factor on the flow's utility that may grow over time.
    pub urgency: Urgency,
    /// Index of the flow's scheme among those of the run; 0 if the run has one.
    pub scheme: u8,
}

impl FlowPlan {
    /// A flow over `routes` that starts at time 0, with weight 1, and without size, stop time, demand or utility
    /// function.
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
            scheme: 0,
        }
    }
}

/// State and counters of a flow at the current time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FlowView {
    /// Time when the last byte arrived at the destination, ns; with [`Backend::complete_at_sender`] when the last ACK
    /// arrived at the sender.
    pub finished_ns: Option<Ns>,
    /// Distinct payload bytes that were sent at least once.
    pub sent_bytes: u64,
    /// Distinct payload bytes that arrived.
    pub received_bytes: u64,
    /// Bytes on the wire of data packets that arrived for the first time, headers included.
    pub received_wire_bytes: u64,
    /// Payload bytes that arrived more than once.
    pub duplicate_bytes: u64,
    /// Retransmitted data packets.
    pub retransmissions: u64,
    /// Data packets of the flow that were dropped or lost.
    pub drops: u64,
    /// Control messages of the flow that were dropped or lost.
    pub ctl_drops: u64,
    /// Current rate of the source on the wire, bit/s, over all subflows: the pacing rate, or without pacing the
    /// congestion window over the smoothed RTT, which is at least the base RTT.
    pub assigned_bps: f64,
}

/// State of a link at the current time. Counters count from the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkView {
    /// Queue length, bytes.
    pub queued_bytes: u64,
    /// Queue length, packets.
    pub queued_packets: u64,
    /// Peak queue length, bytes, since the start or the last [`Backend::restart_peaks`].
    pub peak_queued_bytes: u64,
    /// Bytes of data packets sent. A packet in transmission counts in proportion to its bytes sent so far.
    pub data_bytes: u64,
    /// Bytes of ACKs sent.
    pub ack_bytes: u64,
    /// Bytes of control packets sent.
    pub ctl_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_packets: u64,
    /// Bytes dropped because the queue was full.
    pub dropped_bytes: u64,
    /// Packets lost to injected faults.
    pub lost_packets: u64,
    /// Number of times that pause frames (PFC) stopped the link, summed over priority classes.
    pub pauses: u64,
    /// Time for which the link was paused, ns, summed over priority classes.
    pub paused_ns: u64,
}

/// Kinds of packets that a fault applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds {
    /// Data packets.
    pub data: bool,
    /// ACKs.
    pub ack: bool,
    /// Control packets.
    pub ctl: bool,
}

/// An impairment of a packet: loss, duplication or delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impairment {
    /// The packet is lost.
    Lost,
    /// The packet arrives twice.
    Doubled,
    /// The packet arrives later by this time, ns; other packets overtake it.
    Late(Ns),
}

/// A state machine that a fault may restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// The central controller.
    Controller,
    /// The state machine of a node.
    Node(NodeId),
    /// The state machine of a link.
    Hop(LinkId),
}

/// A fault that is injected into a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Injected {
    /// Each packet of `kinds` that leaves one of `links` between `from_ns` and `until_ns` is impaired with
    /// probability `probability`.
    Packets {
        /// The impairment.
        impairment: Impairment,
        /// Kinds of packets that are impaired.
        kinds: Kinds,
        /// Affected links; `None`: every link.
        links: Option<Vec<LinkId>>,
        /// Probability per packet, 0 to 1.
        probability: f64,
        /// Start of the fault, ns.
        from_ns: Ns,
        /// End of the fault, ns.
        until_ns: Ns,
    },
    /// The link's capacity changes. A packet in transmission leaves at the old capacity.
    Capacity {
        /// The directed link.
        link: LinkId,
        /// New capacity, bit/s.
        capacity_bps: f64,
        /// Time of the change, ns.
        at_ns: Ns,
    },
    /// The state machine loses its state and starts again.
    Restart {
        /// The machine that restarts.
        machine: Machine,
        /// Time of the restart, ns.
        at_ns: Ns,
    },
    /// The link is down from `down_ns` to `up_ns`. Packets on the link at `down_ns` are lost.
    Down {
        /// The directed link.
        link: LinkId,
        /// Time of the failure, ns.
        down_ns: Ns,
        /// Time of the recovery, ns.
        up_ns: Ns,
        /// Whether packets queued for the link, and later arrivals, are kept until the link is up again; otherwise
        /// they are dropped.
        keeps: bool,
    },
}

impl Injected {
    /// The link changes that `faults` cause, in time order. Of changes at one time, recoveries come before failures.
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
    /// Bytes of a full data packet.
    pub mtu_bytes: u32,
    /// Header bytes of a data packet, included in `mtu_bytes`.
    pub header_bytes: u32,
    /// Bytes of an ACK.
    pub ack_bytes: u32,
}

impl Default for PacketSizes {
    /// A full Ethernet frame of 1500 bytes with IPv4 and TCP headers without options; ACKs have the minimum frame
    /// size.
    fn default() -> Self {
        PacketSizes { mtu_bytes: 1500, header_bytes: 54, ack_bytes: 64 }
    }
}

impl PacketSizes {
    /// Bytes of ACKs per byte of data, with one ACK for each full packet.
    pub fn ack_share(&self) -> f64 {
        f64::from(self.ack_bytes) / f64::from(self.mtu_bytes)
    }
    /// Sizes with a scheme's own headers added; the payload of a full packet stays the same.
    #[must_use]
    pub fn with(self, headers: Headers) -> Self {
        PacketSizes {
            mtu_bytes: self.mtu_bytes + headers.data_bytes,
            header_bytes: self.header_bytes + headers.data_bytes,
            ack_bytes: self.ack_bytes + headers.ack_bytes,
        }
    }
    /// Payload bytes of a full packet.
    pub fn mss_bytes(&self) -> u32 {
        self.mtu_bytes - self.header_bytes
    }

    /// Bytes on the wire for `payload` bytes, sent in full packets and a shorter last one.
    pub fn wire_bytes(&self, payload: u64) -> u64 {
        payload + payload.div_ceil(u64::from(self.mss_bytes())) * u64::from(self.header_bytes)
    }
}

/// Statistics of a parallel run. For a run until a fixed time they are deterministic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Number of logical processes (LPs).
    pub parts: usize,
    /// Number of synchronization windows; a barrier ends each.
    pub windows: u64,
    /// Sum over windows of the largest number of events of an LP: the critical path if each LP has a core.
    pub longest_events: u64,
    /// Packets and control frames sent from one LP to another.
    pub crossed: u64,
}

/// A running simulation. The same inputs give the same results, bit for bit.
pub trait Backend: Send {
    /// Adds a flow. Flows are numbered in the order in which they are added.
    fn add(&mut self, plan: FlowPlan) -> FlowId;
    /// After this call, a flow completes when its last ACK arrives at the sender, not when its last byte is received.
    /// Must be called before flows are added.
    fn complete_at_sender(&mut self);
    /// Places the scheme's controller in the network; `ways` has the paths from each node to the controller and back.
    /// Must be called before time advances.
    fn place_controller(&mut self, ways: &[(NodeId, Route)]) {
        let _ = ways;
    }
    /// Sets the paths between nodes and the controller after routing has detected a link's failure or recovery. Paths
    /// of flows are set afterwards by [`Backend::reroute`].
    fn on_routes(&mut self, ways: &[(NodeId, Route)]) {
        let _ = ways;
    }
    /// Sets the watcher that receives trace records of packets. Must be called before time advances. Backends without
    /// packets ignore the watcher.
    fn watch(&mut self, watcher: Box<dyn Watcher>) {
        drop(watcher);
    }
    /// Congestion windows and pacing rates of an open flow's subflows; empty if the backend does not model them.
    fn paces(&self, flow: FlowId) -> Vec<PaceView> {
        let _ = flow;
        Vec::new()
    }
    /// Changes the flow's weight and its utility function.
    fn set_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>);
    /// Starts, at `at_ns`, a flow whose plan has the start time [`NOT_YET`].
    fn start_flow(&mut self, flow: FlowId, at_ns: Ns);
    /// Allows [`Backend::change_link`]; calls slow the simulation down a little. Call it before time advances.
    fn allow_link_changes(&mut self) {}
    /// Changes the state or the capacity of a link now, beside the injected faults. Packets on a link that fails are
    /// lost, and so are packets queued for it.
    fn change_link(&mut self, link: LinkId, change: LinkChange);
    /// Stops the flow: it sends no new data.
    fn stop_flow(&mut self, flow: FlowId);
    /// Changes the paths of the flow's subflows, one route each. Packets in flight stay on the old path.
    fn reroute(&mut self, flow: FlowId, routes: &[Route]);
    /// Like [`Backend::run_until`], but stops as soon as a flow has finished.
    fn run_until_finish(&mut self, until_ns: Ns);
    /// Flows that finished since the last call, in the order of their finish times, then of their numbers.
    fn take_finished(&mut self) -> Vec<FlowId>;
    /// Advances time to `until_ns` and handles every event up to that time, inclusive.
    fn run_until(&mut self, until_ns: Ns);
    /// Like [`Backend::run_until`], but stops as soon as every flow with a size has finished.
    fn run_until_done(&mut self, until_ns: Ns);
    /// Current simulated time, ns.
    fn now_ns(&self) -> Ns;
    /// Number of added flows that have neither finished nor been stopped.
    fn open_flows(&self) -> usize;
    /// Removes ended flows that have no packet left in the network and returns their final views in the order in
    /// which they ended. Regular calls keep memory constant; without them every flow stays readable until the end.
    fn forget(&mut self) -> Vec<(FlowId, FlowView)> {
        Vec::new()
    }
    /// State of a flow; an empty view after [`Backend::forget`] has removed it.
    fn flow(&self, flow: FlowId) -> FlowView;
    /// Whether a flow will never send again by itself: its source allows no rate, nothing is in flight, and no timer is
    /// pending.
    fn is_held(&self, flow: FlowId) -> bool {
        let _ = flow;
        false
    }
    /// State of a link.
    fn link(&self, link: LinkId) -> LinkView;
    /// A PFC deadlock: paused links that wait for each other in a cycle, each with the time of its pause, ns. Empty
    /// if there is none.
    fn deadlock(&self) -> Vec<(LinkId, Ns)> {
        Vec::new()
    }
    /// Resets each link's peak queue length to its current queue length.
    fn restart_peaks(&mut self);
    /// Histogram of the total queueing delay of data packets over their path: `(upper edge of the bin in ns,
    /// packets)`.
    fn waits_ns(&self) -> Vec<(Ns, u64)>;
    /// Number of packets that left a queue onto a link, summed over links.
    fn packet_hops(&self) -> u64;
    /// Number of events handled.
    fn events(&self) -> u64;
    /// Upper bound of [`Backend::events`], at a cost that does not grow with the network: departures that are fixed
    /// already may count before they are due.
    fn events_at_most(&self) -> u64 {
        self.events()
    }
    /// Statistics of the parallel run.
    fn sharing(&self) -> Sharing {
        Sharing { parts: 1, longest_events: self.events(), ..Sharing::default() }
    }
    /// Number of allocation problems that the backend failed to solve. Results are valid only if this number is 0.
    fn failures(&self) -> u64 {
        0
    }
    /// Error that stopped the scheme's state machines, if any. Results after it are invalid.
    fn fault(&self) -> Option<InputError> {
        None
    }
    /// Notes of the scheme's state machines since the last call, in the order of their times.
    fn take_notes(&mut self) -> Vec<Note> {
        Vec::new()
    }
}
