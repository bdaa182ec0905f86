//! Packet losses: injected impairments, links that go down, drops, and their counters.

use crate::event::ArrivalTurn;
use crate::impairments::Rule;
use crate::sim::Sim;
use subak_core::backend::{Impairment, PacketEvent};
use subak_core::scheme::{Class, PacketId, PacketKind, Pop, Queue, Scheme};
use subak_core::{LinkId, Ns};

impl<S: Scheme> Sim<S> {
    /// Applies the impairment rules to a packet that would arrive at `arrives_ns`; returns whether the packet was
    /// lost or rescheduled.
    pub(crate) fn meets_impairment(&mut self, link: LinkId, id: PacketId, arrives_ns: Ns) -> bool {
        let Some((number, impairment)) = self.impairment(link, self.slab[id].kind) else { return false };
        match impairment {
            Impairment::Lost => {
                self.account_loss(link, id);
                true
            }
            Impairment::Doubled => {
                let copy = self.slab.insert(self.slab[id].copy());
                self.flows.hold(self.slab[id].flow);
                self.travel_on(copy, link, arrives_ns, 0);
                false
            }
            Impairment::Late(by_ns) => {
                let rule = 1 + number % ArrivalTurn::MOST_RULES;
                self.travel_on(id, link, arrives_ns + by_ns, rule as u8);
                true
            }
        }
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

    /// Whether `link` went down while packet `id`, which arrives now, was on it.
    pub(crate) fn went_down_under(&self, link: LinkId, id: PacketId) -> bool {
        let p = &self.ports[link];
        let on_it_ns = p.port.delay_ns + (f64::from(self.slab[id].bytes) * 8e9 / p.port.capacity_bps).ceil() as Ns;
        p.down_ns.is_some_and(|down_ns| down_ns + on_it_ns >= self.now_ns)
    }

    pub(crate) fn account_drops(&mut self, link: LinkId) {
        while let Some(id) = self.dropped.pop() {
            if self.machines.has_nodes {
                self.tell_leaving(link, id);
            }
            self.give_room(id);
            self.account_drop(link, id);
        }
    }

    pub(crate) fn account_drop(&mut self, link: LinkId, id: PacketId) {
        self.saw(PacketEvent::Dropped, link, id);
        let packet = &self.slab[id];
        let view = &mut self.ports[link].view;
        view.dropped_packets += 1;
        view.dropped_bytes += u64::from(packet.bytes);
        self.free_nic(id);
        self.lose(id);
    }

    /// Drops all packets queued at `link`, which goes down, including those of paused classes.
    #[cold]
    pub(crate) fn lose_waiting(&mut self, link: LinkId) {
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
        for id in waiting {
            if self.machines.has_nodes {
                self.tell_leaving(link, id);
            }
            self.give_room(id);
            self.free_nic(id);
            self.account_loss(link, id);
        }
    }

    /// Allows the subflow of packet `id` to send again, if the packet was lost before it left its host.
    pub(crate) fn free_nic(&mut self, id: PacketId) {
        let packet = &self.slab[id];
        if packet.hop == 0 && packet.kind == PacketKind::Data {
            let sub = self.sub_of(packet.flow, packet.subflow);
            self.subs[sub].at_nic = false;
            // The packet's RTO may have expired while it was queued; then no other event would let the subflow
            // send.
            if self.set.takes_turns && self.subs[sub].sender.in_flight_bytes() == 0 {
                self.await_pace(sub, self.now_ns);
            }
        }
    }

    pub(crate) fn account_loss(&mut self, link: LinkId, id: PacketId) {
        self.saw(PacketEvent::Lost, link, id);
        self.ports[link].view.lost_packets += 1;
        self.lose(id);
    }

    pub(crate) fn lose(&mut self, id: PacketId) {
        let packet = &self.slab[id];
        let flow = packet.flow;
        match packet.kind {
            PacketKind::Data => self.flows[flow].view.drops += 1,
            PacketKind::Ctl => {
                if let Some(f) = self.flows.get_mut(flow) {
                    f.view.ctl_drops += 1;
                }
            }
            PacketKind::Ack => {}
        }
        self.slab.remove(id);
        self.flows.release(flow);
    }
}
