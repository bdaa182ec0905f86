//! Departure times that are computed when a packet arrives. At a FIFO whose state machine does not observe
//! departures, the arrival determines the departure. The packet's next arrival is then scheduled at once, without an
//! event for the departure. Departed packets are removed from the queue when its state is read. Results are the same
//! as with departure events, including the number of events.

use super::waiting::{Departures, WaitingPacket};
use super::{Net, Pushed};
use std::collections::VecDeque;
use subak_core::LinkId;
use subak_core::scheme::{Hop, PacketId, Port, Queue, Scheme};

impl<S: Scheme> Net<S> {
    /// Turns fixed departures on at the links where they are possible, except where `needs_event` says that something
    /// else happens at a departure. To be called before any packet is sent.
    pub fn fix_departures(&mut self, needs_event: impl Fn(&Port) -> bool) {
        // A hop may send control frames to its neighbours: one hop that observes departures excludes fixed departures
        // everywhere.
        if self.ports.iter().any(|p| p.hop.observes_departures()) || self.pfc.is_some() {
            return;
        }
        for p in &mut self.ports {
            // On a link without delay, an arrival could precede the departure in the order of events.
            if p.port.delay_ns > 0 && !needs_event(&p.port) {
                p.departures = p.queue.fixed_room_bytes().map(|room_bytes| Departures {
                    waiting: VecDeque::new(),
                    first_ticks: 0,
                    bytes: 0,
                    room_bytes,
                });
            }
        }
        self.fixes_departures = self.ports.iter().any(|p| p.departures.is_some());
    }

    /// Turns fixed departures off: a watcher must observe each departure at its time. To be called before any packet
    /// is sent.
    pub(super) fn wake_for_each(&mut self) {
        debug_assert!(self.packet_hops == 0, "packets are in flight");
        self.ports.iter_mut().for_each(|p| p.departures = None);
        self.fixes_departures = false;
    }

    /// Computes the departure of packet `id`, which has arrived at `link`. Departed packets must have been removed
    /// from the queue.
    #[inline]
    pub(super) fn fix_departure(&mut self, link: LinkId, id: PacketId) -> Pushed {
        let now_ns = self.now_ns;
        let p = &mut self.ports[link];
        let Some(departures) = &mut p.departures else { return Pushed::Queued };
        let packet = &mut self.slab[id];
        let queued_bytes = departures.bytes + u64::from(packet.bytes);
        if queued_bytes > departures.room_bytes {
            return Pushed::Full;
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
        self.packet_hops += 1;
        self.events += u64::from(waits);
        let next = self.routes.next(packet.route, packet.hop);
        self.travel(id, link, arrives_ns, next, 0);
        Pushed::Fixed
    }

    /// Number of queued packets with a fixed departure.
    pub fn pending_departures(&self) -> u64 {
        if !self.fixes_departures {
            return 0;
        }
        let fixed = self.ports.iter().filter(|p| p.departures.is_some());
        fixed.map(|p| p.standing(&self.handled).queued_packets).sum()
    }
}
