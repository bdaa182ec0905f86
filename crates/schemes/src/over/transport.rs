//! Transports: their parts at sender, links and receiver.

use super::{Optimizer, Over, Part, Wish};
use std::fmt::Debug;
use subak_core::scheme::{
    Ack, Carries, Controller, FlowInfo, Headers, Io, Loss, Lossless, PacketKind, Params, PathInfo, Port, Queue,
    Recovery, Reply, Scheme, SchemeKind, Visit,
};
use subak_core::{FlowId, InputError, Network, Ns, SubflowId};

/// A transport: brings a flow's subflows to rates that follow from their wishes, which may change at any time.
pub trait Transport: Clone + Debug + Send + Sized + 'static {
    /// Name, parameters, source.
    const PART: Part;
    /// Whether links allot rates in packets of their own, or sources react to what they see.
    const KIND: SchemeKind = SchemeKind::Reactive;
    /// By how much it is slower to follow new wishes than Swift, for which the intervals of optimizers are made.
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

    /// The transport with `params`.
    fn new(params: &Params) -> Result<Self, InputError>;
    /// Whether switches lose nothing, and by which rules.
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
    /// Whether it comes right again after control messages were lost, or a link was down.
    fn recovers(&self) -> bool {
        true
    }
    /// The share of a link that it gives to data, where control packets and acknowledgements have the rest; `None` where
    /// all packets share all of it.
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

/// The sender's side of a transport. As [`subak_core::scheme::Source`], with a wish for each subflow. Its timers are below
/// [`super::CENTRE_TIMER`].
pub trait TransportSource<F: Transport>: Send {
    /// The flow starts. Every subflow has a wish already.
    fn on_start<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>);
    /// Subflow `k` has this wish from now on.
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
    /// Subflow `k` is about to take another path: messages sent now still take the old one.
    fn on_leave<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId) {
        let _ = (io, k);
    }
    /// A message came back by a path that subflow `k` has left. What is sent in answer takes that path again.
    fn on_left<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, message: F::Ctl, bytes: u32) {
        let _ = (io, k, message, bytes);
    }
    /// Subflow `k` takes another path from now on.
    fn on_reroute<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: SubflowId, path: &PathInfo) {
        let _ = (io, k, path);
    }
    /// The flow is done.
    fn on_finish<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
}

/// A data packet or acknowledgement at a hop, as a transport sees it.
#[derive(Debug)]
pub struct Passing<'a, H> {
    /// Whose.
    pub flow: FlowId,
    /// Which of the flow's subflows.
    pub subflow: SubflowId,
    /// Data or acknowledgement.
    pub kind: PacketKind,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Its queueing delay at this hop, ns; 0 on arrival.
    pub wait_ns: Ns,
    /// The mark of congestion.
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
    /// On which of the flow's subflows.
    pub subflow: SubflowId,
    /// Which segment.
    pub segment: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Whether it was marked on its way.
    pub ecn: bool,
    /// When it left its source.
    pub sent_ns: Ns,
    /// The transport's part of the header.
    pub header: H,
}

/// A transport's part of a receiver.
pub trait TransportSink<F: Transport>: Send {
    /// A data packet arrived: acknowledge it, with which header, or withhold the acknowledgement.
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
