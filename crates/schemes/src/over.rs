//! An optimizer over a fabric (NUMFabric, section 4): the optimizer says what each subflow wishes, from the prices of the
//! links; the fabric makes rates of the wishes.
//!
//! A wish is a [`Weight`] or a [`Rate`], by type. An optimizer has the kind that its equations give; a fabric has the kind
//! that it can follow. [`Over`] joins two of one kind, and the registry refuses the other pairs.
//!
//! An optimizer may have a centre: a central machine that sources tell of their flows and that hands out wishes. See
//! [`Centre`].
//!
//! A data packet sums up the prices of the links that it crosses, and counts these links. The acknowledgement takes both
//! back.

mod centre;

pub use centre::{Centre, RENEW_NS, Word};

use crate::queue::VirtualLength;
use centre::{Allocator, Told};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{
    Ack, Carries, Class, Controller, FlowInfo, Goal, Headers, Hop, Io, Kind, Loss, Lossless, Packet, PacketKind, Param,
    Params, PathInfo, Port, Queue, Recovery, Reply, Scheme, Settles, Sink, Source, To, Visit,
};
use subak_core::{Fault, FlowId, LinkId, Network, Ns, Utility};

/// What an optimizer says and a fabric follows.
pub trait Wish: Copy + Debug + Send + 'static {
    /// What it is, in a word.
    const KIND: &'static str;
}

/// A share: subflows at one bottleneck get rates in proportion to their weights. Positive and not far from 1, as the
/// weights that users give: links may sum them up in fixed point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight(pub f64);

impl Weight {
    /// The weight for a rate wished, bit/s: about 1 for 1 Gb/s. The unit is a power of two, so that nothing is rounded.
    #[inline]
    pub fn of_rate(bps: f64) -> Self {
        Weight(bps / f64::from(1u32 << 30))
    }
}

/// A rate on the wire, bit/s: positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

impl Wish for Weight {
    const KIND: &'static str = "weights";
}

impl Wish for Rate {
    const KIND: &'static str = "rates";
}

/// What an optimizer or a fabric says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Name in specs: `optimizer = "xwi"`, `fabric = "s-perc"`.
    pub name: &'static str,
    /// One line on what it is, which reads well before and after "over".
    pub about: &'static str,
    /// Paper and section.
    pub paper: &'static str,
    /// Its own parameters. One of the same name as the other half's must have the same unit and default: both halves read
    /// the one value that a spec gives.
    pub params: &'static [Param],
    /// Of an optimizer: what its wishes bring rates to, where the fabric follows them; [`Goal::Own`] stands for the
    /// fabric's own goal. Of a fabric of weights: [`Goal::MaxMin`] if it shares links by weight, [`Goal::Own`] if it
    /// promises nothing. Of a fabric of rates: [`Goal::Any`] if it sends at the rates wished.
    pub goal: Goal,
    /// How near its goal it comes, and how soon.
    pub settles: Settles,
}

/// A fabric: brings a flow's subflows to rates that follow from their wishes, which may change at any time.
pub trait Fabric: Clone + Debug + Send + Sized + 'static {
    /// Name, parameters, source.
    const PART: Part;
    /// Whether links allot rates in packets of their own, or sources react to what they see.
    const KIND: Kind = Kind::Reactive;
    /// By how much it is slower to follow new wishes than Swift, for which the intervals of optimizers are made.
    const SLOWDOWN: f64 = 1.0;
    /// What it follows.
    type Wish: Wish;
    /// Its part of the header.
    type Header: Copy + Default + Debug + Send;
    /// Its control messages.
    type Ctl: Clone + Debug + Send;
    /// Its queue.
    type Queue<O: Optimizer<Wish = Self::Wish>>: Queue<Over<O, Self>>;
    /// Its sender's side.
    type Source: FabricSource<Self>;
    /// Its part of a hop.
    type Hop: FabricHop<Self>;
    /// Its receiver's side.
    type Sink: FabricSink<Self>;

    /// The fabric with `params`.
    fn new(params: &Params) -> Result<Self, Fault>;
    /// Whether switches lose nothing, and by which rules.
    fn lossless(&self) -> Option<Lossless> {
        None
    }
    /// What its header adds to a full packet of the network, and to an acknowledgement.
    fn headers(&self) -> Headers {
        Headers::default()
    }
    /// How losses are noticed.
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
    /// The central machine of `network`, for fabrics that have one.
    fn controller<S: Scheme<Ctl: Carries<Self::Ctl>>>(&self, network: &Network) -> Option<Box<dyn Controller<S>>> {
        let _ = network;
        None
    }
}

/// The sender's side of a fabric. As [`Source`], with a wish for each subflow. Its timers are below [`CENTRE_TIMER`].
pub trait FabricSource<F: Fabric>: Send {
    /// The flow starts. Every subflow has a wish already.
    fn on_start<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>);
    /// Subflow `k` has this wish from now on.
    fn wish<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: u8, wish: F::Wish);
    /// The rate of subflow `k` as far as it is known, bit/s on the wire.
    fn rate_bps(&self, k: u8) -> Option<f64>;
    /// The header of a data packet of subflow `k`, of `bytes` on the wire.
    fn header(&mut self, k: u8, bytes: u32) -> F::Header {
        let _ = (k, bytes);
        F::Header::default()
    }
    /// An acknowledgement arrived.
    fn on_ack<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, ack: &Ack<S::Data>, header: &F::Header) {
        let _ = (io, ack, header);
    }
    /// A control message arrived.
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: u8, message: F::Ctl) {
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
    /// Subflow `k` takes another path from now on.
    fn on_reroute<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: u8, path: &PathInfo) {
        let _ = (io, k, path);
    }
    /// The flow is done.
    fn on_finish<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
}

/// A data packet or acknowledgement at a hop, as a fabric sees it.
#[derive(Debug)]
pub struct Passing<'a, H> {
    /// Whose.
    pub flow: FlowId,
    /// Which of the flow's subflows.
    pub subflow: u8,
    /// Data or acknowledgement.
    pub kind: PacketKind,
    /// Bytes on the wire.
    pub bytes: u32,
    /// How long it waited in this hop's queue, ns; 0 when it comes.
    pub wait_ns: Ns,
    /// The mark of congestion.
    pub ecn: &'a mut bool,
    /// The fabric's part of the header.
    pub header: &'a mut H,
}

/// A fabric's part of a hop. Its timers are below [`PRICE_TIMER`].
pub trait FabricHop<F: Fabric>: Send {
    /// The network starts.
    fn on_start<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>) {
        let _ = io;
    }
    /// The link has another capacity from now on: `port` has the new one.
    fn on_capacity(&mut self, port: &Port) {
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

/// A data packet that arrived, as a fabric sees it.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<H> {
    /// On which of the flow's subflows.
    pub subflow: u8,
    /// Which segment.
    pub segment: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Whether it was marked on its way.
    pub ecn: bool,
    /// When it left its source.
    pub sent_ns: Ns,
    /// The fabric's part of the header.
    pub header: H,
}

/// A fabric's part of a receiver.
pub trait FabricSink<F: Fabric>: Send {
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
    fn on_ctl<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, k: u8, message: F::Ctl, bytes: u32) {
        let _ = (io, k, message, bytes);
    }
    /// A timer is due.
    fn on_timer<S: Scheme<Ctl: Carries<F::Ctl>>>(&mut self, io: &mut Io<S>, timer: u32) {
        let _ = (io, timer);
    }
}

impl<F: Fabric> FabricHop<F> for () {}
impl<F: Fabric> FabricSink<F> for () {}

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
    /// Whether it has a centre, which its sources speak with.
    const CENTRAL: bool = false;

    /// The optimizer with `params`.
    fn new(params: &Params) -> Result<Self, Fault>;
    /// The same over a fabric that is `by` times slower: see [`Fabric::SLOWDOWN`].
    #[must_use]
    fn slowed(self, by: f64) -> Self {
        let _ = by;
        self
    }
    /// The share of what the fabric gives to data that it hands out.
    fn share(&self) -> f64 {
        1.0
    }
    /// Its centre, for a network with these links; asked for if [`Optimizer::CENTRAL`].
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
    /// The subflow's rate, bit/s, where the fabric knows it.
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
    fn wish(&self, k: u8) -> O::Wish;
    /// The flow has another weight from now on, and with it this utility.
    fn on_weight(&mut self, weight: f64, utility: &Arc<Utility>);
    /// The centre wishes this for subflow `k` from now on.
    fn on_wish(&mut self, k: u8, wish: O::Wish) {
        let _ = (k, wish);
    }
    /// What the centre is told of the flow: `flow` as it was when it started, or got another weight or path.
    fn tell(&self, now_ns: Ns, flow: &mut FlowInfo) {
        let _ = (now_ns, flow);
    }
    /// What its packets tell the links.
    fn note(&self, k: u8) -> O::Note {
        let _ = k;
        O::Note::default()
    }
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

/// The timer of the sources' and the controller's affairs with the centre.
pub const CENTRE_TIMER: u32 = u32::MAX - 1;

/// An optimizer over a fabric, as a scheme.
#[derive(Debug, Clone)]
pub struct Over<O, F> {
    optimizer: O,
    fabric: F,
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

impl<W: Wish, O: Optimizer<Wish = W>, F: Fabric<Wish = W>> Scheme for Over<O, F> {
    type Data = Header<F::Header, O::Note>;
    type Ctl = Word<F::Ctl, W>;
    type Queue = F::Queue<O>;
    type Source = OverSource<O, F>;
    type Hop = OverHop<O, F>;
    type Sink = OverSink<F>;

    fn new(params: &Params) -> Result<Self, Fault> {
        Ok(Over { optimizer: O::new(params)?.slowed(F::SLOWDOWN), fabric: F::new(params)? })
    }
    fn lossless(&self) -> Option<Lossless> {
        self.fabric.lossless()
    }
    fn headers(&self) -> Headers {
        self.fabric.headers()
    }
    fn recovery(&self) -> Recovery {
        self.fabric.recovery()
    }
    fn recovers(&self) -> bool {
        self.fabric.recovers()
    }
    fn data_share(&self) -> f64 {
        self.fabric.data_share().unwrap_or(1.0) * self.optimizer.share()
    }
    fn queue(&self, port: &Port) -> Self::Queue {
        self.fabric.queue(port)
    }
    fn source(&self, flow: &FlowInfo) -> OverSource<O, F> {
        OverSource {
            optimizer: self.optimizer.source(flow),
            fabric: self.fabric.source(flow),
            subflows: flow.paths.len() as u8,
            told: O::CENTRAL.then(|| Box::new(Told::new(flow))),
        }
    }
    fn hop(&self, port: &Port) -> OverHop<O, F> {
        OverHop {
            price: self.optimizer.price(port),
            fabric: self.fabric.hop(port),
            data_share: self.fabric.data_share(),
        }
    }
    fn sink(&self, flow: &FlowInfo) -> OverSink<F> {
        OverSink(self.fabric.sink(flow))
    }
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Self>>> {
        let fabric = self.fabric.controller(network);
        match self.optimizer.centre(network).filter(|_| O::CENTRAL) {
            Some(centre) => Some(Box::new(Allocator::new(centre, fabric, network))),
            None => fabric,
        }
    }
}

/// Both senders' sides.
pub struct OverSource<O: Optimizer, F: Fabric> {
    optimizer: O::Source,
    fabric: F::Source,
    subflows: u8,
    /// What the centre is told, where there is one.
    told: Option<Box<Told>>,
}

impl<W: Wish, O: Optimizer<Wish = W>, F: Fabric<Wish = W>> OverSource<O, F> {
    fn wish_all(&mut self, io: &mut Io<Over<O, F>>) {
        for k in 0..self.subflows {
            self.fabric.wish(io, k, self.optimizer.wish(k));
        }
    }

    /// Tells the centre of the flow.
    fn tell(&mut self, io: &mut Io<Over<O, F>>) {
        if let Some(told) = &self.told {
            let mut flow = told.flow.clone();
            self.optimizer.tell(io.now_ns, &mut flow);
            let bytes = centre::bytes(&flow);
            io.ctl(To::Controller, 0, Word::Here(Box::new(flow)), Class::Control, bytes);
        }
    }

    /// Tells the centre now, and again after a while: a word may be lost, and the centre may forget.
    fn tell_and_renew(&mut self, io: &mut Io<Over<O, F>>) {
        if self.told.as_ref().is_some_and(|told| !told.done) {
            self.tell(io);
            io.timer(CENTRE_TIMER, io.now_ns + RENEW_NS);
        }
    }
}

impl<W: Wish, O: Optimizer<Wish = W>, F: Fabric<Wish = W>> Source<Over<O, F>> for OverSource<O, F> {
    fn on_start(&mut self, io: &mut Io<Over<O, F>>) {
        self.optimizer.on_start(io.now_ns);
        self.wish_all(io);
        self.fabric.on_start(io);
        self.tell_and_renew(io);
    }

    #[inline]
    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Over<O, F>>, _remaining_bytes: u64) {
        packet.data.fabric = self.fabric.header(packet.subflow, packet.bytes);
        packet.data.note = self.optimizer.note(packet.subflow);
    }

    #[inline]
    fn on_ack(&mut self, io: &mut Io<Over<O, F>>, ack: &Ack<<Over<O, F> as Scheme>::Data>) {
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
        self.fabric.wish(io, k, self.optimizer.wish(k));
    }

    fn on_ctl(&mut self, io: &mut Io<Over<O, F>>, subflow: u8, message: Word<F::Ctl, W>) {
        match message {
            Word::Fabric(message) => self.fabric.on_ctl(io, subflow, message),
            Word::Wish(wish) if self.told.as_ref().is_some_and(|told| !told.done) => {
                self.optimizer.on_wish(subflow, wish);
                self.fabric.wish(io, subflow, self.optimizer.wish(subflow));
            }
            Word::Wish(_) | Word::Here(_) | Word::Gone => {}
        }
    }
    fn on_timer(&mut self, io: &mut Io<Over<O, F>>, timer: u32) {
        match timer {
            CENTRE_TIMER if O::CENTRAL => self.tell_and_renew(io),
            timer => self.fabric.on_timer(io, timer),
        }
    }
    fn on_loss(&mut self, io: &mut Io<Over<O, F>>, loss: &Loss) {
        self.fabric.on_loss(io, loss);
    }
    fn on_weight(&mut self, io: &mut Io<Over<O, F>>, weight: f64, utility: &Arc<Utility>) {
        self.optimizer.on_weight(weight, utility);
        self.wish_all(io);
        if let Some(told) = &mut self.told {
            (told.flow.weight, told.flow.utility) = (weight, Arc::clone(utility));
        }
        self.tell(io);
    }
    fn on_reroute(&mut self, io: &mut Io<Over<O, F>>, k: u8, path: &PathInfo, links: &[LinkId]) {
        self.fabric.on_reroute(io, k, path);
        if let Some(told) = &mut self.told {
            (told.flow.paths[k as usize], told.flow.links[k as usize]) = (*path, links.to_vec());
        }
        self.tell(io);
    }
    fn on_finish(&mut self, io: &mut Io<Over<O, F>>) {
        self.fabric.on_finish(io);
        if let Some(told) = &mut self.told {
            told.done = true;
            io.ctl(To::Controller, 0, Word::Gone, Class::Control, centre::WORD_BYTES);
        }
    }
}

/// A link's price beside the fabric's state.
pub struct OverHop<O: Optimizer, F: Fabric> {
    price: O::Price,
    fabric: F::Hop,
    data_share: Option<f64>,
}

#[inline]
fn passing<S: Scheme<Data = Header<H, N>>, H, N>(packet: &mut Packet<S>, wait_ns: Ns) -> Passing<'_, H> {
    Passing {
        flow: packet.flow,
        subflow: packet.subflow,
        kind: packet.kind,
        bytes: packet.bytes,
        wait_ns,
        ecn: &mut packet.ecn,
        header: &mut packet.data.fabric,
    }
}

impl<W: Wish, O: Optimizer<Wish = W>, F: Fabric<Wish = W>> Hop<Over<O, F>> for OverHop<O, F> {
    fn on_start(&mut self, io: &mut Io<Over<O, F>>) {
        if let Some(at_ns) = self.price.first_update_ns() {
            io.timer(PRICE_TIMER, at_ns);
        }
        self.fabric.on_start(io);
    }

    fn on_capacity(&mut self, port: &Port) {
        self.fabric.on_capacity(port);
    }

    #[inline]
    fn on_enqueue(&mut self, io: &mut Io<Over<O, F>>, packet: &mut Packet<Over<O, F>>, port: &Port) {
        let note = (packet.kind == PacketKind::Data).then_some(&packet.data.note);
        self.price.on_enqueue(io.now_ns, packet.bytes, note);
        self.fabric.on_enqueue(io, passing(packet, 0), port);
    }

    #[inline]
    fn on_dequeue(&mut self, io: &mut Io<Over<O, F>>, packet: &mut Packet<Over<O, F>>, port: &Port) {
        let data = packet.kind == PacketKind::Data;
        if data || self.data_share.is_none() {
            self.price.on_dequeue(io.now_ns, packet.bytes);
        }
        if data {
            packet.data.path_price += self.price.now();
            packet.data.path_len = packet.data.path_len.saturating_add(1);
        }
        let wait_ns = io.now_ns - packet.enqueued_ns;
        self.fabric.on_dequeue(io, passing(packet, wait_ns), port);
    }

    fn on_ctl(&mut self, io: &mut Io<Over<O, F>>, message: &mut Word<F::Ctl, W>, visit: Visit, port: &Port) {
        if let Word::Fabric(message) = message {
            self.fabric.on_ctl(io, message, visit, port);
        }
    }

    fn on_timer(&mut self, io: &mut Io<Over<O, F>>, timer: u32, port: &Port) {
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
pub struct OverSink<F: Fabric>(F::Sink);

impl<W: Wish, O: Optimizer<Wish = W>, F: Fabric<Wish = W>> Sink<Over<O, F>> for OverSink<F> {
    #[inline]
    fn on_data(&mut self, io: &mut Io<Over<O, F>>, packet: &Packet<Over<O, F>>) -> Reply<<Over<O, F> as Scheme>::Data> {
        let arrived = Arrived {
            subflow: packet.subflow,
            segment: packet.segment,
            bytes: packet.bytes,
            ecn: packet.ecn,
            sent_ns: packet.sent_ns,
            header: packet.data.fabric,
        };
        match self.0.on_data(io, &arrived) {
            Reply::Ack(fabric) => Reply::Ack(Header { fabric, ..packet.data }),
            Reply::Withhold => Reply::Withhold,
        }
    }
    fn on_ctl(&mut self, io: &mut Io<Over<O, F>>, subflow: u8, message: Word<F::Ctl, W>, bytes: u32) {
        if let Word::Fabric(message) = message {
            self.0.on_ctl(io, subflow, message, bytes);
        }
    }
    fn on_timer(&mut self, io: &mut Io<Over<O, F>>, timer: u32) {
        self.0.on_timer(io, timer);
    }
}
