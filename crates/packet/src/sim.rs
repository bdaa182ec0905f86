//! The kernel: the event loop, and packets in queues and on links. Sources and sinks of flows are in `admission.rs`,
//! `sending.rs`, `delivery.rs`, `timeouts.rs` and `effects.rs`.

use crate::event::{Actor, ArrivalTurn, Event, Packed};
use crate::flow::{SubId, Subflow, pace_from};
use crate::flows::Flows;
use crate::impairments::Impairments;
use crate::nodes::Machines;
use crate::pfc::Pfc;
use crate::port::PortState;
use crate::process::LogicalProcess;
use crate::routes::Routes;
use crate::turns::Turns;
use crate::waiting::Handled;
use crate::wheel::Wheel;
use hdrhistogram::Histogram;
use subak_core::ahead::fetch;
use subak_core::backend::{LinkChange, PacketEvent, PacketSizes, Watcher};
use subak_core::scheme::{
    Class, Clock, Effect, Hop, Io, Pacing, Packet, PacketId, PacketKind, Pop, Queue, Scheme, Sink, Slab, Source, Visit,
    Way,
};
use subak_core::{FlowId, IdVec, LinkId, Network, Ns};

/// A simulation of one scheme on one network.
pub struct Sim<S: Scheme> {
    pub(crate) scheme: S,
    pub(crate) set: SimSetup,
    pub(crate) now_ns: Ns,
    pub(crate) handled: Handled,
    pub(crate) wheel: Wheel<Packed>,
    pub(crate) slab: Slab<S>,
    pub(crate) ports: IdVec<LinkId, PortState<S>>,
    /// NICs with a single timer, by link.
    pub(crate) nics: IdVec<LinkId, Turns>,
    pub(crate) routes: Routes,
    pub(crate) flows: Flows<S>,
    pub(crate) subs: IdVec<SubId, Subflow>,
    pub(crate) io: Io<S>,
    pub(crate) scratch: Vec<Effect<S>>,
    /// While a source or sink handles a message: number of the subflow's reroutes when that message was sent. An answer
    /// takes the same path.
    pub(crate) answers: Option<u32>,
    pub(crate) network: Network,
    pub(crate) machines: Machines<S>,
    pub(crate) impairments: Impairments,
    /// Shared buffers and pauses; `None` if switches are not lossless.
    pub(crate) pfc: Option<Pfc>,
    /// Packets that the current queue operation has dropped.
    pub(crate) dropped: Vec<PacketId>,
    /// Observer of packet events, if any.
    pub(crate) watcher: Option<Box<dyn Watcher>>,
    pub(crate) counts: SimCounts,
    /// Logical process (LP) that this simulation runs, in a parallel run.
    pub(crate) part: Option<Box<LogicalProcess<S>>>,
}

/// Constants of a run.
pub(crate) struct SimSetup {
    pub sizes: PacketSizes,
    pub seed: u64,
    /// Largest base RTT of the network, ns.
    pub rtt_ns: Ns,
    /// Largest line rate, bit/s.
    pub line_rate_bps: f64,
    /// Whether NICs serve their flows by per-flow round robin ([`Nic`](subak_core::Nic)).
    pub takes_turns: bool,
    /// Resolution of transmission times.
    pub clock: Clock,
    /// How NICs apply pacing rates.
    pub pacing: Pacing,
    /// Whether receivers drop segments that arrive out of order ([`subak_core::scheme::Recovery::go_back`]).
    pub go_back: bool,
    /// Priority class of ACKs, if it differs from the class of data.
    pub acks: Option<Class>,
    /// Whether some links have fixed departures, for which the position in the order of events must be tracked.
    pub fixes_departures: bool,
    /// Whether a flow completes with the arrival of its last ACK.
    pub at_sender: bool,
}

/// Counters of the simulation.
pub(crate) struct SimCounts {
    /// Number of flows that have neither finished nor been stopped. In a logical process (LP) the number may be
    /// negative: it counts ends of flows that were added in another LP.
    pub open_flows: i64,
    /// Number of flows with a size that have neither finished nor been stopped.
    pub unfinished: i64,
    /// Flows that finished since the previous query.
    pub finished: Vec<FlowId>,
    pub waits: Histogram<u64>,
    pub packet_hops: u64,
    pub events: u64,
}

impl<S: Scheme> Sim<S> {
    /// Handles events up to `until_ns`.
    pub(crate) fn run(&mut self, until_ns: Ns) {
        while self.next_event(until_ns) {}
        self.come_to(until_ns);
    }

    /// Handles events up to `until_ns`, or until `done` returns true.
    pub(crate) fn run_unless(&mut self, until_ns: Ns, done: fn(&Self) -> bool) {
        while !done(self) {
            if !self.step(until_ns) {
                return self.come_to(until_ns);
            }
        }
    }

    /// Advances the time to `until_ns`; all events up to then must have been handled.
    pub(crate) fn come_to(&mut self, until_ns: Ns) {
        self.set_now(self.now_ns.max(until_ns));
        self.handled = Handled::all(self.now_ns);
    }

    /// Handles the next event, if one is due by `until_ns`; returns whether there was one.
    #[inline(never)]
    pub(crate) fn step(&mut self, until_ns: Ns) -> bool {
        self.next_event(until_ns)
    }

    #[inline(always)]
    fn next_event(&mut self, until_ns: Ns) -> bool {
        let Some((at_ns, draw, event)) = self.wheel.pop(until_ns) else { return false };
        self.set_now(at_ns);
        if self.set.fixes_departures {
            self.handled.go_on(at_ns, draw, event);
        }
        self.counts.events += 1;
        if self.wheel.has_turned() {
            self.fetch_ahead();
        }
        // Nearly all events are arrivals of packets and wakes of links.
        if let Some(packet) = event.arrival() {
            self.arrive(packet);
        } else if let Some(link) = event.wake() {
            self.wake(link);
        } else {
            self.handle(event.event());
        }
        true
    }

    /// Sets the current time. All changes of the time use this function.
    #[inline]
    pub(crate) fn set_now(&mut self, now_ns: Ns) {
        self.now_ns = now_ns;
        self.io.now_ns = now_ns;
    }

    /// Prefetches the links and packets of all events of the current bucket. Prefetching one bucket earlier, or also
    /// the queue and the flow of each event, was slower in measurements.
    fn fetch_ahead(&self) {
        let hot_bytes = PortState::<S>::HOT_BYTES[usize::from(!self.set.fixes_departures)];
        for event in self.wheel.coming() {
            if let Some((packet, link)) = event.packet_and_link() {
                if let Some(packet) = self.slab.get(packet) {
                    fetch(packet, size_of::<Packet<S>>());
                }
                fetch(&self.ports[link], hot_bytes);
            }
        }
    }

    /// Schedules the arrival of the packet at the far end of `link`. `next`: next link of the packet's route; `rule`:
    /// fault rule that delayed the packet, or 0.
    #[inline(always)]
    pub(crate) fn travel(&mut self, id: PacketId, link: LinkId, arrives_ns: Ns, next: Option<LinkId>, rule: u8) {
        let p = &self.ports[link];
        let (next, input, turn) = (next.unwrap_or(link), p.input, ArrivalTurn { rule, number: p.turn });
        if p.ends_here {
            self.wheel.push(arrives_ns, Event::Arrive(id, next, input, turn));
        } else {
            self.post_packet(id, link, arrives_ns, (next, input, turn));
        }
    }

    #[inline(never)]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(packet, ..) => self.arrive(packet),
            Event::Wake(link, ..) => self.wake(link),
            Event::Pace(flow, sub) => self.on_pace(flow, sub),
            Event::Timeout(_, sub) => self.on_timeout(sub),
            Event::Start(flow) => self.start(flow),
            Event::Stop(flow) => {
                self.heard_everywhere();
                self.stop(flow);
            }
            Event::SourceTimer(flow, timer) => {
                self.flows[flow].source.on_timer(&mut self.io, timer);
                self.carry_out(Actor::Source(flow));
                self.send_all(flow);
                self.flows.release(flow);
            }
            Event::SinkTimer(flow, timer) => {
                self.flows[flow].sink.on_timer(&mut self.io, timer);
                self.carry_out(Actor::Sink(flow));
                self.flows.release(flow);
            }
            Event::HopTimer(link, timer, life) => {
                let p = &mut self.ports[link];
                if p.life != life {
                    return;
                }
                p.refresh(&self.handled);
                p.hop.on_timer(&mut self.io, timer, &p.port);
                self.carry_out(Actor::Hop(link));
            }
            Event::NodeTimer(node, timer, life) => {
                if self.machines.node_lives[node] == life {
                    self.at_node(node, |machine, io| machine.on_timer(io, timer));
                }
            }
            Event::ControlFrame(frame, link, _) => self.on_control(frame, link),
            Event::Restart(k) => self.restart(self.impairments.restarts[k]),
            Event::LinkNews(k) => {
                let (_, link, change) = self.impairments.link_changes[k];
                if let Some(controller) = &mut self.machines.controller {
                    controller.on_link(&mut self.io, link, change);
                }
                self.carry_out(Actor::Controller);
            }
            Event::ControllerTimer(timer, life) => {
                if life != self.machines.controller_life {
                    return;
                }
                if let Some(controller) = &mut self.machines.controller {
                    controller.on_timer(&mut self.io, timer);
                }
                self.carry_out(Actor::Controller);
            }
            Event::LinkChange(k) => {
                self.heard_everywhere();
                let (_, link, change) = self.impairments.link_changes[k];
                self.change(link, change);
                if self.machines.controller.is_some() {
                    self.wheel.push(self.now_ns + self.news_delay_ns(link), Event::LinkNews(k));
                }
            }
        }
    }

    /// Changes a link now, outside of the scheduled faults.
    pub(crate) fn change_now(&mut self, link: LinkId, change: LinkChange) {
        let k = self.impairments.add_change(self.now_ns, link, change);
        self.change(link, change);
        if self.machines.controller.is_some() {
            self.wheel.push(self.now_ns + self.news_delay_ns(link), Event::LinkNews(k));
        }
    }

    fn change(&mut self, link: LinkId, change: LinkChange) {
        let drops = self.impairments.drops_at(link, self.now_ns);
        let p = &mut self.ports[link];
        p.drops = drops;
        match change {
            LinkChange::Down => {
                p.held_down += 1;
                p.down_ns = Some(self.now_ns);
                if drops {
                    self.lose_waiting(link);
                }
            }
            LinkChange::Up => {
                p.held_down -= 1;
                if p.held_down == 0 && !p.wakes && p.begins_here {
                    p.wakes = true;
                    self.wheel.push(self.now_ns.max(p.serializer.free_ns()), Event::Wake(link, PacketId(0)));
                }
                if self.ports[link].held_down == 0 {
                    self.repeat_frames(link);
                    self.count_anew();
                }
            }
            LinkChange::Capacity(capacity_bps) => {
                p.serializer.resize(capacity_bps);
                p.port.capacity_bps = capacity_bps;
                p.refresh(&self.handled);
                p.hop.on_capacity(&p.port);
            }
        }
    }

    /// Sends the packet along its route from the first link.
    #[inline]
    pub(crate) fn launch(&mut self, packet: Packet<S>) {
        let first = self.routes.first(packet.route);
        self.flows.hold(packet.flow);
        let id = self.slab.insert(packet);
        self.enqueue(first, id, None);
    }

    /// Handles the arrival of a packet at the queue of `link`. `came_by`: link by which the packet arrived; `None` at
    /// its source.
    pub(crate) fn enqueue(&mut self, link: LinkId, id: PacketId, came_by: Option<LinkId>) {
        let now_ns = self.now_ns;
        if self.ports[link].drops {
            self.free_nic(id);
            self.account_loss(link, id);
            return;
        }
        self.io.came_by = came_by;
        if self.machines.has_nodes && !self.admits(link, id) {
            self.account_drop(link, id);
            return;
        }
        if let Some(came_by) = came_by
            && !self.has_room(came_by, id)
        {
            self.account_drop(link, id);
            return;
        }
        let packet = &mut self.slab[id];
        packet.enqueued_ns = now_ns;
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        if packet.kind == PacketKind::Ctl {
            self.visit_forward(link, id);
        } else {
            p.hop.on_enqueue(&mut self.io, packet, &p.port);
            if self.io.has_effects() {
                self.carry_out(Actor::Hop(link));
            }
        }
        if self.watcher.is_some() {
            self.saw(PacketEvent::Enqueued, link, id);
        }
        let p = &mut self.ports[link];
        if p.departures.is_some() {
            return self.fix_departure(link, id);
        }
        p.queue.push(now_ns, id, &mut self.slab, &mut self.dropped);
        p.peak_queued_bytes = p.peak_queued_bytes.max(p.queue.bytes());
        if !self.dropped.is_empty() {
            self.account_drops(link);
        }
        let p = &mut self.ports[link];
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
        let p = &mut self.ports[link];
        p.wakes = false;
        if p.held_down == 0 {
            self.serve(link);
        }
    }

    /// Starts transmission of the next packet in the queue of `link`, which is free.
    #[inline]
    fn serve(&mut self, link: LinkId) {
        let now_ns = self.now_ns;
        let p = &mut self.ports[link];
        let popped = p.queue.pop(now_ns, &mut self.slab, &mut self.dropped);
        match popped {
            Pop::Packet(id) => {
                let packet = &mut self.slab[id];
                packet.waited_ns += now_ns - packet.enqueued_ns;
                if packet.kind != PacketKind::Ctl {
                    p.refresh(&self.handled);
                    p.hop.on_dequeue(&mut self.io, packet, &p.port);
                }
                let (bytes, route, hop) = (packet.bytes, packet.route, packet.hop);
                self.counts.packet_hops += 1;
                let free_ns = p.transmit(now_ns, packet.kind, bytes);
                if p.queue.packets() > 0 {
                    p.wakes = true;
                    self.wheel.push(free_ns, Event::Wake(link, p.queue.first().unwrap_or(id)));
                }
                let arrives_ns = free_ns + p.port.delay_ns;
                let turn = if self.set.takes_turns { self.turn(id) } else { None };
                if self.machines.has_nodes {
                    self.tell_leaving(link, id);
                }
                self.give_room(id);
                if self.watcher.is_some() {
                    self.saw(PacketEvent::Dequeued, link, id);
                }
                if !self.impairments.rules.is_empty() && self.meets_impairment(link, id, arrives_ns) {
                    // The packet is lost, or a fault rule has scheduled its arrival.
                } else {
                    let next = self.routes.next(route, hop);
                    self.travel(id, link, arrives_ns, next, 0);
                }
                if self.io.has_effects() {
                    self.carry_out(Actor::Hop(link));
                }
                if let Some(sub) = turn {
                    if self.set.clock == Clock::WholeNs {
                        pace_from(&mut self.subs[sub], now_ns);
                    }
                    (self.subs[sub].at_nic, self.subs[sub].had_to_wait) = (false, true);
                    self.send(sub);
                    self.subs[sub].had_to_wait = false;
                }
                if self.set.pacing.one_timer {
                    self.look_once_free(link);
                }
            }
            Pop::NotBefore(at_ns) => {
                p.wakes = true;
                self.wheel.push(at_ns.max(now_ns + 1), Event::Wake(link, PacketId(0)));
            }
            Pop::Empty if self.set.pacing.one_timer => self.look(link),
            Pop::Empty => {}
        }
        if !self.dropped.is_empty() {
            self.account_drops(link);
        }
    }

    /// Subflow that may send again once packet `id` leaves its NIC; `None` if the packet is not a data packet at its
    /// source.
    #[cold]
    fn turn(&self, id: PacketId) -> Option<SubId> {
        let packet = &self.slab[id];
        (packet.hop == 0 && packet.kind == PacketKind::Data).then(|| self.sub_of(packet.flow, packet.subflow))
    }

    /// Handles a packet's arrival at the far end of its link.
    #[inline]
    fn arrive(&mut self, id: PacketId) {
        let packet = &mut self.slab[id];
        let (route, hop) = (packet.route, packet.hop);
        packet.hop += 1;
        let is_ctl = packet.kind == PacketKind::Ctl;
        let link = self.routes.link(route, hop);
        if self.impairments.has_downs && self.went_down_under(link, id) {
            self.account_loss(link, id);
            return;
        }
        if is_ctl {
            self.visit_back(link, id);
        }
        match self.routes.next(route, hop) {
            Some(next) => self.enqueue(next, id, Some(link)),
            None => {
                if self.watcher.is_some() {
                    self.saw(PacketEvent::Delivered, link, id);
                }
                self.deliver(id);
            }
        }
    }

    /// Passes a control message on its forward path to the state machine of `link`, which the message is about to
    /// enter.
    fn visit_forward(&mut self, link: LinkId, id: PacketId) {
        let packet = &self.slab[id];
        if packet.way != Way::Out {
            return;
        }
        let visit = Visit { flow: packet.flow, subflow: packet.subflow, hop: packet.hop, forward: true };
        self.show(link, id, visit);
    }

    /// Passes a control message on the reverse path, which arrives by `link`, to the state machine of the data link
    /// whose reverse is `link`.
    fn visit_back(&mut self, link: LinkId, id: PacketId) {
        let packet = &self.slab[id];
        if packet.way != Way::Back {
            return;
        }
        let path = self.subs[self.sub_of(packet.flow, packet.subflow)].path(packet.turn());
        if !path.symmetric {
            return;
        }
        let hops = self.routes.of(path.forward).len() as u16;
        let visit = Visit { flow: packet.flow, subflow: packet.subflow, hop: hops - packet.hop, forward: false };
        let data_link = self.ports[link].reverse_link.expect("a symmetric reverse path consists of reverse links");
        self.show(data_link, id, visit);
    }

    fn show(&mut self, link: LinkId, id: PacketId, visit: Visit) {
        let Some(mut message) = self.slab[id].ctl.take() else { return };
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        p.hop.on_ctl(&mut self.io, &mut message, visit, &p.port);
        self.slab[id].ctl = Some(message);
        self.carry_out(Actor::Hop(link));
    }
}
