//! ACKs and control packets before all data, and data in the order of a discipline.

use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::scheme::{PacketId, PacketKind, Pop, Port, Queue, Scheme, Slab};

/// The order of data packets at a link.
pub trait Discipline<S: Scheme>: Send {
    /// Queues a data packet. Returns `false` to drop it.
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &Slab<S>) -> bool;

    /// Takes the next packet. At least one is queued.
    fn pop(&mut self, slab: &Slab<S>) -> Option<PacketId>;
}

/// Queue with priority for ACKs and control packets. A full buffer drops the arriving packet.
#[derive(Debug)]
pub struct ControlFirst<D> {
    first: VecDeque<PacketId>,
    pub(super) data: D,
    /// Queued data packets.
    data_packets: usize,
    bytes: u64,
    limit_bytes: u64,
}

impl<D> ControlFirst<D> {
    /// An empty queue before `port`, of a discipline without packets.
    pub(super) fn of(port: &Port, data: D) -> Self {
        ControlFirst { first: VecDeque::new(), data, data_packets: 0, bytes: 0, limit_bytes: port.buffer_bytes }
    }
}

impl<S: Scheme, D: Discipline<S>> Queue<S> for ControlFirst<D> {
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let bytes = u64::from(slab[packet].bytes);
        if self.bytes + bytes > self.limit_bytes {
            dropped.push(packet);
            return;
        }
        if slab[packet].kind != PacketKind::Data {
            self.first.push_back(packet);
        } else if self.data.push(now_ns, packet, slab) {
            self.data_packets += 1;
        } else {
            dropped.push(packet);
            return;
        }
        self.bytes += bytes;
    }

    fn pop(&mut self, _now_ns: Ns, slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        let packet = match self.first.pop_front() {
            Some(packet) => packet,
            None if self.data_packets == 0 => return Pop::Empty,
            None => {
                let Some(packet) = self.data.pop(slab) else { return Pop::Empty };
                self.data_packets -= 1;
                packet
            }
        };
        self.bytes -= u64::from(slab[packet].bytes);
        Pop::Packet(packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.first.len() + self.data_packets
    }
}
