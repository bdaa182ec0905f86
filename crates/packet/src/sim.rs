//! The kernel: the event loop, and packets on their way through queues and links. What happens at a flow's two ends
//! is in `ends.rs`.

use crate::event::{Event, Who};
use crate::flow::{FlowState, Subflow};
use crate::port::PortState;
use crate::wheel::Wheel;
use hdrhistogram::Histogram;
use subak_core::driver::{Injected, Kinds, LinkChange, PacketSizes};
use subak_core::rng::Stream;
use subak_core::scheme::{
    Ask, Controller, Hop, Io, Packet, PacketKind, Pop, Port, Queue, Scheme, Sink, Slab, Source, Visit,
};
use subak_core::{LinkId, Network, Ns};

/// A rule by which packets are lost.
struct LossRule {
    kinds: Kinds,
    links: Option<Vec<LinkId>>,
    probability: f64,
    from_ns: Ns,
    until_ns: Ns,
}

/// A simulation of one scheme on one network.
pub struct Sim<S: Scheme> {
    pub(crate) scheme: S,
    pub(crate) sizes: PacketSizes,
    pub(crate) now_ns: Ns,
    pub(crate) wheel: Wheel<Event>,
    pub(crate) slab: Slab<S>,
    pub(crate) ports: Vec<PortState<S>>,
    /// Links of route `r` are `route_links[route_ptr[r]..route_ptr[r + 1]]`.
    pub(crate) route_ptr: Vec<u32>,
    pub(crate) route_links: Vec<LinkId>,
    pub(crate) flows: Vec<FlowState<S>>,
    pub(crate) subs: Vec<Subflow>,
    pub(crate) io: Io<S>,
    pub(crate) scratch: Vec<Ask<S>>,
    pub(crate) controller: Option<Box<dyn Controller<S>>>,
    dropped: Vec<u32>,
    losses: Vec<LossRule>,
    loss_rng: Stream,
    has_downs: bool,
    link_changes: Vec<(Ns, LinkId, LinkChange)>,
    /// Flows neither finished nor stopped.
    pub(crate) open_flows: usize,
    /// Flows with a size that have not finished.
    pub(crate) unfinished: usize,
    pub(crate) waits: Histogram<u64>,
    pub(crate) packet_hops: u64,
    pub(crate) events: u64,
}

impl<S: Scheme> Sim<S> {
    /// An idle network, its links' machines started.
    pub fn new(scheme: S, network: &Network, sizes: PacketSizes, faults: &[Injected], seed: u64) -> Self {
        let rtt_ns = crate::sizing::longest_rtt_ns(network, sizes);
        let twins = network.twins();
        let ports = network.links().iter().enumerate().map(|(l, link)| {
            let port = Port {
                link: l as LinkId,
                capacity_bps: link.capacity_bps,
                delay_ns: link.delay_ns,
                buffer_bytes: link
                    .buffer_bytes
                    .unwrap_or_else(|| crate::sizing::default_buffer_bytes(link.capacity_bps)),
                mtu_bytes: sizes.mtu_bytes,
                rtt_ns,
                queued_bytes: 0,
                queued_packets: 0,
            };
            PortState::new(&scheme, port, twins[l])
        });
        let mut sim = Sim {
            ports: ports.collect(),
            scheme,
            sizes,
            now_ns: 0,
            wheel: Wheel::new(crate::sizing::bucket_shift(network)),
            slab: Slab::default(),
            route_ptr: vec![0],
            route_links: Vec::new(),
            flows: Vec::new(),
            subs: Vec::new(),
            io: Io::default(),
            scratch: Vec::new(),
            controller: None,
            dropped: Vec::new(),
            losses: Vec::new(),
            loss_rng: Stream::new(seed, "loss"),
            has_downs: false,
            link_changes: Injected::link_changes(faults),
            open_flows: 0,
            unfinished: 0,
            // Bounds are needed: recording saturates rather than grow. 2^40 ns is some 18 minutes.
            waits: Histogram::new_with_bounds(1, 1 << 40, 2).expect("two digits and a proper range"),
            packet_hops: 0,
            events: 0,
        };
        for fault in faults {
            sim.inject(fault);
        }
        for (k, &(at_ns, ..)) in sim.link_changes.iter().enumerate() {
            sim.wheel.push(at_ns, Event::LinkChange(k as u32));
        }
        for link in 0..sim.ports.len() as LinkId {
            sim.ports[link as usize].hop.on_start(&mut sim.io);
            sim.carry_out(Who::Hop(link));
        }
        sim.controller = sim.scheme.controller(network);
        if let Some(controller) = &mut sim.controller {
            controller.on_start(&mut sim.io);
            sim.carry_out(Who::Controller);
        }
        sim
    }

    fn inject(&mut self, fault: &Injected) {
        match fault.clone() {
            Injected::Loss { kinds, links, probability, from_ns, until_ns } => {
                self.losses.push(LossRule { kinds, links, probability, from_ns, until_ns });
            }
            Injected::Down { .. } => self.has_downs = true,
            Injected::Capacity { .. } => {}
        }
    }

    /// Handles events up to `until_ns`, or until `done` says so.
    pub(crate) fn run(&mut self, until_ns: Ns, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let Some((at_ns, event)) = self.wheel.pop(until_ns) else {
                self.set_now(self.now_ns.max(until_ns));
                return;
            };
            self.set_now(at_ns);
            self.events += 1;
            self.warm();
            self.handle(event);
        }
    }

    /// The one place where time goes on.
    #[inline]
    fn set_now(&mut self, now_ns: Ns) {
        self.now_ns = now_ns;
        self.io.now_ns = now_ns;
    }

    /// Reads what the coming events name: misses of the cache overlap so, while each would be waited for by itself.
    #[inline]
    fn warm(&self) {
        let mut read = 0;
        for event in self.wheel.coming() {
            if let Event::Arrive(packet, link) | Event::Wake(link, packet) = event {
                read ^= self.slab.get(packet).map_or(0, |p| p.hop) ^ u16::from(self.ports[link as usize].wakes);
            }
        }
        std::hint::black_box(read);
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(packet, _) => self.arrive(packet),
            Event::Wake(link, _) => self.wake(link),
            Event::Pace(sub) => self.on_pace(sub),
            Event::Timeout(sub) => self.on_timeout(sub),
            Event::Start(flow) => self.start(flow),
            Event::Stop(flow) => self.stop(flow),
            Event::SourceTimer(flow, timer) => {
                self.flows[flow as usize].source.on_timer(&mut self.io, timer);
                self.carry_out(Who::Source(flow));
                self.send_all(flow);
            }
            Event::SinkTimer(flow, timer) => {
                self.flows[flow as usize].sink.on_timer(&mut self.io, timer);
                self.carry_out(Who::Sink(flow));
            }
            Event::HopTimer(link, timer) => {
                let p = &mut self.ports[link as usize];
                p.refresh();
                p.hop.on_timer(&mut self.io, timer, &p.port);
                self.carry_out(Who::Hop(link));
            }
            Event::ControllerTimer(timer) => {
                if let Some(controller) = &mut self.controller {
                    controller.on_timer(&mut self.io, timer);
                }
                self.carry_out(Who::Controller);
            }
            Event::LinkChange(k) => {
                let (_, link, change) = self.link_changes[k as usize];
                self.change(link, change);
            }
        }
    }

    fn change(&mut self, link: LinkId, change: LinkChange) {
        let p = &mut self.ports[link as usize];
        match change {
            LinkChange::Down => {
                p.held_down += 1;
                p.down_ns = Some(self.now_ns);
            }
            LinkChange::Up => {
                p.held_down -= 1;
                if p.held_down == 0 && !p.wakes {
                    p.wakes = true;
                    self.wheel.push(self.now_ns.max(p.serializer.free_ns()), Event::Wake(link, 0));
                }
            }
            LinkChange::Capacity(capacity_bps) => {
                p.serializer.resize(capacity_bps);
                p.port.capacity_bps = capacity_bps;
                p.refresh();
                p.hop.on_capacity(&p.port);
            }
        }
    }

    /// Sends the packet on its way along its route from the first link.
    #[inline]
    pub(crate) fn launch(&mut self, packet: Packet<S>) {
        let first = self.route_links[self.route_ptr[packet.route as usize] as usize];
        let id = self.slab.insert(packet);
        self.enqueue(first, id);
    }

    /// A packet comes to the queue before `link`.
    pub(crate) fn enqueue(&mut self, link: LinkId, id: u32) {
        let now_ns = self.now_ns;
        let packet = &mut self.slab[id];
        packet.enqueued_ns = now_ns;
        if packet.kind == PacketKind::Ctl {
            self.visit_forward(link, id);
        } else {
            let p = &mut self.ports[link as usize];
            p.refresh();
            p.hop.on_enqueue(&mut self.io, packet, &p.port);
            if self.io.is_asked() {
                self.carry_out(Who::Hop(link));
            }
        }
        let p = &mut self.ports[link as usize];
        p.queue.push(now_ns, id, &mut self.slab, &mut self.dropped);
        p.view.peak_queued_bytes = p.view.peak_queued_bytes.max(p.queue.bytes());
        if !self.dropped.is_empty() {
            self.account_drops(link);
        }
        let p = &mut self.ports[link as usize];
        if p.wakes || p.held_down > 0 {
            return;
        }
        let free_ns = p.serializer.free_ns();
        if free_ns <= now_ns {
            self.serve(link);
        } else {
            p.wakes = true;
            self.wheel.push(free_ns, Event::Wake(link, id));
        }
    }

    fn wake(&mut self, link: LinkId) {
        let p = &mut self.ports[link as usize];
        p.wakes = false;
        if p.held_down == 0 {
            self.serve(link);
        }
    }

    /// The link is free: puts the next packet on it.
    #[inline]
    fn serve(&mut self, link: LinkId) {
        let now_ns = self.now_ns;
        let p = &mut self.ports[link as usize];
        let popped = p.queue.pop(now_ns, &mut self.slab, &mut self.dropped);
        match popped {
            Pop::Packet(id) => {
                let packet = &mut self.slab[id];
                packet.waited_ns += now_ns - packet.enqueued_ns;
                if packet.kind != PacketKind::Ctl {
                    p.refresh();
                    p.hop.on_dequeue(&mut self.io, packet, &p.port);
                }
                let bytes = packet.bytes;
                let (route, hop) = (packet.route as usize, u32::from(packet.hop));
                p.last_kind = packet.kind;
                let counter = match packet.kind {
                    PacketKind::Data => &mut p.view.data_bytes,
                    PacketKind::Ack => &mut p.view.ack_bytes,
                    PacketKind::Ctl => &mut p.view.ctl_bytes,
                };
                *counter += u64::from(bytes);
                self.packet_hops += 1;
                let free_ns = p.serializer.transmit(now_ns, bytes);
                if p.queue.packets() > 0 {
                    p.wakes = true;
                    self.wheel.push(free_ns, Event::Wake(link, p.queue.first().unwrap_or(id)));
                }
                let arrives_ns = free_ns + p.port.delay_ns;
                if !self.losses.is_empty() && self.lose(link, id) {
                    self.account_loss(link, id);
                } else {
                    let after = self.route_ptr[route] + hop + 1;
                    let next = if after < self.route_ptr[route + 1] { self.route_links[after as usize] } else { link };
                    self.wheel.push(arrives_ns, Event::Arrive(id, next));
                }
                if self.io.is_asked() {
                    self.carry_out(Who::Hop(link));
                }
            }
            Pop::NotBefore(at_ns) => {
                p.wakes = true;
                self.wheel.push(at_ns.max(now_ns + 1), Event::Wake(link, 0));
            }
            Pop::Empty => {}
        }
        if !self.dropped.is_empty() {
            self.account_drops(link);
        }
    }

    /// Whether a loss rule takes this packet.
    fn lose(&mut self, link: LinkId, id: u32) -> bool {
        let kind = self.slab[id].kind;
        let now_ns = self.now_ns;
        let rng = &mut self.loss_rng;
        self.losses.iter().any(|rule| {
            let taken = match kind {
                PacketKind::Data => rule.kinds.data,
                PacketKind::Ack => rule.kinds.ack,
                PacketKind::Ctl => rule.kinds.ctl,
            };
            taken
                && (rule.from_ns..rule.until_ns).contains(&now_ns)
                && rule.links.as_ref().is_none_or(|links| links.contains(&link))
                && rng.unit() < rule.probability
        })
    }

    /// A packet reaches the far end of its link.
    #[inline]
    fn arrive(&mut self, id: u32) {
        let packet = &mut self.slab[id];
        let (route, hop) = (packet.route as usize, u32::from(packet.hop));
        packet.hop += 1;
        let (begin, end) = (self.route_ptr[route], self.route_ptr[route + 1]);
        let is_ctl = packet.kind == PacketKind::Ctl;
        let at = begin + hop;
        let link = self.route_links[at as usize];
        if self.has_downs && self.went_down_under(link, id) {
            self.account_loss(link, id);
            return;
        }
        if is_ctl {
            self.visit_back(link, id);
        }
        if at + 1 < end {
            let next = self.route_links[at as usize + 1];
            self.enqueue(next, id);
        } else {
            self.deliver(id);
        }
    }

    /// Whether the link went down while the packet that arrives now was on it.
    fn went_down_under(&self, link: LinkId, id: u32) -> bool {
        let p = &self.ports[link as usize];
        let on_it_ns = p.port.delay_ns + (f64::from(self.slab[id].bytes) * 8e9 / p.port.capacity_bps).ceil() as Ns;
        p.down_ns.is_some_and(|down_ns| down_ns + on_it_ns >= self.now_ns)
    }

    /// Shows a control message on its way out to the hop of the link that it is about to enter.
    fn visit_forward(&mut self, link: LinkId, id: u32) {
        let packet = &self.slab[id];
        let sub = &self.subs[self.sub_of(packet.flow, packet.subflow)];
        if packet.route == sub.forward {
            let visit = Visit { flow: packet.flow, subflow: packet.subflow, hop: packet.hop, forward: true };
            self.show(link, id, visit);
        }
    }

    /// Shows a control message on its way back, off `link`, to the hop of the data link that `link` is the twin of.
    fn visit_back(&mut self, link: LinkId, id: u32) {
        let packet = &self.slab[id];
        let sub = &self.subs[self.sub_of(packet.flow, packet.subflow)];
        if packet.route != sub.back || !sub.symmetric {
            return;
        }
        let hops = (self.route_ptr[sub.forward as usize + 1] - self.route_ptr[sub.forward as usize]) as u16;
        let visit = Visit { flow: packet.flow, subflow: packet.subflow, hop: hops - packet.hop, forward: false };
        let data_link = self.ports[link as usize].twin.expect("a symmetric way back runs over twins");
        self.show(data_link, id, visit);
    }

    fn show(&mut self, link: LinkId, id: u32, visit: Visit) {
        let Some(mut message) = self.slab[id].ctl.take() else { return };
        let p = &mut self.ports[link as usize];
        p.refresh();
        p.hop.on_ctl(&mut self.io, &mut message, visit, &p.port);
        self.slab[id].ctl = Some(message);
        self.carry_out(Who::Hop(link));
    }

    fn account_drops(&mut self, link: LinkId) {
        while let Some(id) = self.dropped.pop() {
            let packet = &self.slab[id];
            let view = &mut self.ports[link as usize].view;
            view.dropped_packets += 1;
            view.dropped_bytes += u64::from(packet.bytes);
            if packet.kind == PacketKind::Data {
                self.flows[packet.flow as usize].view.drops += 1;
            }
            self.slab.remove(id);
        }
    }

    fn account_loss(&mut self, link: LinkId, id: u32) {
        self.ports[link as usize].view.lost_packets += 1;
        let packet = &self.slab[id];
        if packet.kind == PacketKind::Data {
            self.flows[packet.flow as usize].view.drops += 1;
        }
        self.slab.remove(id);
    }
}
