//! Arrivals at the ends of flows: data, ACKs, messages; and losses on the way.

use super::Ends;
use super::flow::{Path, loss_of, remaining};
use super::sender::SegmentArrival;
use crate::event::SubId;
use subak_core::scheme::{Ack, Io, Packet, PacketKind, Reply, Scheme, Sink, Source, Way};
use subak_core::{FlowId, Ns, SubflowId};

/// Result of [`Ends::on_data`].
pub(crate) struct Received {
    pub flow: FlowId,
    /// Whether the packet is an ACK now, which must be sent; otherwise it must be removed.
    pub acks: bool,
    /// Whether the flow is complete.
    pub is_done: bool,
}

/// Result of [`Ends::on_ack`].
pub(crate) struct Acknowledged {
    pub flow: FlowId,
    pub at: SubId,
    /// Whether all bytes of the flow are ACKed.
    pub all: bool,
}

impl<S: Scheme> Ends<S> {
    /// Handles a data packet at its sink, which turns it into an ACK unless it withholds that.
    #[inline]
    pub fn on_data(&mut self, packet: &mut Packet<S>, io: &mut Io<S>) -> Received {
        let flow = packet.flow;
        let f = &mut self.flows[flow];
        let sub = &mut self.subs[f.first_sub.plus(packet.subflow)];
        let payload = u64::from(packet.payload_bytes());
        self.waits.saturating_record(packet.waited_ns);
        let arrived = sub.receiver.arrived(packet.segment());
        if arrived == SegmentArrival::New {
            f.view.received_bytes += payload;
            f.view.received_wire_bytes += u64::from(packet.bytes);
        } else {
            f.view.duplicate_bytes += payload;
        }
        debug_assert!(
            !f.open || f.size_bytes.is_none_or(|bytes| f.view.received_bytes <= bytes),
            "{flow:?} has received more than its size"
        );
        let is_done = f.open && f.size_bytes == Some(f.view.received_bytes) && !self.at_sender;
        let reply = f.sink.on_data(io, packet);
        let acks = match reply {
            Reply::Ack(data) if arrived != SegmentArrival::Gap(false) => {
                packet.acknowledge(sub.receiver.blocks(packet.segment()));
                packet.route = sub.back;
                packet.way = Way::Back;
                packet.hop = 0;
                packet.bytes = self.sizes.ack_bytes;
                packet.class = self.acks.unwrap_or(packet.class);
                packet.cumulative = sub.receiver.cumulative();
                packet.waited_ns = 0;
                packet.data = data;
                true
            }
            _ => false,
        };
        Received { flow, acks, is_done }
    }

    /// Handles an ACK at its source.
    #[inline]
    pub fn on_ack(&mut self, packet: &Packet<S>, now_ns: Ns, io: &mut Io<S>) -> Acknowledged {
        let (flow, segment) = (packet.flow, packet.segment());
        let f = &mut self.flows[flow];
        let at = f.first_sub.plus(packet.subflow);
        let sub = &mut self.subs[at];
        let acked = sub.sender.on_ack(segment, packet.blocks(), packet.cumulative, packet.sent_ns, now_ns);
        f.acked_bytes += acked.bytes;
        let ack = Ack {
            subflow: packet.subflow,
            acked_bytes: acked.bytes,
            rtt_ns: now_ns - packet.sent_ns,
            ecn: packet.ecn,
            in_flight_bytes: sub.sender.in_flight_bytes(),
            remaining_bytes: remaining(f),
            segment,
            next_segment: sub.sender.next_segment(),
            data: packet.data,
        };
        f.source.on_ack(io, &ack);
        if let Some(segment) = acked.lost {
            f.source.on_loss(io, &loss_of(sub, sub.sender.loss_kind(), segment));
        }
        Acknowledged { flow, at, all: f.size_bytes == Some(f.acked_bytes) }
    }

    /// Whether the arrival of a flow's last ACK completes it.
    pub fn completes_at_sender(&self) -> bool {
        self.at_sender
    }

    /// Counts the loss of a packet of `kind` of the flow.
    pub fn count_loss(&mut self, flow: FlowId, kind: PacketKind) {
        match kind {
            PacketKind::Data => self.flows[flow].view.drops += 1,
            PacketKind::Ctl => {
                if let Some(f) = self.flows.get_mut(flow) {
                    f.view.ctl_drops += 1;
                }
            }
            PacketKind::Ack => {}
        }
    }

    /// Begins or ends the answer to a message that was sent after `turn` reroutes.
    pub fn answer(&mut self, turn: Option<u32>) {
        self.answers = turn;
    }

    /// Path of a message of the flow, and the number of reroutes before it. An answer takes the path of its message.
    pub fn message_path(&self, flow: FlowId, subflow: SubflowId) -> (Path, u32) {
        let sub = &self.subs[self.sub_of(flow, subflow)];
        let turn = self.answers.unwrap_or(sub.turn());
        (sub.path(turn), turn)
    }
}
