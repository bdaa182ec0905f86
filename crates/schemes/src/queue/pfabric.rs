//! pFabric's queue (Alizadeh et al., SIGCOMM 2013, section 4.2): a small buffer that keeps the packets of the flows
//! with the least to send.
//!
//! When full it drops the packet of the lowest priority, of several the latest. It serves the flow whose packet has the
//! highest priority, of several the first, and of that flow the earliest packet, so that flows stay in order.

use subak_core::scheme::{Packet, PacketId, PacketKind, Pop, Queue, Scheme, Slab};
use subak_core::{FlowId, Ns, SubflowId};

/// A scheme whose packets have a rank; the lower goes first.
pub trait Ranked: Scheme {
    /// The packet's rank: the bytes its flow has left.
    fn rank(packet: &Packet<Self>) -> u64;
}

/// The queue. Searched from end to end: it is a few dozen packets short.
#[derive(Debug, Clone)]
pub struct PFabricQueue {
    /// In the order of arrival.
    waiting: Vec<Entry>,
    bytes: u64,
    limit_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    packet: PacketId,
    bytes: u32,
    rank: u64,
    flow: (FlowId, SubflowId, PacketKind),
}

impl PFabricQueue {
    /// An empty queue with room for `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        PFabricQueue { waiting: Vec::new(), bytes: 0, limit_bytes }
    }

    fn take(&mut self, at: usize) -> PacketId {
        let entry = self.waiting.remove(at);
        self.bytes -= u64::from(entry.bytes);
        entry.packet
    }
}

impl<S: Ranked> Queue<S> for PFabricQueue {
    fn push(&mut self, _now_ns: Ns, id: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let packet = &slab[id];
        let flow = (packet.flow, packet.subflow, packet.kind);
        self.waiting.push(Entry { packet: id, bytes: packet.bytes, rank: S::rank(packet), flow });
        self.bytes += u64::from(packet.bytes);
        while self.bytes > self.limit_bytes {
            let worst = (0..self.waiting.len()).max_by_key(|&at| self.waiting[at].rank);
            let Some(worst) = worst else { return };
            dropped.push(self.take(worst));
        }
    }

    fn pop(&mut self, _now_ns: Ns, _slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        let Some(best) = self.waiting.iter().min_by_key(|entry| entry.rank) else { return Pop::Empty };
        let flow = best.flow;
        let first = self.waiting.iter().position(|entry| entry.flow == flow).unwrap_or(0);
        Pop::Packet(self.take(first))
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pfabric::{PFabric, Remaining};
    use subak_core::IdVec;
    use subak_core::rng::Stream;

    fn packet(flow: u32, segment: u32, rank: u64, bytes: u32) -> Packet<PFabric> {
        Packet { bytes, data: Remaining::of(rank), ..Packet::blank(FlowId(flow)).carrying(segment, bytes) }
    }

    struct Bench {
        queue: PFabricQueue,
        slab: Slab<PFabric>,
        dropped: Vec<PacketId>,
    }

    impl Bench {
        fn new(limit_bytes: u64) -> Self {
            Bench { queue: PFabricQueue::new(limit_bytes), slab: Slab::default(), dropped: Vec::new() }
        }
        fn push(&mut self, packet: Packet<PFabric>) {
            let id = self.slab.insert(packet);
            self.queue.push(0, id, &mut self.slab, &mut self.dropped);
        }
        fn pop(&mut self) -> Option<(u32, u32)> {
            match Queue::<PFabric>::pop(&mut self.queue, 0, &mut self.slab, &mut self.dropped) {
                Pop::Packet(id) => Some((self.slab[id].flow.0, self.slab[id].segment())),
                _ => None,
            }
        }
    }

    #[test]
    fn the_best_flow_sends_its_earliest_packet() {
        let mut b = Bench::new(10_000);
        // Flow 2's second packet has the best rank, and its first, of a worse rank, goes before.
        for (flow, segment, rank) in [(1, 0, 500), (2, 0, 900), (2, 1, 100)] {
            b.push(packet(flow, segment, rank, 1000));
        }
        assert_eq!([b.pop(), b.pop(), b.pop(), b.pop()], [Some((2, 0)), Some((2, 1)), Some((1, 0)), None]);
    }

    #[test]
    fn a_full_queue_drops_the_worst_and_of_several_the_latest() {
        let mut b = Bench::new(3000);
        for (flow, rank) in [(1, 500), (2, 900), (3, 900), (4, 100)] {
            b.push(packet(flow, 0, rank, 1000));
        }
        assert_eq!(b.dropped.iter().map(|&id| b.slab[id].flow).collect::<Vec<_>>(), [3]);
        b.push(packet(5, 0, 1000, 1000));
        assert_eq!(b.slab[b.dropped[1]].flow, 5, "the packet that arrives is dropped if it is the worst");
        assert_eq!([b.pop(), b.pop(), b.pop()], [Some((4, 0)), Some((1, 0)), Some((2, 0))]);
    }

    #[test]
    fn random_arrivals_keep_the_room_the_order_and_every_packet() {
        for seed in 0..50 {
            let mut random = Stream::new(seed, "queue");
            let mut b = Bench::new(20_000);
            let (mut arrived, mut served, mut last) = (0, 0, IdVec::<FlowId, _>::filled(None, 8));
            for step in 0..2000 {
                if random.unit() < 0.6 {
                    let flow = random.below(8) as u32;
                    b.push(packet(flow, step, random.below(100) as u64, 64 + random.below(1437) as u32));
                    arrived += 1;
                } else {
                    let best = b.queue.waiting.iter().map(|e| e.rank).min();
                    let of_best: Vec<u32> =
                        b.queue.waiting.iter().filter(|e| Some(e.rank) == best).map(|e| e.flow.0.0).collect();
                    if let Some((flow, segment)) = b.pop() {
                        assert!(of_best.contains(&flow), "seed {seed}: flow {flow} is not the best");
                        let before = last[FlowId(flow)].replace(segment);
                        assert!(before < Some(segment), "seed {seed}: flow {flow} is out of order");
                        served += 1;
                    }
                }
                let bytes = b.queue.waiting.iter().map(|e| u64::from(e.bytes)).sum::<u64>();
                assert_eq!(b.queue.bytes, bytes);
                assert!(bytes <= 20_000, "seed {seed}");
            }
            assert_eq!(arrived, served + b.dropped.len() + b.queue.waiting.len(), "seed {seed}");
            assert!(!b.dropped.is_empty(), "seed {seed}: the queue must overflow");
        }
    }
}
