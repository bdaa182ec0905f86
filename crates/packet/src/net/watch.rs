//! Reports of packet events to the watcher.

use super::Net;
use std::fmt::Debug;
use subak_core::backend::{PacketEvent, TraceRecord, Watcher};
use subak_core::scheme::{Blocks, Class, PacketId, PacketKind, Queue, Scheme, Way};
use subak_core::{FlowId, LinkId, SubflowId};

impl<S: Scheme> Net<S> {
    /// Reports an event of packet `id` at `link`.
    #[cold]
    #[inline(never)]
    pub(super) fn saw(&mut self, event: PacketEvent, link: LinkId, id: PacketId) {
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
    pub fn saw_control(&mut self, link: LinkId, message: &S::Ctl) {
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

    /// Lets `watcher` observe all packet events from now on. To be called before any packet is sent.
    pub fn watch(&mut self, watcher: Box<dyn Watcher>) {
        self.wake_for_each();
        self.watcher = Some(watcher);
    }
}
