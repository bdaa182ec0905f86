//! Delivery at a flow's ends: data, ACKs, messages.

use super::Sim;
use crate::ends::{Acknowledged, Received};
use crate::event::Actor;
use subak_core::scheme::{PacketId, PacketKind, Scheme, Sink, Source, Way};
use subak_core::{FlowId, LinkId, SubflowId};

impl<S: Scheme> Sim<S> {
    /// Delivers a packet that has crossed its last link.
    #[inline(never)]
    pub(super) fn deliver(&mut self, id: PacketId) {
        match self.net.packet(id).kind {
            PacketKind::Data => self.on_data(id),
            PacketKind::Ack => self.on_ack(id),
            PacketKind::Ctl => self.on_ctl(id),
        }
    }

    fn on_data(&mut self, id: PacketId) {
        let Received { flow, acks, is_done } = self.ends.on_data(self.net.packet_mut(id), &mut self.io);
        // The ACK is sent before the sink's effects are executed: a hop that processes the ACK may request effects
        // too.
        let effects = if self.io.has_effects() { std::mem::take(self.io.effects_mut()) } else { Vec::new() };
        if acks {
            self.enqueue(self.net.first_link(id), id, None);
        } else {
            self.net.remove(id);
            self.ends.release(flow);
        }
        if !effects.is_empty() {
            *self.io.effects_mut() = effects;
            self.carry_out(Actor::Sink(flow));
        }
        if is_done {
            self.finish(flow);
        }
    }

    fn on_ack(&mut self, id: PacketId) {
        let Acknowledged { flow, at, all } = self.ends.on_ack(self.net.packet(id), self.net.now_ns(), &mut self.io);
        self.net.remove(id);
        // A smaller RTO or RTT variation makes the RTO or a probe due before the pending check.
        if let Some(due_ns) = self.ends.unwatched(at) {
            self.await_silence(at, due_ns);
        }
        self.carry_out(Actor::Source(flow));
        if all {
            if self.ends.completes_at_sender() {
                self.finish(flow);
            }
            self.send_teardown(flow);
        }
        self.send_after_ack(at, all);
        self.ends.release(flow);
    }

    pub(super) fn on_ctl(&mut self, id: PacketId) {
        let flow = self.net.packet(id).flow;
        self.take_ctl(id);
        self.ends.release(flow);
    }

    fn take_ctl(&mut self, id: PacketId) {
        let packet = self.net.packet(id);
        let (flow, subflow, bytes, way) = (packet.flow, packet.subflow, packet.bytes, packet.way);
        let (node, turn) = (packet.node(), packet.turn());
        let Some(message) = self.net.remove(id) else { return };
        match way {
            Way::Out => {
                self.ends.sink(flow).on_ctl(&mut self.io, subflow, *message, bytes);
                self.ends.answer(Some(turn));
                self.carry_out(Actor::Sink(flow));
                self.ends.answer(None);
            }
            Way::Back if turn == self.ends.sub(self.ends.sub_of(flow, subflow)).turn() => {
                self.tell_source(flow, subflow, *message);
            }
            Way::Back => {
                self.ends.source(flow).on_left(&mut self.io, subflow, *message, bytes);
                self.ends.answer(Some(turn));
                self.carry_out(Actor::Source(flow));
                self.ends.answer(None);
            }
            Way::ControllerToFlow => self.tell_source(flow, subflow, *message),
            Way::ControllerToNode => self.at_node(node, |machine, io| machine.on_ctl(io, *message)),
            Way::FlowToController => self.at_controller(|controller, io| controller.on_ctl(io, flow, *message)),
            Way::NodeToController => self.at_controller(|controller, io| controller.on_node(io, node, *message)),
        }
    }

    pub(super) fn tell_source(&mut self, flow: FlowId, subflow: SubflowId, message: S::Ctl) {
        if self.ends.get(flow).is_none() {
            return;
        }
        self.ends.source(flow).on_ctl(&mut self.io, subflow, message);
        self.carry_out(Actor::Source(flow));
        self.send_all(flow);
    }

    /// Shows a control message on the reverse path, which arrives by `link`, to the state machine of the data link
    /// whose reverse is `link`.
    pub(super) fn visit_back(&mut self, link: LinkId, id: PacketId) {
        let packet = self.net.packet(id);
        if packet.way != Way::Back {
            return;
        }
        let path = self.ends.sub(self.ends.sub_of(packet.flow, packet.subflow)).path(packet.turn());
        if path.symmetric {
            let data_link = self.net.visit_back(link, id, path.forward, &mut self.io);
            self.carry_out(Actor::Hop(data_link));
        }
    }
}
