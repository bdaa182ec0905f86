//! The interface between a scheme and its backend.
//!
//! A scheme is four pure state machines: a [`Source`] and a [`Sink`] for each flow, a [`Hop`] and a [`Queue`] for
//! each directed link. None holds a clock or does I/O: the backend passes `now` in through [`Io`] and carries out the
//! effects that the machine returns. The same machines run under the round-based backend (control messages only) and
//! the packet simulator.

mod circumstances;
mod doubts;
mod follows;
mod info;
mod io;
mod lossless;
mod packet;
mod repair;
mod rules;

pub use circumstances::Circumstances;
pub use doubts::{Around, Doubt, FlowShares, LeastShare};
pub use follows::Follows;
pub use info::{
    Bound, Doubtful, FlowInfo, Goal, InRounds, Info, Marks, OnHosts, Param, Params, PathInfo, Port, Preset, SchemeKind,
    Settles, SharesLinks, Utilities,
};
pub use io::{Effect, Io, Note, To, UpdateRecord};
pub use lossless::{Lossless, Threshold};
pub use packet::{Blocks, Class, Packet, PacketId, PacketKind, RouteId, Slab, Way};
pub use repair::{Ack, Loss, LossKind, Recovery};
pub use rules::{Clock, Headers, Pacing, Rules};

use crate::capacities::LinkChange;
use crate::{FlowId, InputError, LinkId, Network, NodeId, Ns, SubflowId, Utility};
use std::any::TypeId;
use std::fmt::Debug;
use std::sync::Arc;

/// A scheme with static metadata. The metadata of an optimizer/transport pair is computed instead.
pub trait Named: Scheme {
    /// Name, kind, parameters and source of the scheme.
    const INFO: Info;
}

/// A bandwidth-allocation or congestion-control scheme: creates its state machines.
pub trait Scheme: Sized + Clone + Send + 'static {
    /// Header of each data packet, echoed in its ACK.
    type Data: Copy + Default + Debug + Send;
    /// Control message, sent in packets of its own.
    type Ctl: Clone + Debug + Send;
    /// Output queue of a link.
    type Queue: Queue<Self>;
    /// Sender's side of a flow.
    type Source: Source<Self>;
    /// State and logic at a directed link.
    type Hop: Hop<Self>;
    /// Receiver's side of a flow.
    type Sink: Sink<Self>;

    /// Creates the scheme with `params`, already checked against [`Info::params`]. Inconsistent values are errors.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// Constant properties of the scheme.
    fn rules(&self) -> Rules {
        Rules::default()
    }
    /// Estimated simulation cost: [`Rules::per_hop`], and whatever depends on the load.
    fn work(&self, load: &Load) -> SimulationCost {
        let _ = load;
        SimulationCost::per_hop(self.rules().per_hop)
    }
    /// Loss recovery of the flows with index `scheme` ([`FlowInfo::scheme`]), if several schemes are run together.
    fn recovery(&self, scheme: u8) -> Recovery {
        let _ = scheme;
        self.rules().recovery
    }
    /// Queue lengths at which the port sets ECN marks; `None` if it sets none.
    fn marks(&self, port: &Port) -> Option<Marks> {
        let _ = port;
        None
    }
    /// Whether it sends control packets.
    fn sends_ctl(&self) -> bool {
        TypeId::of::<Self::Ctl>() != TypeId::of::<()>()
    }
    /// Error that stopped the scheme's state machines, if any. Only schemes that users write in Python or C can fail
    /// so.
    fn fault(&self) -> Option<InputError> {
        None
    }
    /// Notes of the scheme's state machines since the last call, in the order of their times. Only schemes that users
    /// write in Python have notes.
    fn take_notes(&self) -> Vec<Note> {
        Vec::new()
    }
    /// The backend refuses a request of `sender` at `at_ns`. A scheme of a user's notes a [fault](Scheme::fault).
    fn on_refused(&self, sender: Requester, why: Refused, at_ns: Ns) {
        let _ = (sender, why, at_ns);
    }
    /// A warning for each parameter that does not suit the network.
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let _ = around;
        Vec::new()
    }
    /// The output queue before a link.
    fn queue(&self, port: &Port) -> Self::Queue;
    /// The sender of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The state at a link.
    fn hop(&self, port: &Port) -> Self::Hop;
    /// The receiver of `flow`.
    fn sink(&self, flow: &FlowInfo) -> Self::Sink;
    /// The central controller of `network`, for schemes that have one.
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Self>>> {
        let _ = network;
        None
    }
    /// The state machine of a node, for schemes that have one. At a host the machine keeps the state of the endpoint,
    /// at a switch the state that its ports share.
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Self>>> {
        let _ = node;
        None
    }
    /// The rate that the `hop`-th link of the path allocated in `message`, bit/s; `None` for a scheme whose links
    /// allocate no rates. The round-based backend compares this rate with the exact one.
    fn allocated(message: &Self::Ctl, hop: u16) -> Option<f64> {
        let _ = (message, hop);
        None
    }
}

/// The machine whose request the backend refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    /// The source or sink of this flow.
    Flow(FlowId),
    /// The state machine of this node.
    Node(NodeId),
    /// The controller.
    Controller,
}

/// Why the backend refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Neither rate nor window bounds what a subflow has in flight.
    Unbounded,
    /// Messages that take no time answer each other without end.
    Endless,
    /// The flow that a node writes to starts at another node.
    Elsewhere(FlowId),
    /// There never was the flow that is written to.
    NoFlow(FlowId),
    /// The flow's host has no state machine.
    NoMachine,
    /// Before the controller has its place, and between it and a switch, there is no way for messages.
    NoWay,
}

/// A message type that embeds a component's message. In an optimizer/transport pair, all messages have one type.
pub trait Carries<T>: Sized {
    /// Wraps a component's message.
    fn of(part: T) -> Self;
    /// The wrapped message, if it is of that type.
    fn open(self) -> Option<T>;
}

impl<T> Carries<T> for T {
    fn of(part: T) -> T {
        part
    }
    fn open(self) -> Option<T> {
        Some(self)
    }
}

/// The sender's side of a flow.
pub trait Source<S: Scheme>: Send {
    /// The flow starts. Nothing is sent until [`Io::pace`] is called.
    fn on_start(&mut self, io: &mut Io<S>);
    /// A data packet is about to leave: sets its header and priority class. `remaining_bytes` is the payload not yet
    /// ACKed (`u64::MAX` for an endless flow).
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<S>, remaining_bytes: u64) {
        let _ = (now_ns, packet, remaining_bytes);
    }
    /// An ACK arrived.
    fn on_ack(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>) {
        let _ = (io, ack);
    }
    /// A control message arrived: one that this source sent and the sink returned, or one of another machine.
    fn on_ctl(&mut self, io: &mut Io<S>, subflow: SubflowId, message: S::Ctl) {
        let _ = (io, subflow, message);
    }
    /// A timer set with [`Io::timer`] expires.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
    /// Segments were marked lost.
    fn on_loss(&mut self, io: &mut Io<S>, loss: &Loss) {
        let _ = (io, loss);
    }
    /// The flow's weight and utility function change.
    fn on_weight(&mut self, io: &mut Io<S>, weight: f64, utility: &Arc<Utility>) {
        let _ = (io, weight, utility);
    }
    /// The path of `subflow` is about to change. Messages sent now still take the old path.
    fn on_leave(&mut self, io: &mut Io<S>, subflow: SubflowId) {
        let _ = (io, subflow);
    }
    /// A message of this source returned by a path that `subflow` has left. Messages sent in response take the old
    /// path again.
    fn on_left(&mut self, io: &mut Io<S>, subflow: SubflowId, message: S::Ctl, bytes: u32) {
        let _ = (io, subflow, message, bytes);
    }
    /// The path of `subflow` has changed to `links`.
    fn on_reroute(&mut self, io: &mut Io<S>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        let _ = (io, subflow, path, links);
    }
    /// The flow is complete or was stopped: sends the teardown to the links.
    fn on_finish(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
}

/// Position of a control message on its path, as a hop sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// The message's flow.
    pub flow: FlowId,
    /// The message's subflow.
    pub subflow: SubflowId,
    /// Index of the link on the data path, from the source.
    pub hop: u16,
    /// Whether the message travels from source to sink. In the other direction the message is passed to the hop of
    /// the same data link.
    pub forward: bool,
}

/// State and logic at one directed link.
pub trait Hop<S: Scheme>: Send {
    /// Whether the hop needs to see departures, pauses its queue or sends to neighbours. Otherwise, if the queue is a
    /// FIFO, a simulator may compute a packet's departure at its arrival ([`Queue::fixed_room_bytes`]).
    fn observes_departures(&self) -> bool {
        true
    }
    /// Whether it has state that a restart clears.
    fn has_state(&self) -> bool {
        size_of_val(self) > 0
    }

    /// The network starts. Sets the first timer, if any.
    fn on_start(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// A data packet or ACK is about to enter the output queue.
    fn on_enqueue(&mut self, io: &mut Io<S>, packet: &mut Packet<S>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// A data packet or ACK leaves the queue onto the link.
    fn on_dequeue(&mut self, io: &mut Io<S>, packet: &mut Packet<S>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// The machine at the link's other end sent a message against the link's direction ([`To::Neighbour`]).
    fn on_neighbour(&mut self, io: &mut Io<S>, message: S::Ctl, port: &Port) {
        let _ = (io, message, port);
    }
    /// The link's capacity changed: `port` has the new one.
    fn on_capacity(&mut self, port: &Port) {
        let _ = port;
    }
    /// A link has recovered, or routing has detected a failure or recovery. State that depends on lost messages is
    /// outdated. Simulators call this hook for schemes that do not [recover](Rules::recovers).
    fn on_topology(&mut self, port: &Port) {
        let _ = port;
    }
    /// A control message passes, in either direction: see [`Visit`].
    fn on_ctl(&mut self, io: &mut Io<S>, message: &mut S::Ctl, visit: Visit, port: &Port) {
        let _ = (io, message, visit, port);
    }
    /// A timer set with [`Io::timer`] expires.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32, port: &Port) {
        let _ = (io, timer, port);
    }
}

/// A sink's response to a data packet.
#[derive(Debug, Clone, Copy)]
pub enum Reply<D> {
    /// Send an ACK with this header.
    Ack(D),
    /// Send no ACK now.
    Withhold,
}

/// The receiver's side of a flow.
pub trait Sink<S: Scheme>: Send {
    /// A data packet arrived.
    fn on_data(&mut self, io: &mut Io<S>, packet: &Packet<S>) -> Reply<S::Data> {
        let _ = io;
        Reply::Ack(packet.data)
    }
    /// A control message arrived. By default the message is returned to the source.
    fn on_ctl(&mut self, io: &mut Io<S>, subflow: SubflowId, message: S::Ctl, bytes: u32) {
        io.ctl(To::Source, subflow, message, Class::Control, bytes);
    }
    /// A timer set with [`Io::timer`] expires.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

/// Result of a dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pop {
    /// This packet goes next.
    Packet(PacketId),
    /// The queue is not empty, but nothing may leave before this time, ns.
    NotBefore(Ns),
    /// The queue is empty.
    Empty,
}

/// An output queue. A queue may reorder packets and drop any of them. Dropped packets are appended to `dropped` for
/// the backend's counters.
pub trait Queue<S: Scheme>: Send {
    /// A packet arrives.
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>);
    /// The link is idle: removes and returns the next packet.
    fn pop(&mut self, now_ns: Ns, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) -> Pop;
    /// Pauses or resumes the packets of `class`. A queue without classes ignores the call.
    fn pause(&mut self, class: Class, on: bool) {
        let _ = (class, on);
    }
    /// A hint: the packet that probably leaves next, if known without a search.
    fn first(&self) -> Option<PacketId> {
        None
    }
    /// The queue's size, bytes, if it is a drop-tail FIFO; otherwise `None`.
    fn fixed_room_bytes(&self) -> Option<u64> {
        None
    }
    /// Queue length, bytes.
    fn bytes(&self) -> u64;
    /// Queue length, packets.
    fn packets(&self) -> usize;
}

impl<S: Scheme> Queue<S> for Box<dyn Queue<S>> {
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        (**self).push(now_ns, packet, slab, dropped);
    }
    fn pop(&mut self, now_ns: Ns, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) -> Pop {
        (**self).pop(now_ns, slab, dropped)
    }
    fn pause(&mut self, class: Class, on: bool) {
        (**self).pause(class, on);
    }
    fn first(&self) -> Option<PacketId> {
        (**self).first()
    }
    fn fixed_room_bytes(&self) -> Option<u64> {
        (**self).fixed_room_bytes()
    }
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }
    fn packets(&self) -> usize {
        (**self).packets()
    }
}

/// State machine of a node. At a host, sources and sinks exchange messages with the machine without delay
/// ([`To::Host`], [`To::Flow`]); the machine's messages to the controller cross the network. At any node the machine
/// sees the packets that leave by the node's links.
pub trait NodeMachine<S: Scheme>: Send {
    /// The network starts, or the machine starts again after a fault.
    fn on_start(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// A packet of any kind is about to enter the queue of `port`; returns `false` to drop it.
    fn admits(&mut self, io: &mut Io<S>, packet: &Packet<S>, port: &Port) -> bool {
        let _ = (io, packet, port);
        true
    }
    /// An admitted packet leaves by `port`, or was dropped by its queue.
    fn on_leave(&mut self, io: &mut Io<S>, packet: &Packet<S>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// The controller has been placed, or this machine restarted after that.
    fn on_controller(&mut self, io: &mut Io<S>, place: &ControllerPlace) {
        let _ = (io, place);
    }
    /// The source or sink of `flow` at this host sent a message.
    fn on_flow(&mut self, io: &mut Io<S>, flow: FlowId, message: S::Ctl) {
        let _ = (io, flow, message);
    }
    /// The controller sent a message.
    fn on_ctl(&mut self, io: &mut Io<S>, message: S::Ctl) {
        let _ = (io, message);
    }
    /// A timer set with [`Io::timer`] expires.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

/// The expected load of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Number of flows.
    pub flows: f64,
    /// Number of hosts that send or receive.
    pub hosts: f64,
    /// Simulated time, s.
    pub seconds: f64,
    /// Number of links.
    pub links: f64,
    /// Mean number of concurrent flows.
    pub live: f64,
    /// Time until the last flow ends, s, if the hosts' links are saturated until then.
    pub busy_s: f64,
    /// Base RTT of a path over links of mean delay, s.
    pub rtt_s: f64,
}

/// Estimated cost of simulating a scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulationCost {
    /// Processor time per packet-hop, relative to DCTCP.
    pub per_hop: f64,
    /// Processor time of the central controller, s.
    pub central_s: f64,
    /// Number of timer expirations at fixed intervals, independent of link rates.
    pub timers: f64,
}

impl SimulationCost {
    /// A cost per packet-hop only, relative to DCTCP.
    pub const fn per_hop(per_hop: f64) -> Self {
        SimulationCost { per_hop, central_s: 0.0, timers: 0.0 }
    }
}

impl Default for SimulationCost {
    fn default() -> Self {
        SimulationCost::per_hop(1.0)
    }
}

/// Location and links of the controller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControllerPlace {
    /// The host that runs the controller; `None` if the controller has a node of its own.
    pub host: Option<NodeId>,
    /// Number of hosts that may send to the controller.
    pub hosts: usize,
    /// Total capacity of the links by which messages reach the controller, bit/s.
    pub into_bps: f64,
    /// Total capacity of the links by which the controller's messages leave, bit/s.
    pub out_bps: f64,
}

/// A node, as its state machine sees it at creation.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeInfo {
    /// The node.
    pub node: NodeId,
    /// Whether the node is a host: flows start and end there.
    pub is_host: bool,
    /// Links that start at the node.
    pub out: Vec<LinkId>,
    /// Links that end at the node.
    pub into: Vec<LinkId>,
    /// Seed of the machine's random numbers: see [`crate::rng::Stream`].
    pub seed: u64,
}

/// A central state machine, such as an allocator, that hosts reach across the network. Its messages are packets: they
/// queue and may be lost.
pub trait Controller<S: Scheme>: Send {
    /// The network starts, or the controller starts again after a fault.
    fn on_start(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// The controller has been placed, or restarted after that.
    fn on_place(&mut self, io: &mut Io<S>, place: &ControllerPlace) {
        let _ = (io, place);
    }
    /// The source of `flow` sent a message. Replies go to [`To::Flow`].
    fn on_ctl(&mut self, io: &mut Io<S>, flow: FlowId, message: S::Ctl) {
        let _ = (io, flow, message);
    }
    /// The state machine of `node` sent a message. Replies go to [`To::Node`].
    fn on_node(&mut self, io: &mut Io<S>, node: NodeId, message: S::Ctl) {
        let _ = (io, node, message);
    }
    /// A link failed, recovered or changed its capacity. The call is delayed like a message from the link's nearer
    /// end.
    fn on_link(&mut self, io: &mut Io<S>, link: LinkId, change: LinkChange) {
        let _ = (io, link, change);
    }
    /// A timer set with [`Io::timer`] expires.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

impl<S: Scheme> Hop<S> for () {
    fn observes_departures(&self) -> bool {
        false
    }
}
impl<S: Scheme> Sink<S> for () {}
