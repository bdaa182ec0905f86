//! The interface between a scheme and its backend.
//!
//! A scheme is four pure state machines: a [`Source`] and a [`Sink`] for each flow, a [`Hop`] and a [`Queue`] for
//! each directed link. None holds a clock or does I/O: the backend passes `now` in through [`Io`] and carries out
//! what the machine asks of it. The same machines run under the round-based backend (control messages only) and the
//! packet simulator.

mod doubts;
mod follows;
mod info;
mod io;
mod lossless;
mod packet;
mod repair;

pub use doubts::{Around, Doubt};
pub use follows::{Circumstances, Follows};
pub use info::{FlowInfo, Goal, InRounds, Info, Param, Params, PathInfo, Port, Preset, SchemeKind, Settles, Utilities};
pub use io::{Effect, Io, To, UpdateRecord};
pub use lossless::{Lossless, Threshold};
pub use packet::{Blocks, Class, Packet, PacketId, PacketKind, RouteId, Slab, Way};
pub use repair::{Ack, Loss, LossKind, Recovery};

use crate::backend::LinkChange;
use crate::{FlowId, InputError, LinkId, Network, Nic, NodeId, Ns, SubflowId, Utility};
use std::fmt::Debug;
use std::sync::Arc;

/// A scheme that describes itself. A pair of an optimizer and a transport does not: its description is computed.
pub trait Named: Scheme {
    /// Name, kind, parameters and source of the scheme.
    const INFO: Info;
}

/// A bandwidth-allocation or congestion-control scheme: the makers of its state machines.
pub trait Scheme: Sized + Clone + Send + 'static {
    /// Header that rides in every data packet and comes back in its acknowledgement.
    type Data: Copy + Default + Debug + Send;
    /// Message that travels in packets of its own.
    type Ctl: Clone + Debug + Send;
    /// Output queue of a link.
    type Queue: Queue<Self>;
    /// Sender's side of a flow.
    type Source: Source<Self>;
    /// State and logic at a directed link.
    type Hop: Hop<Self>;
    /// Receiver's side of a flow.
    type Sink: Sink<Self>;

    /// The scheme with `params`, already checked against [`Info::params`]; refuses values that make no sense.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// The share of a link's capacity that it means to give to data: less than 1 where control packets or acknowledgements
    /// have a share of their own, or some is left free.
    fn data_share(&self) -> f64 {
        1.0
    }
    /// Whether rates come right again after control messages were lost, or a link was down: where they do not, links keep what
    /// the lost messages would have corrected.
    fn recovers(&self) -> bool {
        true
    }
    /// Estimated simulation cost.
    fn work(&self, load: &Load) -> SimulationCost {
        let _ = load;
        SimulationCost::default()
    }
    /// Whether a source holds what links tell against what they told before, so that all packets of a subflow have to take one
    /// path.
    fn takes_one_path(&self) -> bool {
        false
    }
    /// A warning for each parameter that does not suit the network.
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let _ = around;
        Vec::new()
    }
    /// The loss recovery.
    fn recovery(&self) -> Recovery {
        Recovery::default()
    }
    /// Whether switches lose nothing, and by which rules. The scheme's queue must know classes ([`Queue::pause`]), and need not
    /// bound what waits in it.
    fn lossless(&self) -> Option<Lossless> {
        None
    }
    /// Bytes that its header adds to a full packet and to an ACK.
    fn headers(&self) -> Headers {
        Headers::default()
    }
    /// The class in which acknowledgements travel; `None`: that of the data which they acknowledge.
    fn acks(&self) -> Option<Class> {
        None
    }
    /// NIC scheduling, where the scheme's paper fixes it; `None`: that of the network's hosts.
    fn nic(&self) -> Option<Nic> {
        None
    }
    /// Resolution of transmission times.
    fn clock(&self) -> Clock {
        Clock::Exact
    }
    /// The pacing of NICs.
    fn pacing(&self) -> Pacing {
        Pacing::default()
    }
    /// The output queue before a link.
    fn queue(&self, port: &Port) -> Self::Queue;
    /// The sender of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The state at a link.
    fn hop(&self, port: &Port) -> Self::Hop;
    /// The receiver of `flow`.
    fn sink(&self, flow: &FlowInfo) -> Self::Sink;
    /// The central machine of `network`, for schemes that have one.
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Self>>> {
        let _ = network;
        None
    }
    /// The machine of a node, for schemes that have one: at a host it knows what concerns the endpoint and not one flow, at a
    /// switch what its ports share.
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Self>>> {
        let _ = node;
        None
    }
    /// The rate, bit/s, that `message` holds for the `hop`-th link of its path, in schemes whose links each allocate one:
    /// the round-based backend compares it with the exact rates.
    fn allocated(message: &Self::Ctl, hop: u16) -> Option<f64> {
        let _ = (message, hop);
        None
    }
}

/// A message that is, or may hold, one of a part of the scheme: an optimizer over a transport has one sort of message, and
/// the transport sends its own.
pub trait Carries<T>: Sized {
    /// With that inside.
    fn of(part: T) -> Self;
    /// The value inside, if it is of that type.
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

/// Bytes that a scheme's own header adds to packets on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headers {
    /// To each data packet.
    pub data_bytes: u32,
    /// To each acknowledgement.
    pub ack_bytes: u32,
}

/// Resolution of transmission times and pacing gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clock {
    /// So fine that no rate is lost to rounding.
    #[default]
    Exact,
    /// Cut to whole nanoseconds, at least one: links and paces are faster than they say. A pace counts from when a packet
    /// went, not from when it might have gone.
    WholeNs,
}

/// NIC pacing. By default each flow sends at its own latest pacing rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pacing {
    /// A new rate holds from the next packet on: a wait that has begun goes on by the old one.
    pub late_rates: bool,
    /// A NIC has one timer, set for the flow that may go first when the timer is free. It sleeps past the time of a flow that
    /// may go before that, until something else wakes it: an arrival, the end of a packet, a new flow.
    pub one_timer: bool,
}

/// The sender's side of a flow.
pub trait Source<S: Scheme>: Send {
    /// The flow starts. Until a [`Io::pace`] nothing is sent.
    fn on_start(&mut self, io: &mut Io<S>);
    /// A data packet is about to leave: fill its header, choose its class. `remaining_bytes` of the flow are not
    /// acknowledged yet (`u64::MAX` for a flow without end).
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<S>, remaining_bytes: u64) {
        let _ = (now_ns, packet, remaining_bytes);
    }
    /// An acknowledgement arrived.
    fn on_ack(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>) {
        let _ = (io, ack);
    }
    /// A control message arrived: its own that came back, or one of another machine.
    fn on_ctl(&mut self, io: &mut Io<S>, subflow: SubflowId, message: S::Ctl) {
        let _ = (io, subflow, message);
    }
    /// A timer asked for with [`Io::timer`] is due.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
    /// Segments were lost.
    fn on_loss(&mut self, io: &mut Io<S>, loss: &Loss) {
        let _ = (io, loss);
    }
    /// The flow has another weight from now on, and with it this utility.
    fn on_weight(&mut self, io: &mut Io<S>, weight: f64, utility: &Arc<Utility>) {
        let _ = (io, weight, utility);
    }
    /// Subflow `subflow` is about to take another path: messages sent now still take the old one.
    fn on_leave(&mut self, io: &mut Io<S>, subflow: SubflowId) {
        let _ = (io, subflow);
    }
    /// A message of this source came back by a path that `subflow` has left. What is sent in answer takes that path again.
    fn on_left(&mut self, io: &mut Io<S>, subflow: SubflowId, message: S::Ctl, bytes: u32) {
        let _ = (io, subflow, message, bytes);
    }
    /// Subflow `subflow` takes another path from now on, over `links`.
    fn on_reroute(&mut self, io: &mut Io<S>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        let _ = (io, subflow, path, links);
    }
    /// The flow is complete or was stopped: send the teardown to the links.
    fn on_finish(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
}

/// A control message's place on its path, when a hop sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Whose message it is.
    pub flow: FlowId,
    /// On which of the flow's subflows.
    pub subflow: SubflowId,
    /// Which link of the data path this is, counted from the source.
    pub hop: u16,
    /// Whether the message travels from source to sink. On the way back it is shown to the hop of the same data link.
    pub forward: bool,
}

/// State and logic at one directed link.
pub trait Hop<S: Scheme>: Send {
    /// Whether it is shown what leaves, holds packets in the queue or writes to neighbours. Where it does none of these and its
    /// queue is first in, first out, a simulator may fix when a packet leaves as soon as it comes ([`Queue::fixed_room_bytes`]).
    const MINDS_DEPARTURES: bool = true;

    /// The network starts: set the first timer, if any.
    fn on_start(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// A data packet or acknowledgement is about to enter the output queue.
    fn on_enqueue(&mut self, io: &mut Io<S>, packet: &mut Packet<S>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// A data packet or acknowledgement is leaving the queue onto the link.
    fn on_dequeue(&mut self, io: &mut Io<S>, packet: &mut Packet<S>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// The machine at the other end of the link sent a message against its direction ([`To::Neighbour`]).
    fn on_neighbour(&mut self, io: &mut Io<S>, message: S::Ctl, port: &Port) {
        let _ = (io, message, port);
    }
    /// The link has another capacity from now on: `port` has the new one.
    fn on_capacity(&mut self, port: &Port) {
        let _ = port;
    }
    /// A failed link has come back, or routing has noticed that one failed or came back: the state that links keep of messages lost
    /// there is wrong. The simulator calls it for schemes that do not [recover](Scheme::recovers).
    fn on_topology(&mut self, port: &Port) {
        let _ = port;
    }
    /// A control message passes, in either direction: see [`Visit`].
    fn on_ctl(&mut self, io: &mut Io<S>, message: &mut S::Ctl, visit: Visit, port: &Port) {
        let _ = (io, message, visit, port);
    }
    /// A timer asked for with [`Io::timer`] is due.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32, port: &Port) {
        let _ = (io, timer, port);
    }
}

/// A sink's response to a data packet.
#[derive(Debug, Clone, Copy)]
pub enum Reply<D> {
    /// Acknowledge it, with this header.
    Ack(D),
    /// Send nothing now.
    Withhold,
}

/// The receiver's side of a flow.
pub trait Sink<S: Scheme>: Send {
    /// A data packet arrived.
    fn on_data(&mut self, io: &mut Io<S>, packet: &Packet<S>) -> Reply<S::Data> {
        let _ = io;
        Reply::Ack(packet.data)
    }
    /// A control message arrived: by default it turns back.
    fn on_ctl(&mut self, io: &mut Io<S>, subflow: SubflowId, message: S::Ctl, bytes: u32) {
        io.ctl(To::Source, subflow, message, Class::Control, bytes);
    }
    /// A timer asked for with [`Io::timer`] is due.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

/// The result of a dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pop {
    /// This packet goes next.
    Packet(PacketId),
    /// Something waits, but may not leave before this time.
    NotBefore(Ns),
    /// Nothing waits.
    Empty,
}

/// An output queue. It may drop at either end or from the middle, and reorder; what it drops it puts into
/// `dropped`, and the backend accounts for it.
pub trait Queue<S: Scheme>: Send {
    /// A packet arrives.
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>);
    /// The link is free: which packet goes?
    fn pop(&mut self, now_ns: Ns, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) -> Pop;
    /// Holds the packets of `class`, or lets them go. A queue that knows no classes ignores it.
    fn pause(&mut self, class: Class, on: bool) {
        let _ = (class, on);
    }
    /// The packet that is likely to go next, where that is known at once.
    fn first(&self) -> Option<PacketId> {
        None
    }
    /// Its room, if packets leave it in the order in which they come and what does not fit, by its bytes, is all that is dropped.
    fn fixed_room_bytes(&self) -> Option<u64> {
        None
    }
    /// Bytes waiting.
    fn bytes(&self) -> u64;
    /// Packets waiting.
    fn packets(&self) -> usize;
}

/// The machine of a node. At a host, sources and sinks speak to it at once ([`To::Host`]), and it to sources
/// ([`To::Flow`]) and across the network to the controller. At any node it sees the packets that leave by its links.
pub trait NodeMachine<S: Scheme>: Send {
    /// The network starts, or the machine starts again after a fault.
    fn on_start(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// A packet of any kind is about to enter the queue of `port`; `false` drops it.
    fn admits(&mut self, io: &mut Io<S>, packet: &Packet<S>, port: &Port) -> bool {
        let _ = (io, packet, port);
        true
    }
    /// A packet that was admitted is leaving by `port`, or was dropped by its queue.
    fn on_leave(&mut self, io: &mut Io<S>, packet: &Packet<S>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// The controller has its place, or the machine started again since.
    fn on_controller(&mut self, io: &mut Io<S>, place: &ControllerPlace) {
        let _ = (io, place);
    }
    /// The source or sink of `flow`, which is at this host, sent a message.
    fn on_flow(&mut self, io: &mut Io<S>, flow: FlowId, message: S::Ctl) {
        let _ = (io, flow, message);
    }
    /// The controller sent a message.
    fn on_ctl(&mut self, io: &mut Io<S>, message: S::Ctl) {
        let _ = (io, message);
    }
    /// A timer asked for with [`Io::timer`] is due.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

/// The expected load of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Flows in all.
    pub flows: f64,
    /// Hosts that send or receive.
    pub hosts: f64,
    /// Seconds of network.
    pub seconds: f64,
    /// Links.
    pub links: f64,
    /// Flows at once.
    pub live: f64,
    /// Seconds until the last flow ends, if the hosts' links carry what there is.
    pub busy_s: f64,
    /// The base RTT of a path of mean links, s.
    pub rtt_s: f64,
}

/// Cost of simulating a scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulationCost {
    /// Processor time of a packet-hop, in DCTCP's.
    pub per_hop: f64,
    /// Processor seconds of a central machine.
    pub central_s: f64,
    /// Timers of a fixed interval that come due, however slow the links are.
    pub timers: f64,
}

impl SimulationCost {
    /// So much a packet-hop, in DCTCP's.
    pub const fn per_hop(per_hop: f64) -> Self {
        SimulationCost { per_hop, central_s: 0.0, timers: 0.0 }
    }
}

impl Default for SimulationCost {
    fn default() -> Self {
        SimulationCost::per_hop(1.0)
    }
}

/// Where the controller is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControllerPlace {
    /// The host that it is at, if it has no node of its own.
    pub host: Option<NodeId>,
    /// The number of hosts that may send to it.
    pub hosts: usize,
    /// Capacity of the links by which messages come to it, in all, bit/s.
    pub into_bps: f64,
    /// Capacity of the links by which its own leave, in all, bit/s.
    pub out_bps: f64,
}

/// A node as its state machine sees it at creation.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeInfo {
    /// The node.
    pub node: NodeId,
    /// Whether flows start and end at it.
    pub is_host: bool,
    /// Links that leave it.
    pub out: Vec<LinkId>,
    /// Links that end at it.
    pub into: Vec<LinkId>,
    /// Seed of its random numbers: see [`crate::rng::Stream`].
    pub seed: u64,
}

/// A machine that hosts reach across the network, such as a central allocator. Its messages are packets like any
/// other: they wait, and may be lost.
pub trait Controller<S: Scheme>: Send {
    /// The network starts, or the controller starts again after a fault.
    fn on_start(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// It has its place, or started again since.
    fn on_place(&mut self, io: &mut Io<S>, place: &ControllerPlace) {
        let _ = (io, place);
    }
    /// The source of `flow` sent a message; answer with [`To::Flow`].
    fn on_ctl(&mut self, io: &mut Io<S>, flow: FlowId, message: S::Ctl) {
        let _ = (io, flow, message);
    }
    /// The machine of `node` sent a message; answer with [`To::Node`].
    fn on_node(&mut self, io: &mut Io<S>, node: NodeId, message: S::Ctl) {
        let _ = (io, node, message);
    }
    /// A link failed, came back or has another capacity. The controller hears of it as late as from the nearer end of the
    /// link.
    fn on_link(&mut self, io: &mut Io<S>, link: LinkId, change: LinkChange) {
        let _ = (io, link, change);
    }
    /// A timer asked for with [`Io::timer`] is due.
    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

impl<S: Scheme> Hop<S> for () {
    const MINDS_DEPARTURES: bool = false;
}
impl<S: Scheme> Sink<S> for () {}
