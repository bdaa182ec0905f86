//! Delivery at a flow's ends: data, ACKs, messages.

use crate::event::Actor;
use crate::flow::{loss_of, remaining};
use crate::sim::Sim;
use subak_core::scheme::{Ack, LossKind, PacketId, PacketKind, Reply, Scheme, Sink, Source, Way};
use subak_core::{FlowId, SubflowId};

impl<S: Scheme> Sim<S> {
    /// Delivers a packet that has crossed its last link.
    #[inline(never)]
    pub(crate) fn deliver(&mut self, id: PacketId) {
        match self.slab[id].kind {
            PacketKind::Data => self.on_data(id),
            PacketKind::Ack => self.on_ack(id),
            PacketKind::Ctl => self.on_ctl(id),
        }
    }

    pub(crate) fn on_data(&mut self, id: PacketId) {
        let packet = &mut self.slab[id];
        let flow = packet.flow;
        let f = &mut self.flows[flow];
        let sub = &mut self.subs[f.first_sub.plus(packet.subflow)];
        let payload = u64::from(packet.payload_bytes());
        self.counts.waits.saturating_record(packet.waited_ns);
        let gap = self.set.go_back && packet.segment() > sub.receiver.cumulative();
        if !gap && sub.receiver.arrived(packet.segment()) {
            f.view.received_bytes += payload;
            f.view.received_wire_bytes += u64::from(packet.bytes);
        } else {
            f.view.duplicate_bytes += payload;
        }
        let done = f.open && f.size_bytes == Some(f.view.received_bytes);
        let mut reply = f.sink.on_data(&mut self.io, packet);
        if gap && !sub.receiver.complains() {
            reply = Reply::Withhold;
        }
        // The ACK is sent before the sink's effects are executed: a hop that processes the ACK may request effects
        // too.
        let effects = if self.io.has_effects() { std::mem::take(self.io.effects_mut()) } else { Vec::new() };
        match reply {
            Reply::Ack(data) => {
                packet.acknowledge(sub.receiver.blocks(packet.segment()));
                packet.route = sub.back;
                packet.way = Way::Back;
                packet.hop = 0;
                packet.bytes = self.set.sizes.ack_bytes;
                packet.class = self.set.acks.unwrap_or(packet.class);
                packet.cumulative = sub.receiver.cumulative();
                packet.waited_ns = 0;
                packet.data = data;
                let first = self.routes.first(sub.back);
                self.enqueue(first, id, None);
            }
            Reply::Withhold => {
                self.slab.remove(id);
                self.flows.release(flow);
            }
        }
        if !effects.is_empty() {
            *self.io.effects_mut() = effects;
            self.carry_out(Actor::Sink(flow));
        }
        if done && !self.set.at_sender {
            self.finish(flow);
        }
    }

    pub(crate) fn on_ack(&mut self, id: PacketId) {
        let packet = &self.slab[id];
        let (flow, subflow, segment, cumulative) = (packet.flow, packet.subflow, packet.segment(), packet.cumulative);
        let (sent_ns, ecn, data) = (packet.sent_ns, packet.ecn, packet.data);
        let blocks = packet.blocks();
        self.slab.remove(id);
        let f = &mut self.flows[flow];
        let at = f.first_sub.plus(subflow);
        let sub = &mut self.subs[at];
        let acked = sub.sender.on_ack(segment, blocks, cumulative, sent_ns, self.now_ns);
        f.acked_bytes += acked.bytes;
        let ack = Ack {
            subflow,
            acked_bytes: acked.bytes,
            rtt_ns: self.now_ns - sent_ns,
            ecn,
            in_flight_bytes: sub.sender.in_flight_bytes(),
            remaining_bytes: remaining(f),
            segment,
            next_segment: sub.sender.next_segment(),
            data,
        };
        f.source.on_ack(&mut self.io, &ack);
        if let Some(segment) = acked.lost {
            let kind = if self.set.go_back { LossKind::OutOfOrder } else { LossKind::Reordered };
            let loss = loss_of(sub, kind, segment);
            f.source.on_loss(&mut self.io, &loss);
        }
        let all = f.size_bytes == Some(f.acked_bytes);
        self.carry_out(Actor::Source(flow));
        if all {
            if self.set.at_sender {
                self.finish(flow);
            }
            self.send_teardown(flow);
        }
        // With a single NIC timer, each ACK wakes the NIC, which serves all its flows.
        if !all || self.set.pacing.one_timer {
            self.send(at);
        }
        self.flows.release(flow);
    }

    pub(crate) fn on_ctl(&mut self, id: PacketId) {
        let flow = self.slab[id].flow;
        self.take_ctl(id);
        self.flows.release(flow);
    }

    pub(crate) fn take_ctl(&mut self, id: PacketId) {
        let packet = &self.slab[id];
        let (flow, subflow, bytes, way) = (packet.flow, packet.subflow, packet.bytes, packet.way);
        let (node, turn) = (packet.node(), packet.turn());
        let Some(message) = self.slab.remove(id) else { return };
        match way {
            Way::Out => {
                self.flows[flow].sink.on_ctl(&mut self.io, subflow, *message, bytes);
                self.answers = Some(turn);
                self.carry_out(Actor::Sink(flow));
                self.answers = None;
            }
            Way::Back if turn == self.subs[self.sub_of(flow, subflow)].turn() => {
                self.tell_source(flow, subflow, *message);
            }
            Way::Back => {
                self.flows[flow].source.on_left(&mut self.io, subflow, *message, bytes);
                self.answers = Some(turn);
                self.carry_out(Actor::Source(flow));
                self.answers = None;
            }
            Way::ControllerToFlow => self.tell_source(flow, subflow, *message),
            Way::ControllerToNode => self.at_node(node, |machine, io| machine.on_ctl(io, *message)),
            Way::FlowToController | Way::NodeToController => {
                let Some(controller) = &mut self.machines.controller else { return };
                match way {
                    Way::FlowToController => controller.on_ctl(&mut self.io, flow, *message),
                    _ => controller.on_node(&mut self.io, node, *message),
                }
                self.carry_out(Actor::Controller);
            }
        }
    }

    pub(crate) fn tell_source(&mut self, flow: FlowId, subflow: SubflowId, message: S::Ctl) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        f.source.on_ctl(&mut self.io, subflow, message);
        self.carry_out(Actor::Source(flow));
        self.send_all(flow);
    }
}
