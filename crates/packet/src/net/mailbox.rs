//! Mailboxes between logical processes (LPs), for packets and control frames that cross a link between LPs, and
//! for completions of flows.

use super::pfc::ControlFrame;
use super::process::LpMessage;
use super::{LogicalProcess, Net};
use crate::event::{ArrivalTurn, Event};
use subak_core::scheme::{PacketId, Scheme};
use subak_core::{FlowId, LinkId, Ns};

impl<S: Scheme> Net<S> {
    /// Marks the links whose near or far end is in this logical process.
    pub(super) fn mark_part(&mut self) {
        let Some(part) = &self.part else { return };
        for p in &mut self.ports {
            (p.begins_here, p.ends_here) = (part.has(p.port.from), part.has(p.port.to));
        }
    }

    /// The logical process (LP) that this network is a part of; `None` in a sequential run.
    pub fn part(&mut self) -> Option<&mut LogicalProcess<S>> {
        self.part.as_deref_mut()
    }

    /// Number of packets and control frames sent to other logical processes.
    pub fn crossed(&self) -> u64 {
        self.part.as_ref().map_or(0, |part| part.crossed)
    }

    /// Whether this simulation is logical process (LP) 0, or the only one. It counts the events that every LP
    /// handles.
    pub fn is_first(&self) -> bool {
        self.part.as_ref().is_none_or(|part| part.number == 0)
    }

    /// Subtracts the present event from the number of events, except in logical process (LP) 0: every LP handles this
    /// event, but it counts once.
    pub fn heard_everywhere(&mut self) {
        self.events -= u64::from(!self.is_first());
    }

    /// Posts the packet, which leaves by `link`, to the logical process of the link's far end.
    #[cold]
    pub(super) fn post_packet(&mut self, id: PacketId, link: LinkId, arrives_ns: Ns, by: (LinkId, u16, ArrivalTurn)) {
        let packet = self.slab.take(id);
        if let Some(part) = &mut self.part {
            part.post(self.ports[link].port.to, arrives_ns, LpMessage::Packet(arrives_ns, packet, by));
        }
    }

    /// Posts the control frame to the logical process of the upstream end of `link`.
    #[cold]
    pub(super) fn post_control(&mut self, frame: ControlFrame<S::Ctl>, link: LinkId, arrives_ns: Ns, turn: u8) {
        if let Some(part) = &mut self.part {
            part.post(self.ports[link].port.from, arrives_ns, LpMessage::ControlFrame(arrives_ns, frame, link, turn));
        }
    }

    /// Schedules a message that another logical process posted; returns the flow of a completion, which does not
    /// concern the network.
    pub fn take_in(&mut self, message: LpMessage<S>) -> Option<FlowId> {
        match message {
            LpMessage::Packet(arrives_ns, packet, (next, input, turn)) => {
                debug_assert!(arrives_ns >= self.now_ns, "a message arrives after the window in which it was sent");
                let id = self.slab.insert(packet);
                self.wheel.push(arrives_ns, Event::Arrive(id, next, input, turn));
            }
            LpMessage::ControlFrame(arrives_ns, frame, link, turn) => {
                self.expect_control(frame, link, arrives_ns, turn);
            }
            LpMessage::Finished(flow) => return Some(flow),
        }
        None
    }
}
