//! Transports: their state machines at the sender, the links and the receiver.

use super::{Optimizer, Over, Part, Wish};
use std::fmt::Debug;
use subak_core::scheme::{
    Ack, Around, Carries, Controller, Doubt, FlowInfo, Io, Loss, PacketKind, Params, PathInfo, Port, Queue, Reply,
    Rules, Scheme, SchemeKind, Visit,
};
use subak_core::{FlowId, InputError, Network, Ns, SubflowId};

/// A transport: the rates of subflows converge to the allocation that their targets require. Targets may change at any
/// time.
pub trait Transport: Clone + Debug + Send + Sized + 'static {
    /// Name, parameters, paper and goal.
    const PART: Part;
    /// Whether links assign rates in packets of their own, or sources react to measurements.
    const KIND: SchemeKind = SchemeKind::Reactive;
    /// Convergence time in multiples of NUMFabric's Swift, for which the intervals of optimizers are sized.
    const SLOWDOWN: f64 = 1.0;
    /// Kind of the targets: weights or rates.
    type Wish: Wish;
    /// The transport's header of a data packet.
    type Header: Copy + Default + Debug + Send;
    /// Control messages of the transport.
    type Ctl: Clone + Debug + Send;
    /// Output queue of a link.
    type Queue<O: Optimizer<Wish = Self::Wish>>: Queue<Over<O, Self>>;
    /// State machine at the sender of a flow.
    type Source: TransportSource<Self>;
    /// State machine at a link.
    type Hop: TransportHop<Self>;
    /// State machine at the receiver of a flow.
    type Sink: TransportSink<Self>;

    /// Warnings if the parameters do not suit the network.
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let _ = around;
        Vec::new()
    }
    /// Creates the transport with `params`.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// Constant properties of the transport. If part of a link is reserved for control packets or ACKs
    /// ([`Rules::data_share`]), prices count data packets alone.
    fn rules(&self) -> Rules {
        Rules::default()
    }
    /// The output queue before a link.
    fn queue<O: Optimizer<Wish = Self::Wish>>(&self, port: &Port) -> Self::Queue<O>;
    /// The sender of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The state at a link.
    fn hop(&self, port: &Port) -> Self::Hop;
    /// The receiver of `flow`.
    fn sink(&self, flow: &FlowInfo) -> Self::Sink;
    /// State machine of the controller of `network`; `None` if the transport has none.
    fn controller<S: Scheme<Ctl: Carries<Self::Ctl>>>(&self, network: &Network) -> Option<Box<dyn Controller<S>>> {
        let _ = network;
        None
    }
}

/// A transport's state machine at a sender: the hooks of [`subak_core::scheme::Source`], and a target for each subflow.
/// Its timer numbers are below [`super::CENTRE_TIMER`].
pub trait TransportSource<F: Transport>: Send {
    /// Handles the start of the flow. Every subflow already has a target.
    fn on_start<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>);
    /// Sets the target of subflow `k`.
    fn wish<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, wish: F::Wish);
    /// Rate of subflow `k`, bit/s on the wire; `None` if it is not known.
    fn rate_bps(&self, k: SubflowId) -> Option<f64>;
    /// The header of a data packet of subflow `k`, of `bytes` on the wire.
    fn header(&mut self, k: SubflowId, bytes: u32) -> F::Header {
        let _ = (k, bytes);
        F::Header::default()
    }
    /// Handles an ACK.
    fn on_ack<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &F::Header) {
        let _ = (io, ack, header);
    }
    /// Handles a control message.
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, message: F::Ctl) {
        let _ = (io, k, message);
    }
    /// Handles an expired timer.
    fn on_timer<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
    /// Handles segments that were marked lost.
    fn on_loss<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, loss: &Loss) {
        let _ = (io, loss);
    }
    /// Called before subflow `k` leaves its path: messages sent now still use the old path.
    fn on_leave<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId) {
        let _ = (io, k);
    }
    /// Handles a message that returned over a path that subflow `k` has left. A reply uses the old path again.
    fn on_left<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, message: F::Ctl, bytes: u32) {
        let _ = (io, k, message, bytes);
    }
    /// Called after subflow `k` changed to `path`.
    fn on_reroute<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        let _ = (io, k, path);
    }
    /// Handles the end of the flow.
    fn on_finish<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
}

/// A data packet or an ACK at a hop: the fields that a transport may read or write.
#[derive(Debug)]
pub struct Passing<'a, H> {
    /// Number of the flow.
    pub flow: FlowId,
    /// Number of the subflow.
    pub subflow: SubflowId,
    /// Data or ACK.
    pub kind: PacketKind,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Queueing delay of the packet at this hop, ns; 0 on arrival.
    pub wait_ns: Ns,
    /// ECN mark.
    pub ecn: &'a mut bool,
    /// The transport's part of the header.
    pub header: &'a mut H,
}

/// A transport's state machine at a link. Its timer numbers are below [`super::PRICE_TIMER`].
pub trait TransportHop<F: Transport>: Send {
    /// Handles the start of the simulation.
    fn on_start<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// Handles a change of the link's capacity; `port` has the new one.
    fn on_capacity(&mut self, port: &Port) {
        let _ = port;
    }
    /// Handles a failure or recovery in the network: see [`Hop::on_topology`](subak_core::scheme::Hop::on_topology).
    fn on_topology(&mut self, port: &Port) {
        let _ = port;
    }
    /// Handles a data packet or ACK before it enters the output queue.
    fn on_enqueue<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, packet: Passing<F::Header>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// Handles a data packet or ACK that leaves the queue onto the link.
    fn on_dequeue<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, packet: Passing<F::Header>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// Handles a control message that crosses the link.
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(
        &mut self,
        io: &mut Io<S>,
        message: &mut F::Ctl,
        visit: Visit,
        port: &Port,
    ) {
        let _ = (io, message, visit, port);
    }
    /// Handles an expired timer.
    fn on_timer<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, timer: u32, port: &Port) {
        let _ = (io, timer, port);
    }
}

/// A data packet at its receiver: the fields that a transport may read.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<H> {
    /// Number of the subflow.
    pub subflow: SubflowId,
    /// Number of the segment.
    pub segment: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Whether it has an ECN mark.
    pub ecn: bool,
    /// Time of the packet's departure from its source, ns.
    pub sent_ns: Ns,
    /// The transport's part of the header.
    pub header: H,
}

/// A transport's state machine at a receiver.
pub trait TransportSink<F: Transport>: Send {
    /// Handles a data packet: returns the header of its ACK, or withholds the ACK.
    fn on_data<S: Scheme<Ctl: Carries<F::Ctl>>>(
        &mut self,
        io: &mut Io<S>,
        packet: &Arrived<F::Header>,
    ) -> Reply<F::Header> {
        let _ = io;
        Reply::Ack(packet.header)
    }
    /// Handles a control message.
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, message: F::Ctl, bytes: u32) {
        let _ = (io, k, message, bytes);
    }
    /// Handles an expired timer.
    fn on_timer<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

impl<F: Transport> TransportHop<F> for () {}
impl<F: Transport> TransportSink<F> for () {}
