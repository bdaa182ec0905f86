//! Packet losses in the network: impairments, links that go down, drops of queues, and their counters.

use super::impairments::Rule;
use super::{Fate, Net};
use crate::event::ArrivalTurn;
use subak_core::backend::{Impairment, PacketEvent};
use subak_core::scheme::{Class, PacketId, PacketKind, Pop, Queue, Scheme};
use subak_core::{LinkId, Ns};

impl<S: Scheme> Net<S> {
    /// Applies the impairment rules to a packet that would arrive at `arrives_ns`; `None` if no rule meets it.
    pub(super) fn meet_impairment(&mut self, link: LinkId, id: PacketId, arrives_ns: Ns) -> Option<Fate> {
        let (number, impairment) = self.impairment(link, self.slab[id].kind)?;
        Some(match impairment {
            Impairment::Lost => Fate::Lost,
            Impairment::Doubled => {
                let flow = self.slab[id].flow;
                let copy = self.slab.insert(self.slab[id].copy());
                self.travel_on(copy, link, arrives_ns, 0);
                self.travel_on(id, link, arrives_ns, 0);
                Fate::Doubled(flow)
            }
            Impairment::Late(by_ns) => {
                let rule = 1 + number % ArrivalTurn::MOST_RULES;
                self.travel_on(id, link, arrives_ns + by_ns, rule as u8);
                Fate::Travels
            }
        })
    }

    fn travel_on(&mut self, id: PacketId, link: LinkId, arrives_ns: Ns, rule: u8) {
        let packet = &self.slab[id];
        let next = self.routes.next(packet.route, packet.hop);
        self.travel(id, link, arrives_ns, next, rule);
    }

    /// Determines at random the impairment of a packet of this kind on `link`, if any, and the index of its rule.
    fn impairment(&mut self, link: LinkId, kind: PacketKind) -> Option<(usize, Impairment)> {
        let now_ns = self.now_ns;
        let rng = &mut self.impairments.rngs[link];
        let mut met = |rule: &Rule| {
            let taken = match kind {
                PacketKind::Data => rule.kinds.data,
                PacketKind::Ack => rule.kinds.ack,
                PacketKind::Ctl => rule.kinds.ctl,
            };
            taken
                && (rule.from_ns..rule.until_ns).contains(&now_ns)
                && rule.links.as_ref().is_none_or(|links| links.contains(&link))
                && rng.unit() < rule.probability
        };
        let found = self.impairments.rules.iter().enumerate().find(|(_, rule)| met(rule));
        found.map(|(number, rule)| (number, rule.impairment))
    }

    /// Number of impairment rules.
    pub fn rules(&self) -> usize {
        self.impairments.rules.len()
    }

    /// Whether `link` went down while packet `id`, which arrives now, was on it.
    pub(super) fn went_down_under(&self, link: LinkId, id: PacketId) -> bool {
        let p = &self.ports[link];
        let on_it_ns = p.port.delay_ns + (f64::from(self.slab[id].bytes) * 8e9 / p.port.capacity_bps).ceil() as Ns;
        p.down_ns.is_some_and(|down_ns| down_ns + on_it_ns >= self.now_ns)
    }

    /// Whether a queue operation has dropped packets, which [`Net::next_dropped`] takes.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Takes a packet that the latest queue operation, of `link`, has dropped.
    pub fn next_dropped(&mut self, link: LinkId) -> Option<PacketId> {
        let id = self.dropped.pop()?;
        self.ports[link].note_out(self.slab[id].bytes);
        Some(id)
    }

    /// Counts a packet that the queue of `link` dropped.
    pub fn count_drop(&mut self, link: LinkId, id: PacketId) {
        self.saw(PacketEvent::Dropped, link, id);
        let view = &mut self.ports[link].view;
        view.dropped_packets += 1;
        view.dropped_bytes += u64::from(self.slab[id].bytes);
    }

    /// Counts a packet that `link` lost.
    pub fn count_loss(&mut self, link: LinkId, id: PacketId) {
        self.saw(PacketEvent::Lost, link, id);
        self.ports[link].view.lost_packets += 1;
    }

    /// Removes all packets from the queue of `link`, which goes down, including those of paused classes.
    #[cold]
    pub fn empty(&mut self, link: LinkId) -> Vec<PacketId> {
        let now_ns = self.now_ns;
        let p = &mut self.ports[link];
        let mut waiting = Vec::new();
        Class::DATA.iter().for_each(|&class| p.queue.pause(class, false));
        while let Pop::Packet(id) = p.queue.pop(now_ns, &mut self.slab, &mut self.dropped) {
            waiting.push(id);
        }
        Class::DATA.iter().for_each(|&class| p.queue.pause(class, p.gate.since_ns(class).is_some()));
        p.refresh(&self.handled);
        waiting.append(&mut self.dropped);
        waiting.iter().for_each(|&id| p.note_out(self.slab[id].bytes));
        p.check();
        waiting
    }
}
