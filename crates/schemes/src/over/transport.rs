//! Transports: their parts at sender, links and receiver.

use super::{Optimizer, Over, Part, Wish};
use std::fmt::Debug;
use subak_core::scheme::{
    Ack, Around, Carries, Controller, Doubt, FlowInfo, Headers, Io, Loss, Lossless, PacketKind, Params, PathInfo, Port,
    Queue, Recovery, Reply, Scheme, SchemeKind, Visit,
};
use subak_core::{FlowId, InputError, Network, Ns, SubflowId};

/// A transport: its subflows' rates converge to those of their targets, which may change at any time.
pub trait Transport: Clone + Debug + Send + Sized + 'static {
    /// Name, parameters, source.
    const PART: Part;
    /// Whether links assign rates in packets of their own, or sources react to measurements.
    const KIND: SchemeKind = SchemeKind::Reactive;
    /// Factor by which it converges slower than Swift, to which the intervals of optimizers are sized.
    const SLOWDOWN: f64 = 1.0;
    /// Processor time of a packet-hop, in DCTCP's, for an estimate before a run.
    const PER_HOP: f64 = 1.3;
    /// Its input: target weights or target rates.
    type Wish: Wish;
    /// Its part of the header.
    type Header: Copy + Default + Debug + Send;
    /// Its control messages.
    type Ctl: Clone + Debug + Send;
    /// Its queue.
    type Queue<O: Optimizer<Wish = Self::Wish>>: Queue<Over<O, Self>>;
    /// Its sender's side.
    type Source: TransportSource<Self>;
    /// Its part of a hop.
    type Hop: TransportHop<Self>;
    /// Its receiver's side.
    type Sink: TransportSink<Self>;

    /// Warnings of a network for which its parameters are unsuitable.
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let _ = around;
        Vec::new()
    }
    /// The transport with `params`.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// Rules of lossless switches; `None` if switches drop.
    fn lossless(&self) -> Option<Lossless> {
        None
    }
    /// Bytes that its header adds to a full packet of the network, and to an ACK.
    fn headers(&self) -> Headers {
        Headers::default()
    }
    /// Loss detection and retransmission.
    fn recovery(&self) -> Recovery {
        Recovery::default()
    }
    /// Whether it recovers from lost control messages and from failed links.
    fn recovers(&self) -> bool {
        true
    }
    /// Share of a link for data, where control packets and ACKs have the rest; `None` where all packets share the capacity.
    fn data_share(&self) -> Option<f64> {
        None
    }
    /// The output queue before a link.
    fn queue<O: Optimizer<Wish = Self::Wish>>(&self, port: &Port) -> Self::Queue<O>;
    /// The sender of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The state at a link.
    fn hop(&self, port: &Port) -> Self::Hop;
    /// The receiver of `flow`.
    fn sink(&self, flow: &FlowInfo) -> Self::Sink;
    /// The central machine of `network`, for transports that have one.
    fn controller<S: Scheme<Ctl: Carries<Self::Ctl>>>(&self, network: &Network) -> Option<Box<dyn Controller<S>>> {
        let _ = network;
        None
    }
}

/// The sender's side of a transport. As [`subak_core::scheme::Source`], with a target for each subflow. Its timers are below
/// [`super::CENTRE_TIMER`].
pub trait TransportSource<F: Transport>: Send {
    /// The flow starts. Every subflow has a target already.
    fn on_start<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>);
    /// Sets the target of subflow `k`.
    fn wish<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, wish: F::Wish);
    /// The rate of subflow `k` as far as it is known, bit/s on the wire.
    fn rate_bps(&self, k: SubflowId) -> Option<f64>;
    /// The header of a data packet of subflow `k`, of `bytes` on the wire.
    fn header(&mut self, k: SubflowId, bytes: u32) -> F::Header {
        let _ = (k, bytes);
        F::Header::default()
    }
    /// An acknowledgement arrived.
    fn on_ack<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &F::Header) {
        let _ = (io, ack, header);
    }
    /// A control message arrived.
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, message: F::Ctl) {
        let _ = (io, k, message);
    }
    /// A timer is due.
    fn on_timer<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
    /// Segments were lost.
    fn on_loss<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, loss: &Loss) {
        let _ = (io, loss);
    }
    /// Subflow `k` is about to leave its path: messages sent now still use it.
    fn on_leave<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId) {
        let _ = (io, k);
    }
    /// A message returned by a path that subflow `k` has left. The reply uses that path again.
    fn on_left<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, message: F::Ctl, bytes: u32) {
        let _ = (io, k, message, bytes);
    }
    /// Subflow `k` has another path from now on.
    fn on_reroute<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        let _ = (io, k, path);
    }
    /// The flow has ended.
    fn on_finish<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
}

/// A data packet or acknowledgement at a hop, as a transport sees it.
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
    /// Its queueing delay at this hop, ns; 0 on arrival.
    pub wait_ns: Ns,
    /// ECN mark.
    pub ecn: &'a mut bool,
    /// The transport's part of the header.
    pub header: &'a mut H,
}

/// A transport's part of a hop. Its timers are below [`super::PRICE_TIMER`].
pub trait TransportHop<F: Transport>: Send {
    /// The network starts.
    fn on_start<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// The link has another capacity from now on: `port` has the new one.
    fn on_capacity(&mut self, port: &Port) {
        let _ = port;
    }
    /// As [`Hop::on_topology`](subak_core::scheme::Hop::on_topology).
    fn on_topology(&mut self, port: &Port) {
        let _ = port;
    }
    /// A data packet or acknowledgement is about to enter the output queue.
    fn on_enqueue<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, packet: Passing<F::Header>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// A data packet or acknowledgement is leaving the queue onto the link.
    fn on_dequeue<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, packet: Passing<F::Header>, port: &Port) {
        let _ = (io, packet, port);
    }
    /// A control message passes.
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(
        &mut self,
        io: &mut Io<S>,
        message: &mut F::Ctl,
        visit: Visit,
        port: &Port,
    ) {
        let _ = (io, message, visit, port);
    }
    /// A timer is due.
    fn on_timer<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, timer: u32, port: &Port) {
        let _ = (io, timer, port);
    }
}

/// A data packet that arrived, as a transport sees it.
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
    /// Departure from its source.
    pub sent_ns: Ns,
    /// The transport's part of the header.
    pub header: H,
}

/// A transport's part of a receiver.
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
    /// A control message arrived.
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, message: F::Ctl, bytes: u32) {
        let _ = (io, k, message, bytes);
    }
    /// A timer is due.
    fn on_timer<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

impl<F: Transport> TransportHop<F> for () {}
impl<F: Transport> TransportSink<F> for () {}
