//! The network of a simulation: the clock and the events, packets in queues and on links, routes, shared buffers, and
//! faults of links. It stores no flows: methods report what the ends of flows must know.

mod cut;
mod departures;
mod frames;
mod impairments;
mod links;
mod losses;
mod mailbox;
mod pauses;
mod pfc;
mod port;
mod process;
mod routes;
mod serializer;
mod waiting;
mod watch;

pub(crate) use cut::{Cut, fastest_bps};
pub(crate) use pauses::circle_of_pauses;
pub(crate) use pfc::{ControlFrame, Pfc};
pub(crate) use process::{LogicalProcess, LpMessage};
pub(crate) use waiting::Handled;

use crate::event::{ArrivalTurn, Event, Packed};
use crate::wheel::Wheel;
use frames::Frames;
use impairments::Impairments;
use port::PortState;
use routes::Routes;
use subak_core::ahead::fetch;
use subak_core::backend::{Injected, PacketEvent, PacketSizes, Watcher};
use subak_core::rng::Stream;
use subak_core::scheme::{Hop, Io, Packet, PacketId, PacketKind, Pop, Queue, RouteId, Scheme, Slab, Visit, Way};
use subak_core::{FlowId, IdVec, InputError, LinkId, Network, Ns, SubflowId};

/// Clock, events, packets and links of a simulation, or of one logical process (LP) of a parallel run.
pub(crate) struct Net<S: Scheme> {
    now_ns: Ns,
    /// Position in the order of events. It is tracked only if some links have fixed departures.
    handled: Handled,
    wheel: Wheel<Packed>,
    slab: Slab<S>,
    ports: IdVec<LinkId, PortState<S>>,
    routes: Routes,
    impairments: Impairments,
    /// Shared buffers and pauses; `None` if switches are not lossless.
    pfc: Option<Pfc>,
    /// Control frames in flight.
    frames: Frames<S::Ctl>,
    /// Packets that the current queue operation has dropped.
    dropped: Vec<PacketId>,
    /// Observer of packet events, if any.
    watcher: Option<Box<dyn Watcher>>,
    /// Whether some links have fixed departures.
    fixes_departures: bool,
    packet_hops: u64,
    events: u64,
    /// Logical process (LP) that this simulation runs, in a parallel run.
    part: Option<Box<LogicalProcess<S>>>,
}

/// Outcome of [`Net::push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The packet is in the queue, or the queue dropped it: see [`Net::next_dropped`].
    Queued,
    /// The packet's departure is fixed; there is nothing to serve.
    Fixed,
    /// A queue with fixed departures has no room for the packet.
    Full,
}

/// A packet that leaves its queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving {
    pub id: PacketId,
    route: RouteId,
    hop: u16,
    arrives_ns: Ns,
}

/// Outcome of [`Net::pop`].
pub(crate) enum Popped {
    /// The packet is in transmission.
    Packet(Leaving),
    /// The queue is empty.
    Empty,
    /// The queue may send later. The link wakes then.
    Later,
}

/// Outcome of [`Net::depart`].
pub(crate) enum Fate {
    /// The packet is on the link.
    Travels,
    /// The packet and a copy of it are on the link. The flow is the packet's.
    Doubled(FlowId),
    /// The link loses the packet.
    Lost,
}

/// A packet at the far end of a link.
pub(crate) struct Arrival {
    pub link: LinkId,
    /// Next link of the packet's route; `None` at its end.
    pub next: Option<LinkId>,
    pub is_ctl: bool,
    /// Whether the link went down under the packet.
    pub is_lost: bool,
}

impl<S: Scheme> Net<S> {
    /// An idle network whose events are the changes of links in `faults`. `rtt_ns`: its largest base RTT, ns.
    pub fn new(
        scheme: &S,
        network: &Network,
        sizes: PacketSizes,
        rtt_ns: Ns,
        faults: &[Injected],
        seed: u64,
        part: Option<Box<LogicalProcess<S>>>,
    ) -> Result<Self, InputError> {
        let rules = scheme.rules();
        let mut net = Net {
            now_ns: 0,
            handled: Handled::none(),
            wheel: Wheel::new(crate::sizing::bucket_shift(network)),
            slab: Slab::default(),
            ports: links::ports(scheme, network, |l, link| crate::sizing::port(l, link, sizes, rtt_ns, seed)),
            routes: Routes::default(),
            impairments: Impairments::new(faults),
            pfc: rules.lossless.map(|pfc| Pfc::new(pfc, network, sizes, rules.clock)).transpose()?,
            frames: Frames::default(),
            dropped: Vec::new(),
            watcher: None,
            fixes_departures: false,
            packet_hops: 0,
            events: 0,
            part,
        };
        net.mark_part();
        if net.impairments.has_rules() {
            net.impairments.rngs = net.ports.iter().map(|p| Stream::new(p.port.seed, "mishaps")).collect();
        }
        for (k, &(at_ns, ..)) in net.impairments.link_changes.iter_enumerated() {
            net.wheel.push(at_ns, Event::LinkChange(k));
        }
        Ok(net)
    }

    /// The current time, ns.
    #[inline]
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// Number of events handled so far, and of departures fixed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Number of packets that left a queue so far, and of those whose departure is fixed.
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops
    }

    /// Takes the next event, if one is due by `until_ns`, and advances the time to it.
    #[inline(always)]
    pub fn next_event(&mut self, until_ns: Ns) -> Option<Packed> {
        let (at_ns, draw, event) = self.wheel.pop(until_ns)?;
        self.set_now(at_ns);
        if self.fixes_departures {
            self.handled.go_on(at_ns, draw, event);
        }
        self.events += 1;
        if self.wheel.has_turned() {
            self.fetch_ahead();
        }
        Some(event)
    }

    /// Time of the next event, ns.
    pub fn first_ns(&self) -> Ns {
        self.wheel.first_ns()
    }

    /// Place of the next event in the order of events, if there is one.
    pub fn peek(&self) -> Option<(Ns, u16, u128)> {
        self.wheel.peek()
    }

    /// Advances the time to `until_ns`; all events up to then must have been handled.
    pub fn come_to(&mut self, until_ns: Ns) {
        self.set_now(self.now_ns.max(until_ns));
        self.handled = Handled::all(self.now_ns);
    }

    /// Sets the time, and the position in the order of events.
    pub fn stop_at(&mut self, at_ns: Ns, handled: Handled) {
        self.set_now(at_ns);
        self.handled = handled;
    }

    /// Position in the order of events.
    pub fn handled(&self) -> Handled {
        self.handled
    }

    #[inline]
    fn set_now(&mut self, now_ns: Ns) {
        debug_assert!(now_ns >= self.now_ns, "the time goes back from {} to {now_ns} ns", self.now_ns);
        self.now_ns = now_ns;
    }

    /// Schedules an event, at once if its time is past.
    #[inline]
    pub fn schedule(&mut self, at_ns: Ns, event: Event) {
        self.wheel.push(at_ns.max(self.now_ns), event);
    }

    /// Inserts events into the wheel in a random order given by `seed`, for tests.
    pub fn scramble(&mut self, seed: u64) {
        self.wheel.scramble(seed);
    }

    /// Prefetches the links and packets of all events of the current bucket. Prefetching one bucket earlier, or also
    /// the queue and the flow of each event, was slower in measurements.
    fn fetch_ahead(&self) {
        let hot_bytes = PortState::<S>::HOT_BYTES[usize::from(!self.fixes_departures)];
        for event in self.wheel.coming() {
            if let Some((packet, link)) = event.packet_and_link() {
                if let Some(packet) = self.slab.get(packet) {
                    fetch(packet, size_of::<Packet<S>>());
                }
                fetch(&self.ports[link], hot_bytes);
            }
        }
    }

    /// A packet that was inserted and not removed.
    #[inline]
    pub fn packet(&self, id: PacketId) -> &Packet<S> {
        &self.slab[id]
    }

    /// The same, to be changed by the end of its flow.
    #[inline]
    pub fn packet_mut(&mut self, id: PacketId) -> &mut Packet<S> {
        &mut self.slab[id]
    }

    /// Stores a packet.
    #[inline]
    pub fn insert(&mut self, packet: Packet<S>) -> PacketId {
        self.slab.insert(packet)
    }

    /// Stores the packet that `write` makes of a blank one or of a removed one. A header that was just written is slow
    /// to copy, so that it is written where it stays. A packet without a header is faster to write in registers.
    #[inline(always)]
    pub fn create(&mut self, write: impl FnOnce(&mut Packet<S>)) -> PacketId {
        if size_of::<S::Data>() == 0 {
            let mut packet = Packet::blank(FlowId::NONE);
            write(&mut packet);
            return self.slab.insert(packet);
        }
        let id = self.slab.reserve();
        write(&mut self.slab[id]);
        id
    }

    /// Removes a packet; returns its control message, if any.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> Option<Box<S::Ctl>> {
        self.slab.remove(id)
    }

    /// Whether packets that arrive at the queue of `link` are lost, because a fault keeps the link down.
    #[inline]
    pub fn loses_all(&self, link: LinkId) -> bool {
        self.ports[link].drops
    }

    /// Shows packet `id`, which is about to enter the queue of `link`, to the link's state machine.
    #[inline]
    pub fn enter(&mut self, link: LinkId, id: PacketId, io: &mut Io<S>) {
        let packet = &mut self.slab[id];
        packet.enqueued_ns = self.now_ns;
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        if packet.kind == PacketKind::Ctl {
            self.visit_forward(link, id, io);
        } else {
            p.hop.on_enqueue(io, packet, &p.port);
        }
    }

    /// Puts packet `id` into the queue of `link`.
    #[inline]
    pub fn push(&mut self, link: LinkId, id: PacketId) -> Pushed {
        if self.watcher.is_some() {
            self.saw(PacketEvent::Enqueued, link, id);
        }
        let p = &mut self.ports[link];
        if p.departures.is_some() {
            return self.fix_departure(link, id);
        }
        debug_assert!(self.dropped.is_empty(), "drops of another queue operation are accounted for");
        p.queue.push(self.now_ns, id, &mut self.slab, &mut self.dropped);
        p.peak_queued_bytes = p.peak_queued_bytes.max(p.queue.bytes());
        p.note_in(self.slab[id].bytes);
        Pushed::Queued
    }

    /// Whether the queue of `link` is to be served now. If the link is in transmission, it wakes when it is free;
    /// packet `id` is prefetched then.
    #[inline]
    pub fn is_ready(&mut self, link: LinkId, id: PacketId) -> bool {
        let p = &mut self.ports[link];
        p.check();
        if p.wakes || p.held_down > 0 {
            return false;
        }
        let free_ns = p.serializer.free_ns();
        if free_ns <= self.now_ns {
            return true;
        }
        p.wakes = true;
        self.wheel.push(free_ns, Event::Wake(link, id));
        false
    }

    /// Handles the wake event of `link`; returns whether its queue is to be served.
    #[inline]
    pub fn wake(&mut self, link: LinkId) -> bool {
        let p = &mut self.ports[link];
        p.wakes = false;
        p.held_down == 0
    }

    /// Starts transmission of the next packet in the queue of `link`, which is free.
    #[inline]
    pub fn pop(&mut self, link: LinkId, io: &mut Io<S>) -> Popped {
        let now_ns = self.now_ns;
        let p = &mut self.ports[link];
        match p.queue.pop(now_ns, &mut self.slab, &mut self.dropped) {
            Pop::Packet(id) => {
                let packet = &mut self.slab[id];
                packet.waited_ns += now_ns - packet.enqueued_ns;
                if packet.kind != PacketKind::Ctl {
                    p.refresh(&self.handled);
                    p.hop.on_dequeue(io, packet, &p.port);
                }
                let (route, hop) = (packet.route, packet.hop);
                self.packet_hops += 1;
                let free_ns = p.transmit(now_ns, packet.kind, packet.bytes);
                if p.queue.packets() > 0 {
                    p.wakes = true;
                    self.wheel.push(free_ns, Event::Wake(link, p.queue.first().unwrap_or(id)));
                }
                p.note_out(packet.bytes);
                Popped::Packet(Leaving { id, route, hop, arrives_ns: free_ns + p.port.delay_ns })
            }
            Pop::NotBefore(at_ns) => {
                p.wakes = true;
                self.wheel.push(at_ns.max(now_ns + 1), Event::Wake(link, PacketId(0)));
                Popped::Later
            }
            Pop::Empty => Popped::Empty,
        }
    }

    /// Sends the packet, which leaves the queue of `link`, over the link.
    #[inline]
    pub fn depart(&mut self, link: LinkId, Leaving { id, route, hop, arrives_ns }: Leaving) -> Fate {
        self.give_room(id);
        if self.watcher.is_some() {
            self.saw(PacketEvent::Dequeued, link, id);
        }
        if self.impairments.has_rules()
            && let Some(fate) = self.meet_impairment(link, id, arrives_ns)
        {
            return fate;
        }
        let next = self.routes.next(route, hop);
        self.travel(id, link, arrives_ns, next, 0);
        Fate::Travels
    }

    /// Schedules the arrival of the packet at the far end of `link`. `next`: next link of the packet's route; `rule`:
    /// fault rule that delayed the packet, or 0.
    #[inline(always)]
    fn travel(&mut self, id: PacketId, link: LinkId, arrives_ns: Ns, next: Option<LinkId>, rule: u8) {
        let p = &self.ports[link];
        let (next, input, turn) = (next.unwrap_or(link), p.input, ArrivalTurn { rule, number: p.turn });
        if p.ends_here {
            self.wheel.push(arrives_ns, Event::Arrive(id, next, input, turn));
        } else {
            self.post_packet(id, link, arrives_ns, (next, input, turn));
        }
    }

    /// Handles a packet's arrival at the far end of its link.
    #[inline]
    pub fn arrive(&mut self, id: PacketId) -> Arrival {
        let packet = &mut self.slab[id];
        let (route, hop) = (packet.route, packet.hop);
        packet.hop += 1;
        let is_ctl = packet.kind == PacketKind::Ctl;
        let link = self.routes.link(route, hop);
        debug_assert!(self.ports[link].ends_here, "a packet arrives in the logical process of its link's end");
        let is_lost = self.impairments.has_downs && self.went_down_under(link, id);
        Arrival { link, next: self.routes.next(route, hop), is_ctl, is_lost }
    }

    /// Reports a packet's arrival at its destination to the watcher.
    #[inline]
    pub fn delivered(&mut self, link: LinkId, id: PacketId) {
        if self.watcher.is_some() {
            self.saw(PacketEvent::Delivered, link, id);
        }
    }

    /// First link of the packet's route.
    #[inline]
    pub fn first_link(&self, id: PacketId) -> LinkId {
        self.routes.first(self.slab[id].route)
    }

    /// The subflow of a data packet that is at its source; `None` for other packets.
    #[inline]
    pub fn at_source(&self, id: PacketId) -> Option<(FlowId, SubflowId)> {
        let packet = &self.slab[id];
        (packet.hop == 0 && packet.kind == PacketKind::Data).then_some((packet.flow, packet.subflow))
    }

    /// Passes a control message on its forward path to the state machine of `link`, which the message is about to
    /// enter.
    fn visit_forward(&mut self, link: LinkId, id: PacketId, io: &mut Io<S>) {
        let packet = &self.slab[id];
        if packet.way == Way::Out {
            let visit = Visit { flow: packet.flow, subflow: packet.subflow, hop: packet.hop, forward: true };
            self.show(link, id, visit, io);
        }
    }

    /// Passes a control message on the reverse path, which arrives by `link`, to the state machine of the data link
    /// whose reverse is `link`. `forward`: route of the data. Returns the data link.
    pub fn visit_back(&mut self, link: LinkId, id: PacketId, forward: RouteId, io: &mut Io<S>) -> LinkId {
        let packet = &self.slab[id];
        let hops = self.routes.of(forward).len() as u16;
        let visit = Visit { flow: packet.flow, subflow: packet.subflow, hop: hops - packet.hop, forward: false };
        let data_link = self.ports[link].reverse_link.expect("a symmetric reverse path consists of reverse links");
        self.show(data_link, id, visit, io);
        data_link
    }

    fn show(&mut self, link: LinkId, id: PacketId, visit: Visit, io: &mut Io<S>) {
        let Some(mut message) = self.slab[id].ctl.take() else { return };
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        p.hop.on_ctl(io, &mut message, visit, &p.port);
        self.slab[id].ctl = Some(message);
    }
}
