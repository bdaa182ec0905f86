//! Departure times that are computed when a packet arrives. At a FIFO whose state machine does not observe
//! departures, the arrival determines the departure. The packet's next arrival is then scheduled at once, without an
//! event for the departure. Departed packets are removed from the queue when its state is read. Results are the same
//! as with departure events, including the number of events.

use crate::event::{Event, Packed};
use crate::port::{PortState, TICKS_PER_NS};
use crate::sim::Sim;
use crate::wheel::Tied;
use std::collections::VecDeque;
use subak_core::scheme::{Clock, Hop, PacketId, PacketKind, Queue, Scheme};
use subak_core::{LinkId, NodeKind, Ns};

/// Position in the order of events: the event handled last. All events before it have been handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handled {
    ns: Ns,
    /// Order value (draw) of the event handled last; above all draws if all events of this nanosecond have been
    /// handled.
    draw: u32,
    last: Packed,
}

impl Handled {
    /// The position in the order of events after all events up to `ns`.
    pub fn all(ns: Ns) -> Self {
        Handled { ns, draw: u32::MAX, last: Event::Wake(LinkId(0), PacketId(0)).into() }
    }

    /// The position in the order of events before the first one.
    pub fn none() -> Self {
        Handled { draw: 0, ..Handled::all(0) }
    }

    /// Advances the position to `event`, which is about to be handled.
    #[inline]
    pub fn go_on(&mut self, ns: Ns, draw: u16, event: Packed) {
        let next = Handled { ns, draw: draw.into(), last: event };
        // An event scheduled for the same nanosecond may have a lower order value; the position never moves back.
        *self = if ns > self.ns { next } else { self.later(next) };
    }

    /// The later of two positions in the order of events.
    pub fn later(self, other: Self) -> Self {
        let key = |handled: &Self| (handled.ns, handled.draw, handled.last.tie());
        if key(&other) > key(&self) { other } else { self }
    }

    /// Whether a packet whose transmission on `link` starts at `from_ticks` has left the queue at this position in
    /// the order of events.
    #[inline]
    fn has_left(&self, from_ticks: u64, link: LinkId) -> bool {
        let now_ticks = self.ns * TICKS_PER_NS;
        from_ticks <= now_ticks && (from_ticks + TICKS_PER_NS <= now_ticks || self.has_woken(link))
    }

    /// Whether the wake event of `link` at this nanosecond would have been handled already.
    #[cold]
    fn has_woken(&self, link: LinkId) -> bool {
        let wake = Packed::from(Event::Wake(link, PacketId(0)));
        let draw = u32::from(wake.draw(self.ns));
        draw < self.draw || (draw == self.draw && wake.tie() < self.last.tie())
    }
}

/// Size and kind of a queued packet, in four bytes.
#[derive(Debug, Clone, Copy)]
struct WaitingPacket(u32);

impl WaitingPacket {
    fn new(bytes: u32, kind: PacketKind) -> Self {
        WaitingPacket(bytes << 2 | kind.place() as u32)
    }
    fn bytes(self) -> u64 {
        (self.0 >> 2).into()
    }
    fn kind(self) -> PacketKind {
        match self.0 & 3 {
            0 => PacketKind::Data,
            1 => PacketKind::Ack,
            _ => PacketKind::Ctl,
        }
    }
}

/// A queue with fixed departures: a packet's transmission starts when that of the packet before it ends.
#[derive(Debug)]
pub(crate) struct Departures {
    waiting: VecDeque<WaitingPacket>,
    /// Start of the first packet's transmission, ticks.
    first_ticks: u64,
    bytes: u64,
    room_bytes: u64,
}

/// State of a queue and of its link at a point in time.
pub(crate) struct QueueStatus {
    pub queued_bytes: u64,
    pub queued_packets: u64,
    /// Bytes sent by kind of packet.
    pub sent_bytes: [u64; 3],
    /// Kind of the last packet whose transmission has started.
    pub last_kind: PacketKind,
    /// End of that packet's transmission, ticks, if another packet follows.
    pub until_ticks: Option<u64>,
}

impl<S: Scheme> PortState<S> {
    /// Removes departed packets from the queue.
    #[inline]
    pub fn remove_departed(&mut self, handled: &Handled) {
        let Some(departures) = &mut self.departures else { return };
        while let Some(&first) = departures.waiting.front()
            && handled.has_left(departures.first_ticks, self.port.link)
        {
            departures.bytes -= first.bytes();
            departures.first_ticks += self.serializer.ticks(first.bytes());
            self.sent_bytes[first.kind().place()] += first.bytes();
            self.last_kind = first.kind();
            departures.waiting.pop_front();
        }
        self.port.queued_bytes = departures.bytes;
        self.port.queued_packets = departures.waiting.len() as u32;
    }

    /// State of the queue and the link at the position `handled`.
    pub fn standing(&self, handled: &Handled) -> QueueStatus {
        let mut standing = QueueStatus {
            queued_bytes: self.queue.bytes(),
            queued_packets: self.queue.packets() as u64,
            sent_bytes: self.sent_bytes,
            last_kind: self.last_kind,
            until_ticks: None,
        };
        let Some(departures) = &self.departures else { return standing };
        standing.queued_bytes = departures.bytes;
        standing.queued_packets = departures.waiting.len() as u64;
        let mut from_ticks = departures.first_ticks;
        for packet in &departures.waiting {
            if !handled.has_left(from_ticks, self.port.link) {
                standing.until_ticks = Some(from_ticks);
                break;
            }
            from_ticks += self.serializer.ticks(packet.bytes());
            standing.queued_bytes -= packet.bytes();
            standing.queued_packets -= 1;
            standing.sent_bytes[packet.kind().place()] += packet.bytes();
            standing.last_kind = packet.kind();
        }
        standing
    }
}

impl<S: Scheme> Sim<S> {
    /// Turns fixed departures on at the links where they are possible. To be called before any packet is sent.
    pub(crate) fn fix_departures(&mut self) {
        let set = &self.set;
        // A hop may send control frames to its neighbours: one hop that observes departures excludes fixed departures
        // everywhere.
        if self.ports.iter().any(|p| p.hop.observes_departures())
            || self.pfc.is_some()
            || self.machines.has_nodes
            || set.pacing.one_timer
            || set.clock != Clock::Exact
        {
            return;
        }
        for p in &mut self.ports {
            // Under round robin, the departure of a subflow's packet from its host triggers the next one, so that an
            // event is needed.
            let is_first = p.port.from.is_none_or(|from| self.network.nodes()[from].kind == NodeKind::Host);
            // On a link without delay, an arrival could precede the departure in the order of events.
            if p.port.delay_ns > 0 && !(set.takes_turns && is_first) {
                p.departures = p.queue.fixed_room_bytes().map(|room_bytes| Departures {
                    waiting: VecDeque::new(),
                    first_ticks: 0,
                    bytes: 0,
                    room_bytes,
                });
            }
        }
        self.set.fixes_departures = self.ports.iter().any(|p| p.departures.is_some());
    }

    /// Turns fixed departures off: a watcher must observe each departure at its time. To be called before any packet
    /// is sent.
    pub(crate) fn wake_for_each(&mut self) {
        debug_assert!(self.counts.packet_hops == 0, "packets are in flight");
        self.ports.iter_mut().for_each(|p| p.departures = None);
        self.set.fixes_departures = false;
    }

    /// Computes the departure of packet `id`, which has arrived at `link`. Departed packets must have been removed
    /// from the queue.
    pub(crate) fn fix_departure(&mut self, link: LinkId, id: PacketId) {
        let now_ns = self.now_ns;
        let p = &mut self.ports[link];
        let Some(departures) = &mut p.departures else { return };
        let packet = &mut self.slab[id];
        let queued_bytes = departures.bytes + u64::from(packet.bytes);
        if queued_bytes > departures.room_bytes {
            return self.account_drop(link, id);
        }
        p.peak_queued_bytes = p.peak_queued_bytes.max(queued_bytes);
        let starts_ns = p.serializer.free_ns().max(now_ns);
        let waits = starts_ns > now_ns || !departures.waiting.is_empty();
        if waits {
            if departures.waiting.is_empty() {
                departures.first_ticks = p.serializer.busy_until_ticks();
            }
            departures.waiting.push_back(WaitingPacket::new(packet.bytes, packet.kind));
            departures.bytes = queued_bytes;
        } else {
            p.sent_bytes[packet.kind.place()] += u64::from(packet.bytes);
            p.last_kind = packet.kind;
        }
        packet.waited_ns += starts_ns - now_ns;
        p.turn = p.turn.wrapping_add(1);
        let arrives_ns = p.serializer.transmit(starts_ns, packet.bytes) + p.port.delay_ns;
        self.counts.packet_hops += 1;
        self.counts.events += u64::from(waits);
        let next = self.routes.next(packet.route, packet.hop);
        self.travel(id, link, arrives_ns, next, 0);
    }

    /// Number of queued packets with a fixed departure.
    pub(crate) fn pending_departures(&self) -> u64 {
        if !self.set.fixes_departures {
            return 0;
        }
        let fixed = self.ports.iter().filter(|p| p.departures.is_some());
        fixed.map(|p| p.standing(&self.handled).queued_packets).sum()
    }
}
