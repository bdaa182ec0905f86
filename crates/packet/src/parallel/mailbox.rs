//! Mailboxes between logical processes (LPs), for packets and control frames that cross a link between LPs, and
//! for completions of flows.

use crate::event::{ArrivalTurn, Event};
use crate::pfc::ControlFrame;
use crate::process::LpMessage;
use crate::sim::Sim;
use subak_core::backend::Machine;
use subak_core::scheme::{PacketId, Scheme};
use subak_core::{FlowId, LinkId, Ns};

impl<S: Scheme> Sim<S> {
    /// Marks the links whose near or far end is in this logical process.
    pub(crate) fn mark_part(&mut self) {
        let Some(part) = &self.part else { return };
        for p in &mut self.ports {
            (p.begins_here, p.ends_here) = (part.has(p.port.from), part.has(p.port.to));
        }
    }

    /// Whether this simulation is logical process (LP) 0, or the only one. It counts the events that every LP
    /// handles.
    pub(crate) fn is_first(&self) -> bool {
        self.part.as_ref().is_none_or(|part| part.number == 0)
    }

    /// Subtracts the present event from the number of events, except in logical process (LP) 0: every LP handles this
    /// event, but it counts once.
    pub(crate) fn heard_everywhere(&mut self) {
        self.counts.events -= u64::from(!self.is_first());
    }

    /// Whether the state machine runs in this logical process.
    pub(crate) fn has_machine(&self, machine: Machine) -> bool {
        let Some(part) = &self.part else { return true };
        match machine {
            Machine::Controller => part.number == 0,
            Machine::Node(node) => part.has(Some(node)),
            Machine::Hop(link) => self.ports[link].begins_here,
        }
    }

    /// Whether the flow's source is in this logical process.
    pub(crate) fn has_source(&self, flow: FlowId) -> bool {
        let Some(f) = self.flows.get(flow) else { return false };
        self.ports[self.routes.first(self.subs[f.first_sub].forward)].begins_here
    }

    /// Whether the flow's sink is in this logical process.
    pub(crate) fn has_sink(&self, flow: FlowId) -> bool {
        let Some(f) = self.flows.get(flow) else { return false };
        self.routes.of(self.subs[f.first_sub].forward).last().is_some_and(|&last| self.ports[last].ends_here)
    }

    /// Posts the packet, which leaves by `link`, to the logical process of the link's far end.
    #[cold]
    pub(crate) fn post_packet(&mut self, id: PacketId, link: LinkId, arrives_ns: Ns, by: (LinkId, u16, ArrivalTurn)) {
        let packet = self.slab.take(id);
        if let Some(part) = &mut self.part {
            part.post(self.ports[link].port.to, arrives_ns, LpMessage::Packet(arrives_ns, packet, by));
        }
    }

    /// Posts the control frame to the logical process of the upstream end of `link`.
    #[cold]
    pub(crate) fn post_control(&mut self, frame: ControlFrame<S::Ctl>, link: LinkId, arrives_ns: Ns, turn: u8) {
        if let Some(part) = &mut self.part {
            part.post(self.ports[link].port.from, arrives_ns, LpMessage::ControlFrame(arrives_ns, frame, link, turn));
        }
    }

    /// Posts to every other logical process (LP) that the flow has finished in this LP.
    pub(crate) fn tell_finished(&mut self, flow: FlowId) {
        let Some(part) = &mut self.part else { return };
        let here = part.number;
        let others = part.out.iter_mut().enumerate().filter(|&(to, _)| to != here);
        others.for_each(|(_, out)| out.push(LpMessage::Finished(flow)));
    }

    /// Schedules a message that another logical process posted.
    pub(crate) fn take_in(&mut self, message: LpMessage<S>) {
        match message {
            LpMessage::Packet(arrives_ns, packet, (next, input, turn)) => {
                let id = self.slab.insert(packet);
                self.wheel.push(arrives_ns, Event::Arrive(id, next, input, turn));
            }
            LpMessage::ControlFrame(arrives_ns, frame, link, turn) => {
                self.expect_control(frame, link, arrives_ns, turn)
            }
            LpMessage::Finished(flow) => {
                if let Some(f) = self.flows.get_mut(flow) {
                    f.open = false;
                }
            }
        }
    }
}
