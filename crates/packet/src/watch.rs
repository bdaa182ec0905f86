//! Reports packet events to the watcher, and pacing rates to the caller.

use crate::sim::Sim;
use std::fmt::Debug;
use subak_core::backend::{PaceView, PacketEvent, TraceRecord};
use subak_core::scheme::{Blocks, Class, PacketId, PacketKind, Queue, Scheme, Way};
use subak_core::{FlowId, LinkId, SubflowId};

impl<S: Scheme> Sim<S> {
    /// Reports an event of packet `id` at `link`.
    #[cold]
    #[inline(never)]
    pub(crate) fn saw(&mut self, event: PacketEvent, link: LinkId, id: PacketId) {
        let Some(watcher) = &mut self.watcher else { return };
        let packet = &self.slab[id];
        let flow = (packet.flow != FlowId::NONE).then_some(packet.flow);
        if !watcher.wants(self.now_ns, flow, link) {
            return;
        }
        let queue = &self.ports[link].queue;
        let (is_data, is_ack) = (packet.kind == PacketKind::Data, packet.kind == PacketKind::Ack);
        watcher.see(&TraceRecord {
            at_ns: self.now_ns,
            event,
            link,
            flow,
            subflow: packet.subflow,
            kind: packet.kind,
            way: packet.way,
            class: packet.class,
            // Of a control packet, this is the number of its node.
            segment: packet.number,
            blocks: if is_ack { packet.blocks() } else { Blocks::default() },
            cumulative: packet.cumulative,
            bytes: packet.bytes,
            payload_bytes: if is_data { packet.payload_bytes() } else { 0 },
            ecn: packet.ecn,
            hop: packet.hop,
            sent_ns: packet.sent_ns,
            waited_ns: packet.waited_ns,
            queued_bytes: queue.bytes(),
            queued_packets: queue.packets() as u64,
            header: match &packet.ctl {
                Some(message) => message as &dyn Debug,
                None => &packet.data,
            },
        });
    }

    /// Reports the arrival of a control frame at the upstream end of `link`.
    pub(crate) fn saw_control(&mut self, link: LinkId, message: &S::Ctl) {
        let Some(watcher) = &mut self.watcher else { return };
        if !watcher.wants(self.now_ns, None, link) {
            return;
        }
        let queue = &self.ports[link].queue;
        watcher.see(&TraceRecord {
            at_ns: self.now_ns,
            event: PacketEvent::Control,
            link,
            flow: None,
            subflow: SubflowId(0),
            kind: PacketKind::Ctl,
            way: Way::Back,
            class: Class::Control,
            segment: 0,
            blocks: Blocks::default(),
            cumulative: 0,
            bytes: 0,
            payload_bytes: 0,
            ecn: false,
            hop: 0,
            sent_ns: self.now_ns,
            waited_ns: 0,
            queued_bytes: queue.bytes(),
            queued_packets: queue.packets() as u64,
            header: message,
        });
    }

    /// Pacing rates of the subflows of `flow`, as last set by its state machine.
    pub(crate) fn paces_of(&self, flow: FlowId) -> Vec<PaceView> {
        let Some(f) = self.flows.get(flow).filter(|f| f.open) else { return Vec::new() };
        let view = |sub: &crate::flow::Subflow| PaceView {
            pace_bps: if sub.held { Some(0.0) } else { sub.rate_bps },
            window_bytes: (!sub.held && sub.window_bytes < u64::MAX).then_some(sub.window_bytes),
            in_flight_bytes: sub.sender.in_flight_bytes(),
        };
        f.subs().map(|at| view(&self.subs[at])).collect()
    }
}
