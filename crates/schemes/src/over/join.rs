//! [`Over`]: an optimizer over a transport, as a scheme.

use super::centre::{self, Allocator, Announcement, RENEW_NS};
use super::handshake::{Handshake, SYN_BYTES, SYN_TIMER, Syn};
use super::{
    Arrived, CENTRE_TIMER, Feedback, Optimizer, OptimizerSource, Over, PRICE_TIMER, PairMessage, Passing, Price,
    Transport, TransportHop, TransportSink, TransportSource, Weight, Wish,
};
use crate::queue::{VirtualLength, Weighed};
use std::any::TypeId;
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{
    Ack, Around, Class, Controller, Doubt, FlowInfo, Hop, Io, Load, Loss, Packet, PacketKind, Params, PathInfo, Port,
    Reply, Rules, Scheme, SimulationCost, Sink, Source, To, Visit,
};
use subak_core::{InputError, LinkId, Network, Ns, SubflowId, Utility};

/// Header of a data packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct OverHeader<H, N> {
    /// The transport's header.
    pub transport: H,
    /// Sum of the prices of the links crossed.
    pub path_price: f64,
    /// Data from the optimizer's source for the links.
    pub note: N,
    /// Number of links crossed.
    pub path_len: u8,
}

impl<O: Optimizer, F: Transport> Over<O, F> {
    /// Joins `optimizer` and `transport`.
    pub fn of(optimizer: O, transport: F) -> Self {
        Over { optimizer: optimizer.slowed(F::SLOWDOWN), transport }
    }
}

impl<H: VirtualLength, N> VirtualLength for OverHeader<H, N> {
    #[inline]
    fn virtual_len(&self) -> f64 {
        self.transport.virtual_len()
    }
}

impl<H: Weighed, N> Weighed for OverHeader<H, N> {
    #[inline]
    fn weight(&self) -> f64 {
        self.transport.weight()
    }
}

impl<W: Wish, O: Optimizer<Wish = W>, F: Transport<Wish = W>> Scheme for Over<O, F> {
    type Data = OverHeader<F::Header, O::Note>;
    type Ctl = PairMessage<F::Ctl, W>;
    type Queue = F::Queue<O>;
    type Source = OverSource<O, F>;
    type Hop = OverHop<O, F>;
    type Sink = OverSink<F>;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Over::of(O::new(params)?, F::new(params)?))
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let mut doubts = self.optimizer.doubts(around);
        doubts.extend(self.transport.doubts(around));
        doubts
    }
    /// The transport's rules. The optimizer may leave part of the capacity for data free, and prices add to the cost.
    fn rules(&self) -> Rules {
        let rules = self.transport.rules();
        Rules { data_share: Some(rules.share() * self.optimizer.share()), per_hop: rules.per_hop + O::PER_HOP, ..rules }
    }
    fn sends_ctl(&self) -> bool {
        TypeId::of::<F::Ctl>() != TypeId::of::<()>() || self.optimizer.is_central() || self.optimizer.has_handshake()
    }
    /// Simulation cost per packet and hop of the transport and of the prices, and of the links' price updates.
    fn work(&self, load: &Load) -> SimulationCost {
        let interval_ns = self.optimizer.interval_ns((load.rtt_s * 1e9).round() as Ns);
        let updates = interval_ns.map_or(0.0, |ns| load.links * load.busy_s * 1e9 / ns as f64);
        SimulationCost { timers: updates, ..SimulationCost::per_hop(self.rules().per_hop) }
    }
    fn queue(&self, port: &Port) -> Self::Queue {
        self.transport.queue(port)
    }
    /// The sender of `flow`. A flow demands no more than the top of its bandwidth function: transports that fill links
    /// by weights would give it more.
    fn source(&self, flow: &FlowInfo) -> OverSource<O, F> {
        let within_top;
        let flow = match flow.utility.top_bps() {
            top_bps if top_bps < flow.demand_bps => {
                within_top = FlowInfo { demand_bps: top_bps, ..flow.clone() };
                &within_top
            }
            _ => flow,
        };
        OverSource {
            optimizer: self.optimizer.source(flow),
            transport: self.transport.source(flow),
            subflows: flow.paths.len() as u8,
            factor: if O::WEIGHTS_OF_RATES { Weight::factor(flow.line_rate_bps) } else { 1.0 },
            told: self.optimizer.is_central().then(|| Box::new(Announcement::new(flow))),
            handshake: self.optimizer.has_handshake().then(|| Box::new(Handshake::new(flow))),
        }
    }
    fn hop(&self, port: &Port) -> OverHop<O, F> {
        OverHop {
            price: self.optimizer.price(port),
            transport: self.transport.hop(port),
            data_share: self.transport.rules().data_share,
        }
    }
    fn sink(&self, flow: &FlowInfo) -> OverSink<F> {
        OverSink(self.transport.sink(flow))
    }
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Self>>> {
        let transport = self.transport.controller(network);
        match self.optimizer.centre(network).filter(|_| self.optimizer.is_central()) {
            Some(centre) => Some(Box::new(Allocator::new(centre, transport, network))),
            None => transport,
        }
    }
}

/// Sender of a flow, for the optimizer and the transport.
pub struct OverSource<O: Optimizer, F: Transport> {
    optimizer: O::Source,
    transport: F::Source,
    subflows: u8,
    /// Factor of target weights.
    factor: f64,
    /// Message to the controller, if the optimizer is central.
    told: Option<Box<Announcement>>,
    /// The handshake, if the flow has one that is not complete: the transport has not started.
    handshake: Option<Box<Handshake>>,
}

impl<W: Wish, O: Optimizer<Wish = W>, F: Transport<Wish = W>> OverSource<O, F> {
    #[inline]
    fn wish(&mut self, io: &mut Io<Over<O, F>>, k: SubflowId) {
        self.transport.wish(io, k, self.optimizer.wish(k).times(self.factor));
    }

    fn wish_all(&mut self, io: &mut Io<Over<O, F>>) {
        for k in (0..self.subflows).map(SubflowId) {
            self.wish(io, k);
        }
    }

    /// Sends the SYNs that have no answer, now and periodically.
    fn send_syns(&self, io: &mut Io<Over<O, F>>) {
        let Some(handshake) = &self.handshake else { return };
        for &k in &handshake.open {
            let syn = Syn { sent_ns: io.now_ns, ..Syn::default() };
            io.ctl(To::Sink, k, PairMessage::Syn(Box::new(syn)), Class::Low, SYN_BYTES);
        }
        io.timer(SYN_TIMER, io.now_ns + handshake.repeat_ns);
    }

    /// Handles the answer to a SYN of subflow `k`. The transport starts when all subflows have one.
    fn on_answer(&mut self, io: &mut Io<Over<O, F>>, k: SubflowId, syn: &Syn) {
        let Some(handshake) = &mut self.handshake else { return };
        if !handshake.answer(k) {
            return;
        }
        let feedback = Feedback {
            now_ns: io.now_ns,
            path_price: syn.path_price,
            path_len: syn.path_len,
            rate_bps: None,
            rtt_ns: io.now_ns - syn.sent_ns,
            remaining_bytes: handshake.size_bytes,
        };
        self.optimizer.on_feedback(k, &feedback);
        let Some(done) = self.handshake.take_if(|handshake| handshake.open.is_empty()) else { return };
        self.wish_all(io);
        self.transport.on_start(io);
        for (k, path) in &done.rerouted {
            self.transport.on_reroute(io, *k, path);
        }
    }

    /// Announces the flow to the controller.
    fn tell(&mut self, io: &mut Io<Over<O, F>>) {
        if let Some(told) = &self.told {
            let mut flow = told.flow.clone();
            self.optimizer.tell(io.now_ns, &mut flow);
            let bytes = centre::bytes(&flow);
            io.ctl(To::Controller, SubflowId(0), PairMessage::Here(Box::new(flow)), Class::Control, bytes);
        }
    }

    /// Announces the flow to the controller now, and renews the announcement periodically: messages may be lost.
    fn tell_and_renew(&mut self, io: &mut Io<Over<O, F>>) {
        if self.told.as_ref().is_some_and(|told| !told.done) {
            self.tell(io);
            io.timer(CENTRE_TIMER, io.now_ns + RENEW_NS);
        }
    }
}

impl<W: Wish, O: Optimizer<Wish = W>, F: Transport<Wish = W>> Source<Over<O, F>> for OverSource<O, F> {
    fn on_start(&mut self, io: &mut Io<Over<O, F>>) {
        self.optimizer.on_start(io.now_ns);
        if self.handshake.is_some() {
            self.send_syns(io);
        } else {
            self.wish_all(io);
            self.transport.on_start(io);
        }
        self.tell_and_renew(io);
    }

    #[inline]
    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Over<O, F>>, _remaining_bytes: u64) {
        packet.data.transport = self.transport.header(packet.subflow, packet.bytes);
        packet.data.note = self.optimizer.note(packet.subflow);
    }

    #[inline]
    fn on_ack(&mut self, io: &mut Io<Over<O, F>>, ack: &Ack<<Over<O, F> as Scheme>::Data>) {
        let k = ack.subflow;
        self.transport.on_ack(io, ack, &ack.data.transport);
        let feedback = Feedback {
            now_ns: io.now_ns,
            path_price: ack.data.path_price,
            path_len: ack.data.path_len,
            rate_bps: self.transport.rate_bps(k),
            rtt_ns: ack.rtt_ns,
            remaining_bytes: ack.remaining_bytes,
        };
        self.optimizer.on_feedback(k, &feedback);
        self.wish(io, k);
    }

    fn on_ctl(&mut self, io: &mut Io<Over<O, F>>, subflow: SubflowId, message: PairMessage<F::Ctl, W>) {
        match message {
            PairMessage::Transport(message) => self.transport.on_ctl(io, subflow, message),
            PairMessage::Wish(wish) if self.told.as_ref().is_some_and(|told| !told.done) => {
                self.optimizer.on_wish(subflow, wish);
                self.wish(io, subflow);
            }
            PairMessage::Syn(syn) => self.on_answer(io, subflow, &syn),
            PairMessage::Wish(_) | PairMessage::Here(_) | PairMessage::Gone => {}
        }
    }
    fn on_timer(&mut self, io: &mut Io<Over<O, F>>, timer: u32) {
        match timer {
            CENTRE_TIMER if self.told.is_some() => self.tell_and_renew(io),
            SYN_TIMER => self.send_syns(io),
            timer => self.transport.on_timer(io, timer),
        }
    }
    fn on_loss(&mut self, io: &mut Io<Over<O, F>>, loss: &Loss) {
        self.transport.on_loss(io, loss);
    }
    fn on_weight(&mut self, io: &mut Io<Over<O, F>>, weight: f64, utility: &Arc<Utility>) {
        self.optimizer.on_weight(weight, utility);
        self.wish_all(io);
        if let Some(told) = &mut self.told {
            (told.flow.weight, told.flow.utility) = (weight, Arc::clone(utility));
        }
        self.tell(io);
    }
    fn on_leave(&mut self, io: &mut Io<Over<O, F>>, k: SubflowId) {
        if self.handshake.is_none() {
            self.transport.on_leave(io, k);
        }
    }
    fn on_left(&mut self, io: &mut Io<Over<O, F>>, k: SubflowId, message: PairMessage<F::Ctl, W>, bytes: u32) {
        match message {
            PairMessage::Transport(message) => self.transport.on_left(io, k, message, bytes),
            PairMessage::Syn(syn) => self.on_answer(io, k, &syn),
            PairMessage::Here(_) | PairMessage::Gone | PairMessage::Wish(_) => {}
        }
    }
    fn on_reroute(&mut self, io: &mut Io<Over<O, F>>, k: SubflowId, path: &PathInfo, links: &[LinkId]) {
        match &mut self.handshake {
            Some(handshake) => handshake.rerouted.push((k, *path)),
            None => self.transport.on_reroute(io, k, path),
        }
        if let Some(told) = &mut self.told {
            (told.flow.paths[k], told.flow.links[k]) = (*path, links.to_vec());
        }
        self.tell(io);
    }
    fn on_finish(&mut self, io: &mut Io<Over<O, F>>) {
        if self.handshake.take().is_none() {
            self.transport.on_finish(io);
        }
        if let Some(told) = &mut self.told {
            told.done = true;
            io.ctl(To::Controller, SubflowId(0), PairMessage::Gone, Class::Control, centre::WORD_BYTES);
        }
    }
}

/// State of the optimizer and the transport at a link.
pub struct OverHop<O: Optimizer, F: Transport> {
    price: O::Price,
    transport: F::Hop,
    data_share: Option<f64>,
}

#[inline]
fn passing<S: Scheme<Data = OverHeader<H, N>>, H, N>(packet: &mut Packet<S>, wait_ns: Ns) -> Passing<'_, H> {
    Passing {
        flow: packet.flow,
        subflow: packet.subflow,
        kind: packet.kind,
        bytes: packet.bytes,
        wait_ns,
        ecn: &mut packet.ecn,
        header: &mut packet.data.transport,
    }
}

impl<W: Wish, O: Optimizer<Wish = W>, F: Transport<Wish = W>> Hop<Over<O, F>> for OverHop<O, F> {
    fn has_state(&self) -> bool {
        size_of::<O::Price>() > 0 || size_of::<F::Hop>() > 0
    }
    fn on_start(&mut self, io: &mut Io<Over<O, F>>) {
        if let Some(at_ns) = self.price.first_update_ns() {
            io.timer(PRICE_TIMER, at_ns);
        }
        self.transport.on_start(io);
    }

    fn on_capacity(&mut self, port: &Port) {
        self.transport.on_capacity(port);
    }
    fn on_topology(&mut self, port: &Port) {
        self.transport.on_topology(port);
    }

    #[inline]
    fn on_enqueue(&mut self, io: &mut Io<Over<O, F>>, packet: &mut Packet<Over<O, F>>, port: &Port) {
        let note = (packet.kind == PacketKind::Data).then_some(&packet.data.note);
        self.price.on_enqueue(io.now_ns, packet.bytes, note);
        self.transport.on_enqueue(io, passing(packet, 0), port);
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
        self.transport.on_dequeue(io, passing(packet, wait_ns), port);
    }

    fn on_ctl(&mut self, io: &mut Io<Over<O, F>>, message: &mut PairMessage<F::Ctl, W>, visit: Visit, port: &Port) {
        match message {
            PairMessage::Transport(message) => self.transport.on_ctl(io, message, visit, port),
            PairMessage::Syn(syn) if visit.forward => {
                syn.path_price += self.price.now();
                syn.path_len = syn.path_len.saturating_add(1);
            }
            PairMessage::Syn(_) | PairMessage::Here(_) | PairMessage::Gone | PairMessage::Wish(_) => {}
        }
    }

    fn on_timer(&mut self, io: &mut Io<Over<O, F>>, timer: u32, port: &Port) {
        if timer == PRICE_TIMER {
            let usable = Port { capacity_bps: port.capacity_bps * self.data_share.unwrap_or(1.0), ..*port };
            let next_ns = self.price.update(io.now_ns, &usable);
            io.timer(PRICE_TIMER, next_ns);
        } else {
            self.transport.on_timer(io, timer, port);
        }
    }
}

/// The transport's receiver; an optimizer needs none.
pub struct OverSink<F: Transport>(F::Sink);

impl<W: Wish, O: Optimizer<Wish = W>, F: Transport<Wish = W>> Sink<Over<O, F>> for OverSink<F> {
    #[inline]
    fn on_data(&mut self, io: &mut Io<Over<O, F>>, packet: &Packet<Over<O, F>>) -> Reply<<Over<O, F> as Scheme>::Data> {
        let arrived = Arrived {
            subflow: packet.subflow,
            segment: packet.segment(),
            bytes: packet.bytes,
            ecn: packet.ecn,
            sent_ns: packet.sent_ns,
            header: packet.data.transport,
        };
        match self.0.on_data(io, &arrived) {
            Reply::Ack(transport) => Reply::Ack(OverHeader { transport, ..packet.data }),
            Reply::Withhold => Reply::Withhold,
        }
    }
    fn on_ctl(&mut self, io: &mut Io<Over<O, F>>, subflow: SubflowId, message: PairMessage<F::Ctl, W>, bytes: u32) {
        match message {
            PairMessage::Transport(message) => self.0.on_ctl(io, subflow, message, bytes),
            PairMessage::Syn(_) => io.ctl(To::Source, subflow, message, Class::Low, bytes),
            PairMessage::Here(_) | PairMessage::Gone | PairMessage::Wish(_) => {}
        }
    }
    fn on_timer(&mut self, io: &mut Io<Over<O, F>>, timer: u32) {
        self.0.on_timer(io, timer);
    }
}
