//! Mailboxes between logical processes (LPs), for packets and control frames that cross a link between LPs, and
//! for completions of flows.

use crate::event::{ArrivalTurn, Event};
use crate::parallel::cut::Cut;
use crate::pfc::ControlFrame;
use crate::sim::Sim;
use std::sync::Arc;
use subak_core::backend::Machine;
use subak_core::scheme::{Packet, PacketId, Scheme};
use subak_core::{FlowId, LinkId, NodeId, Ns};

/// A message to another logical process.
pub(crate) enum LpMessage<S: Scheme> {
    /// Arrival of a packet: time, packet, and the fields of [`Event::Arrive`](crate::event::Event::Arrive).
    Packet(Ns, Packet<S>, (LinkId, u16, ArrivalTurn)),
    /// Arrival of a control frame at the upstream end of a link: time, frame, link, and number on the carrying
    /// link.
    ControlFrame(Ns, ControlFrame<S::Ctl>, LinkId, u8),
    /// Completion of a flow.
    Finished(FlowId),
}

/// Identity of the logical process that a simulation runs, and its outgoing mailboxes.
pub(crate) struct LogicalProcess<S: Scheme> {
    pub number: usize,
    pub cut: Arc<Cut>,
    /// Outgoing messages by receiving logical process.
    pub out: Vec<Vec<LpMessage<S>>>,
    /// Earliest arrival time of the messages in `out`, ns.
    pub first_ns: Ns,
    /// Number of packets and control frames sent to other logical processes.
    pub crossed: u64,
    /// Flows with a source in this logical process that were torn down since the last query.
    pub torn_down: Vec<FlowId>,
}

impl<S: Scheme> LogicalProcess<S> {
    pub fn new(number: usize, cut: Arc<Cut>) -> Self {
        let out = (0..cut.parts).map(|_| Vec::new()).collect();
        LogicalProcess { number, cut, out, first_ns: Ns::MAX, crossed: 0, torn_down: Vec::new() }
    }

    fn has(&self, node: Option<NodeId>) -> bool {
        node.is_some_and(|node| usize::from(self.cut.of[node]) == self.number)
    }

    fn post(&mut self, to: Option<NodeId>, arrives_ns: Ns, message: LpMessage<S>) {
        let to = self.cut.of[to.expect("where a network is cut, links have ends")];
        self.first_ns = self.first_ns.min(arrives_ns);
        self.crossed += 1;
        self.out[usize::from(to)].push(message);
    }
}

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
