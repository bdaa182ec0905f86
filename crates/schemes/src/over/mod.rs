//! An optimizer over a fabric (NUMFabric, section 4): the optimizer says what each subflow wishes, in bit/s, from the
//! prices of the links; the fabric makes rates of the wishes. Any optimizer runs over any fabric.
//!
//! - Fabrics of weighted max-min take a wish as a weight: [`crate::swift`], [`s_perc`]. [`paced`] takes it as the rate.
//! - Optimizers of one price a link: [`crate::xwi`] (equations 7 to 11), [`crate::dgd`] (14), [`crate::rcp_star`] (15, 16).
//!   [`given`] has none: the fabric alone.
//!
//! A data packet sums up the prices of the links it crosses and counts them; the acknowledgement takes both back.

pub mod given;
pub mod paced;
pub mod prices;
pub mod s_perc;

use crate::queue::VirtualLength;
use std::fmt::Debug;
use subak_core::scheme::{
    Ack, FlowInfo, Hop, Info, Io, Loss, Packet, PacketKind, Params, Port, Queue, Reply, Scheme, Sink, Source, Visit,
};
use subak_core::{Fault, Ns};

/// Which optimizer over which fabric, and the name that they have together.
pub trait Composition: Clone + Debug + Send + 'static {
    /// Name, parameters of both, source.
    const INFO: Info;
    /// The optimizer.
    type Optimizer: Optimizer;
    /// The fabric.
    type Fabric: Fabric;
}

/// A fabric: brings a flow's subflows to rates that follow from their wishes, which may change at any time.
pub trait Fabric: Clone + Debug + Send + Sized + 'static {
    /// Its part of the header.
    type Header: Copy + Default + Debug + Send;
    /// Its control messages.
    type Ctl: Clone + Debug + Send;
    /// Its queue.
    type Queue<C: Composition<Fabric = Self>>: Queue<Over<C>>;
    /// Its sender's side.
    type Source: FabricSource<Self>;
    /// Its part of a hop.
    type Hop: FabricHop<Self>;
    /// Its receiver's side.
    type Sink: FabricSink<Self>;

    /// The fabric with `params`.
    fn new(params: &Params) -> Result<Self, Fault>;
    /// The share of a link that it gives to data, where control packets and acknowledgements have the rest; `None` where
    /// all packets share all of it.
    fn data_share(&self) -> Option<f64> {
        None
    }
    /// The output queue before a link.
    fn queue<C: Composition<Fabric = Self>>(&self, port: &Port) -> Self::Queue<C>;
    /// The sender of `flow`.
    fn source(&self, flow: &FlowInfo) -> Self::Source;
    /// The state at a link.
    fn hop(&self, port: &Port) -> Self::Hop;
    /// The receiver of `flow`.
    fn sink(&self, flow: &FlowInfo) -> Self::Sink;
}

/// The sender's side of a fabric. As [`Source`], with a wish for each subflow.
pub trait FabricSource<F: Fabric>: Send {
    /// The flow starts.
    fn on_start<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>);
    /// Subflow `k` wishes `wish_bps`, positive, from now on.
    fn wish<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>, k: u8, wish_bps: f64);
    /// The rate of subflow `k` as far as it is known, bit/s on the wire.
    fn rate_bps(&self, k: u8) -> Option<f64>;
    /// The header of a data packet of subflow `k`, of `bytes` on the wire.
    fn header(&mut self, k: u8, bytes: u32) -> F::Header {
        let _ = (k, bytes);
        F::Header::default()
    }
    /// An acknowledgement arrived.
    fn on_ack<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &F::Header) {
        let _ = (io, ack, header);
    }
    /// A control message arrived.
    fn on_ctl<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>, k: u8, message: F::Ctl) {
        let _ = (io, k, message);
    }
    /// A timer is due.
    fn on_timer<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
    /// The flow is done.
    fn on_finish<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
}

/// A fabric's part of a hop. Timers are below [`PRICE_TIMER`].
pub trait FabricHop<F: Fabric>: Send {
    /// The link has another capacity from now on: `port` has the new one.
    fn on_capacity(&mut self, port: &Port) {
        let _ = port;
    }
    /// The network starts.
    fn on_start<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// A control message passes.
    fn on_ctl<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>, message: &mut F::Ctl, visit: Visit, port: &Port) {
        let _ = (io, message, visit, port);
    }
    /// A timer is due.
    fn on_timer<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>, timer: u32, port: &Port) {
        let _ = (io, timer, port);
    }
}

/// A fabric's part of a receiver.
pub trait FabricSink<F: Fabric>: Send {
    /// A data packet of subflow `k` arrived with `header`; what the acknowledgement carries.
    fn on_data(&mut self, now_ns: Ns, k: u8, header: F::Header) -> F::Header {
        let _ = (now_ns, k);
        header
    }
    /// A control message arrived.
    fn on_ctl<S: Scheme<Ctl = F::Ctl>>(&mut self, io: &mut Io<S>, k: u8, message: F::Ctl, bytes: u32) {
        let _ = (io, k, message, bytes);
    }
}

impl<F: Fabric> FabricHop<F> for () {}
impl<F: Fabric> FabricSink<F> for () {}

/// An optimizer: wishes at the source, a price at the link.
pub trait Optimizer: Clone + Debug + Send + 'static {
    /// What a source tells the links of the path in each data packet.
    type Note: Copy + Default + Debug + Send;
    /// Its sender's side.
    type Source: OptimizerSource<Self::Note>;
    /// A link's price.
    type Price: Price<Self::Note>;

    /// The optimizer with `params`.
    fn new(params: &Params) -> Result<Self, Fault>;
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
    /// The subflow's rate, bit/s, where the fabric knows it.
    pub rate_bps: Option<f64>,
    /// The packet's round trip, ns.
    pub rtt_ns: Ns,
    /// Bytes of the flow not acknowledged; `u64::MAX` for a flow without end.
    pub remaining_bytes: u64,
}

/// The sender's side of an optimizer.
pub trait OptimizerSource<N>: Send {
    /// The flow starts.
    fn on_start(&mut self, now_ns: Ns) {
        let _ = now_ns;
    }
    /// What subflow `k` wishes now, bit/s: positive.
    fn wish_bps(&self, k: u8) -> f64;
    /// What its packets tell the links.
    fn note(&self, k: u8) -> N;
    /// Feedback for subflow `k`.
    fn on_feedback(&mut self, k: u8, feedback: &Feedback) {
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
    /// A packet leaves onto the link, one of those that share what the fabric fills.
    fn on_dequeue(&mut self, now_ns: Ns, bytes: u32) {
        let _ = (now_ns, bytes);
    }
    /// The time of an update has come; when is the next, ns? The port's capacity is what the fabric fills of it.
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let _ = port;
        now_ns + 1
    }
}

/// The timer of price updates at a hop.
pub const PRICE_TIMER: u32 = u32::MAX;

/// An optimizer over a fabric, as a scheme.
#[derive(Debug, Clone)]
pub struct Over<C: Composition> {
    optimizer: C::Optimizer,
    fabric: C::Fabric,
}

/// What a data packet carries.
#[derive(Debug, Clone, Copy, Default)]
pub struct Header<H, N> {
    /// The fabric's part.
    pub fabric: H,
    /// Sum of the prices of the links crossed.
    pub path_price: f64,
    /// What the source tells the links.
    pub note: N,
    /// Links crossed.
    pub path_len: u8,
}

impl<H: VirtualLength, N> VirtualLength for Header<H, N> {
    #[inline]
    fn virtual_len(&self) -> f64 {
        self.fabric.virtual_len()
    }
}

type Note<C> = <<C as Composition>::Optimizer as Optimizer>::Note;
type FabricOf<C> = <C as Composition>::Fabric;

impl<C: Composition> Scheme for Over<C> {
    const INFO: Info = C::INFO;
    type Data = Header<<FabricOf<C> as Fabric>::Header, Note<C>>;
    type Ctl = <FabricOf<C> as Fabric>::Ctl;
    type Queue = <FabricOf<C> as Fabric>::Queue<C>;
    type Source = OverSource<C>;
    type Hop = OverHop<C>;
    type Sink = OverSink<C>;

    fn new(params: &Params) -> Result<Self, Fault> {
        Ok(Over { optimizer: C::Optimizer::new(params)?, fabric: C::Fabric::new(params)? })
    }
    fn queue(&self, port: &Port) -> Self::Queue {
        self.fabric.queue(port)
    }
    fn source(&self, flow: &FlowInfo) -> OverSource<C> {
        OverSource {
            optimizer: self.optimizer.source(flow),
            fabric: self.fabric.source(flow),
            subflows: flow.paths.len() as u8,
        }
    }
    fn hop(&self, port: &Port) -> OverHop<C> {
        OverHop {
            price: self.optimizer.price(port),
            fabric: self.fabric.hop(port),
            data_share: self.fabric.data_share(),
        }
    }
    fn sink(&self, flow: &FlowInfo) -> OverSink<C> {
        OverSink(self.fabric.sink(flow))
    }
}

/// Both senders' sides.
pub struct OverSource<C: Composition> {
    optimizer: <C::Optimizer as Optimizer>::Source,
    fabric: <C::Fabric as Fabric>::Source,
    subflows: u8,
}

impl<C: Composition> Source<Over<C>> for OverSource<C> {
    fn on_start(&mut self, io: &mut Io<Over<C>>) {
        self.optimizer.on_start(io.now_ns);
        for k in 0..self.subflows {
            self.fabric.wish(io, k, self.optimizer.wish_bps(k));
        }
        self.fabric.on_start(io);
    }

    #[inline]
    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Over<C>>, _remaining_bytes: u64) {
        packet.data.fabric = self.fabric.header(packet.subflow, packet.bytes);
        packet.data.note = self.optimizer.note(packet.subflow);
    }

    #[inline]
    fn on_ack(&mut self, io: &mut Io<Over<C>>, ack: &Ack<<Over<C> as Scheme>::Data>) {
        let k = ack.subflow;
        self.fabric.on_ack(io, ack, &ack.data.fabric);
        let feedback = Feedback {
            now_ns: io.now_ns,
            path_price: ack.data.path_price,
            path_len: ack.data.path_len,
            rate_bps: self.fabric.rate_bps(k),
            rtt_ns: ack.rtt_ns,
            remaining_bytes: ack.remaining_bytes,
        };
        self.optimizer.on_feedback(k, &feedback);
        self.fabric.wish(io, k, self.optimizer.wish_bps(k));
    }

    fn on_ctl(&mut self, io: &mut Io<Over<C>>, subflow: u8, message: <Over<C> as Scheme>::Ctl) {
        self.fabric.on_ctl(io, subflow, message);
    }
    fn on_timer(&mut self, io: &mut Io<Over<C>>, timer: u32) {
        self.fabric.on_timer(io, timer);
    }
    fn on_loss(&mut self, _io: &mut Io<Over<C>>, _loss: &Loss) {}
    fn on_finish(&mut self, io: &mut Io<Over<C>>) {
        self.fabric.on_finish(io);
    }
}

/// A link's price beside the fabric's state.
pub struct OverHop<C: Composition> {
    price: <C::Optimizer as Optimizer>::Price,
    fabric: <C::Fabric as Fabric>::Hop,
    data_share: Option<f64>,
}

impl<C: Composition> Hop<Over<C>> for OverHop<C> {
    fn on_start(&mut self, io: &mut Io<Over<C>>) {
        if let Some(at_ns) = self.price.first_update_ns() {
            io.timer(PRICE_TIMER, at_ns);
        }
        self.fabric.on_start(io);
    }

    fn on_capacity(&mut self, port: &Port) {
        self.fabric.on_capacity(port);
    }

    #[inline]
    fn on_enqueue(&mut self, now_ns: Ns, packet: &mut Packet<Over<C>>, _port: &Port) {
        let note = (packet.kind == PacketKind::Data).then_some(&packet.data.note);
        self.price.on_enqueue(now_ns, packet.bytes, note);
    }

    #[inline]
    fn on_dequeue(&mut self, now_ns: Ns, packet: &mut Packet<Over<C>>, _port: &Port) {
        let data = packet.kind == PacketKind::Data;
        if data || self.data_share.is_none() {
            self.price.on_dequeue(now_ns, packet.bytes);
        }
        if data {
            packet.data.path_price += self.price.now();
            packet.data.path_len = packet.data.path_len.saturating_add(1);
        }
    }

    fn on_ctl(&mut self, io: &mut Io<Over<C>>, message: &mut <Over<C> as Scheme>::Ctl, visit: Visit, port: &Port) {
        self.fabric.on_ctl(io, message, visit, port);
    }

    fn on_timer(&mut self, io: &mut Io<Over<C>>, timer: u32, port: &Port) {
        if timer == PRICE_TIMER {
            let usable = Port { capacity_bps: port.capacity_bps * self.data_share.unwrap_or(1.0), ..*port };
            let next_ns = self.price.update(io.now_ns, &usable);
            io.timer(PRICE_TIMER, next_ns);
        } else {
            self.fabric.on_timer(io, timer, port);
        }
    }
}

/// The fabric's receiver; an optimizer needs none.
pub struct OverSink<C: Composition>(<C::Fabric as Fabric>::Sink);

impl<C: Composition> Sink<Over<C>> for OverSink<C> {
    #[inline]
    fn on_data(&mut self, io: &mut Io<Over<C>>, packet: &Packet<Over<C>>) -> Reply<<Over<C> as Scheme>::Data> {
        let fabric = self.0.on_data(io.now_ns, packet.subflow, packet.data.fabric);
        Reply::Ack(Header { fabric, ..packet.data })
    }
    fn on_ctl(&mut self, io: &mut Io<Over<C>>, subflow: u8, message: <Over<C> as Scheme>::Ctl, bytes: u32) {
        self.0.on_ctl(io, subflow, message, bytes);
    }
}
