//! What parts of a network tell each other: packets and letters that cross from one into another, flows that have finished.

use crate::event::{Event, Turn};
use crate::parts::cut::Cut;
use crate::pfc::Letter;
use crate::sim::Sim;
use std::sync::Arc;
use subak_core::backend::Machine;
use subak_core::scheme::{Packet, PacketId, Scheme};
use subak_core::{FlowId, LinkId, NodeId, Ns};

/// Something for another part.
pub(crate) enum Mail<S: Scheme> {
    /// A packet arrives: when, the link that it goes on by, its input and its turn.
    Packet(Ns, Packet<S>, (LinkId, u16, Turn)),
    /// A letter arrives at the hop before a link: when, and its turn.
    Letter(Ns, Letter<S::Ctl>, LinkId, u8),
    /// The flow has finished.
    Finished(FlowId),
}

/// Which part of the network a simulation runs, and what it has for the others.
pub(crate) struct Part<S: Scheme> {
    pub number: usize,
    pub cut: Arc<Cut>,
    /// By the part that it is for.
    pub out: Vec<Vec<Mail<S>>>,
    /// When the first packet or letter of `out` arrives.
    pub first_ns: Ns,
    /// Packets and letters that have crossed into others.
    pub crossed: u64,
    /// Flows whose sources, which are here, have said goodbye since somebody asked.
    pub said_goodbye: Vec<FlowId>,
}

impl<S: Scheme> Part<S> {
    pub fn new(number: usize, cut: Arc<Cut>) -> Self {
        let out = (0..cut.parts).map(|_| Vec::new()).collect();
        Part { number, cut, out, first_ns: Ns::MAX, crossed: 0, said_goodbye: Vec::new() }
    }

    fn has(&self, node: Option<NodeId>) -> bool {
        node.is_some_and(|node| usize::from(self.cut.of[node]) == self.number)
    }

    fn post(&mut self, to: Option<NodeId>, arrives_ns: Ns, mail: Mail<S>) {
        let to = self.cut.of[to.expect("where a network is cut, links have ends")];
        self.first_ns = self.first_ns.min(arrives_ns);
        self.crossed += 1;
        self.out[usize::from(to)].push(mail);
    }
}

impl<S: Scheme> Sim<S> {
    /// Marks the links that begin and end here.
    pub(crate) fn mark_part(&mut self) {
        let Some(part) = &self.part else { return };
        for p in &mut self.ports {
            (p.begins_here, p.ends_here) = (part.has(p.port.from), part.has(p.port.to));
        }
    }

    /// Whether this simulation counts what all of them hear of.
    pub(crate) fn is_first(&self) -> bool {
        self.part.as_ref().is_none_or(|part| part.number == 0)
    }

    /// Every part has this event, and one counts it.
    pub(crate) fn heard_everywhere(&mut self) {
        self.counts.events -= u64::from(!self.is_first());
    }

    /// Whether the machine is of this part.
    pub(crate) fn has_machine(&self, machine: Machine) -> bool {
        let Some(part) = &self.part else { return true };
        match machine {
            Machine::Controller => part.number == 0,
            Machine::Node(node) => part.has(Some(node)),
            Machine::Hop(link) => self.ports[link].begins_here,
        }
    }

    /// Whether the source of the flow is here.
    pub(crate) fn has_source(&self, flow: FlowId) -> bool {
        let Some(f) = self.flows.get(flow) else { return false };
        self.ports[self.routes.first(self.subs[f.first_sub].forward)].begins_here
    }

    /// Whether its sink is.
    pub(crate) fn has_sink(&self, flow: FlowId) -> bool {
        let Some(f) = self.flows.get(flow) else { return false };
        self.routes.of(self.subs[f.first_sub].forward).last().is_some_and(|&last| self.ports[last].ends_here)
    }

    /// The packet goes over `link` into another part.
    #[cold]
    pub(crate) fn mail_packet(&mut self, id: PacketId, link: LinkId, arrives_ns: Ns, by: (LinkId, u16, Turn)) {
        let packet = self.slab.take(id);
        if let Some(part) = &mut self.part {
            part.post(self.ports[link].port.to, arrives_ns, Mail::Packet(arrives_ns, packet, by));
        }
    }

    /// The letter goes against the direction of `link` into another part.
    #[cold]
    pub(crate) fn mail_letter(&mut self, letter: Letter<S::Ctl>, link: LinkId, arrives_ns: Ns, turn: u8) {
        if let Some(part) = &mut self.part {
            part.post(self.ports[link].port.from, arrives_ns, Mail::Letter(arrives_ns, letter, link, turn));
        }
    }

    /// The others hear that the flow has finished here.
    pub(crate) fn tell_finished(&mut self, flow: FlowId) {
        let Some(part) = &mut self.part else { return };
        let here = part.number;
        let others = part.out.iter_mut().enumerate().filter(|&(to, _)| to != here);
        others.for_each(|(_, out)| out.push(Mail::Finished(flow)));
    }

    /// Takes in what another part has sent.
    pub(crate) fn take_in(&mut self, mail: Mail<S>) {
        match mail {
            Mail::Packet(arrives_ns, packet, (next, input, turn)) => {
                let id = self.slab.insert(packet);
                self.wheel.push(arrives_ns, Event::Arrive(id, next, input, turn));
            }
            Mail::Letter(arrives_ns, letter, link, turn) => self.expect_letter(letter, link, arrives_ns, turn),
            Mail::Finished(flow) => {
                if let Some(f) = self.flows.get_mut(flow) {
                    f.open = false;
                }
            }
        }
    }
}
