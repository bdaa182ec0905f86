//! A link alone, to which a test gives packets.

use subak_core::scheme::{Packet, PacketId, PacketKind, Pop, Port, Queue, Scheme, Slab};
use subak_core::{FlowId, LinkId};
use subak_schemes::optimizers::given::GivenWeights;
use subak_schemes::over::Over;
use subak_schemes::transports::swift::SwiftTransport;

pub type Swift = Over<GivenWeights, SwiftTransport>;

pub struct LoneLink<Q> {
    pub queue: Q,
    pub slab: Slab<Swift>,
    pub dropped: Vec<PacketId>,
    pub now_ns: u64,
}

pub fn port(buffer_bytes: u64) -> Port {
    Port { buffer_bytes, ..Port::example(LinkId(0), 10e9) }
}

impl<Q: Queue<Swift>> LoneLink<Q> {
    pub fn new(queue: Q) -> Self {
        LoneLink { queue, slab: Slab::default(), dropped: Vec::new(), now_ns: 0 }
    }

    pub fn push(&mut self, flow: u32, bytes: u32, weight: f64) -> PacketId {
        self.push_kind(PacketKind::Data, flow, bytes, weight)
    }

    pub fn push_kind(&mut self, kind: PacketKind, flow: u32, bytes: u32, weight: f64) -> PacketId {
        let mut packet = Packet { kind, bytes, ..Packet::blank(FlowId(flow)) };
        let header: &mut <Swift as Scheme>::Data = &mut packet.data;
        header.transport.virtual_len = f64::from(bytes) * 8.0 / weight;
        let id = self.slab.insert(packet);
        self.queue.push(self.now_ns, id, &mut self.slab, &mut self.dropped);
        id
    }

    /// The next packet to leave, and its flow.
    pub fn pop(&mut self) -> Option<(PacketId, u32)> {
        let Pop::Packet(id) = self.queue.pop(self.now_ns, &mut self.slab, &mut self.dropped) else { return None };
        self.now_ns += u64::from(self.slab[id].bytes) * 8 / 10;
        Some((id, self.slab[id].flow.0))
    }

    /// The next packet to leave; fails if there is none although packets are queued.
    pub fn pop_if_any(&mut self) -> Option<PacketId> {
        let waiting = self.queue.packets();
        let next = self.pop();
        assert_eq!(next.is_some(), waiting > 0, "work conserving");
        next.map(|(id, _)| id)
    }

    /// Flows of all packets that are left, in order.
    pub fn order(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.pop()).map(|(_, flow)| flow).collect()
    }
}
