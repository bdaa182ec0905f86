//! pFabric's queue (Alizadeh et al., SIGCOMM 2013, section 4.2): a small buffer that prefers packets of the flows
//! with the fewest remaining bytes.
//!
//! When full, it drops the packet of the lowest priority, the latest among equals. It serves the flow whose packet
//! has the highest priority, the first among equals. Of that flow it sends the earliest packet, so that a flow's
//! packets stay in order.

use std::collections::BTreeMap;
use subak_core::scheme::{Packet, PacketId, PacketKind, Pop, Queue, Scheme, Slab};
use subak_core::{FlowId, Ns, SubflowId};

/// A scheme whose packets have a rank; lower ranks are served first.
pub trait Ranked: Scheme {
    /// The packet's rank: remaining bytes of its flow.
    fn rank(packet: &Packet<Self>) -> u64;
}

/// pFabric's queue. Up to 128 packets are searched linearly, which is fastest. More packets are kept sorted: a
/// host's own queue may have a window of hundreds of thousands.
#[derive(Debug, Clone)]
pub struct PFabricQueue {
    /// Packets in order of arrival; empty if they are kept in `many`.
    few: Vec<PfabricEntry>,
    many: Option<Box<Many>>,
    bytes: u64,
    limit_bytes: u64,
}

/// Number of packets above which the queue sorts them, until half as many are left.
const FEW: usize = 128;

/// Key of packets that must stay in order among themselves.
type Line = (FlowId, SubflowId, PacketKind);

#[derive(Debug, Clone, Copy)]
struct PfabricEntry {
    packet: PacketId,
    bytes: u32,
    rank: u64,
    flow: Line,
}

/// Packets sorted by rank and by flow; among equals by arrival number.
#[derive(Debug, Clone, Default)]
struct Many {
    by_rank: BTreeMap<(u64, u64), Line>,
    by_flow: BTreeMap<(Line, u64), PfabricEntry>,
    arrived: u64,
}

impl Many {
    fn push(&mut self, entry: PfabricEntry) {
        self.by_rank.insert((entry.rank, self.arrived), entry.flow);
        self.by_flow.insert((entry.flow, self.arrived), entry);
        self.arrived += 1;
    }

    fn worst(&mut self) -> Option<PfabricEntry> {
        let ((_, arrival), flow) = self.by_rank.pop_last()?;
        self.by_flow.remove(&(flow, arrival))
    }

    fn best(&mut self) -> Option<PfabricEntry> {
        let flow = *self.by_rank.first_key_value()?.1;
        let (&at, _) = self.by_flow.range((flow, 0)..).next()?;
        let entry = self.by_flow.remove(&at)?;
        self.by_rank.remove(&(entry.rank, at.1));
        Some(entry)
    }

    fn in_order(self) -> Vec<PfabricEntry> {
        let mut entries: Vec<(u64, PfabricEntry)> =
            self.by_flow.into_iter().map(|((_, at), entry)| (at, entry)).collect();
        entries.sort_unstable_by_key(|(at, _)| *at);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

impl PFabricQueue {
    /// An empty queue with room for `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        PFabricQueue { few: Vec::new(), many: None, bytes: 0, limit_bytes }
    }

    fn put(&mut self, entry: PfabricEntry) {
        self.bytes += u64::from(entry.bytes);
        if let Some(many) = &mut self.many {
            many.push(entry);
            return;
        }
        self.few.push(entry);
        if self.few.len() > FEW {
            let mut many = Many::default();
            self.few.drain(..).for_each(|entry| many.push(entry));
            self.many = Some(Box::new(many));
        }
    }

    fn worst(&mut self) -> Option<PfabricEntry> {
        let entry = match &mut self.many {
            Some(many) => many.worst()?,
            None => {
                let worst = (0..self.few.len()).max_by_key(|&at| self.few[at].rank)?;
                self.few.remove(worst)
            }
        };
        Some(self.without(entry))
    }

    fn best(&mut self) -> Option<PfabricEntry> {
        let entry = match &mut self.many {
            Some(many) => many.best()?,
            None => {
                let flow = self.few.iter().min_by_key(|entry| entry.rank)?.flow;
                let first = self.few.iter().position(|entry| entry.flow == flow)?;
                self.few.remove(first)
            }
        };
        Some(self.without(entry))
    }

    /// Subtracts the removed `entry` from the byte count, and returns it.
    fn without(&mut self, entry: PfabricEntry) -> PfabricEntry {
        self.bytes -= u64::from(entry.bytes);
        if let Some(many) = self.many.take_if(|many| many.by_flow.len() <= FEW / 2) {
            self.few = many.in_order();
        }
        entry
    }
}

impl<S: Ranked> Queue<S> for PFabricQueue {
    fn push(&mut self, _now_ns: Ns, id: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let packet = &slab[id];
        let flow = (packet.flow, packet.subflow, packet.kind);
        self.put(PfabricEntry { packet: id, bytes: packet.bytes, rank: S::rank(packet), flow });
        while self.bytes > self.limit_bytes {
            let Some(worst) = self.worst() else { return };
            dropped.push(worst.packet);
        }
    }

    fn pop(&mut self, _now_ns: Ns, _slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        self.best().map_or(Pop::Empty, |entry| Pop::Packet(entry.packet))
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.many.as_ref().map_or(self.few.len(), |many| many.by_flow.len())
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
        fn waiting(&self) -> Vec<PfabricEntry> {
            self.queue.many.clone().map_or(self.queue.few.clone(), |many| many.in_order())
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
                    let waiting = b.waiting();
                    let best = waiting.iter().map(|e| e.rank).min();
                    let of_best: Vec<u32> =
                        waiting.iter().filter(|e| Some(e.rank) == best).map(|e| e.flow.0.0).collect();
                    if let Some((flow, segment)) = b.pop() {
                        assert!(of_best.contains(&flow), "seed {seed}: flow {flow} is not the best");
                        let before = last[FlowId(flow)].replace(segment);
                        assert!(before < Some(segment), "seed {seed}: flow {flow} is out of order");
                        served += 1;
                    }
                }
                let bytes = b.waiting().iter().map(|e| u64::from(e.bytes)).sum::<u64>();
                assert_eq!(b.queue.bytes, bytes);
                assert!(bytes <= 20_000, "seed {seed}");
            }
            assert_eq!(arrived, served + b.dropped.len() + b.waiting().len(), "seed {seed}");
            assert!(!b.dropped.is_empty(), "seed {seed}: the queue must overflow");
        }
    }

    #[test]
    fn many_are_served_and_dropped_as_few_are() {
        // Compared with a simple model of the rules, while the queue repeatedly grows above FEW packets and shrinks
        // below.
        for seed in 0..20 {
            let mut random = Stream::new(seed, "many");
            let mut b = Bench::new(300_000);
            let mut model: Vec<(u64, u32, u32, u64)> = Vec::new();
            let mut dropped = Vec::new();
            for step in 0..4000 {
                let grows = (step / 500) % 2 == 0;
                if random.unit() < if grows { 0.9 } else { 0.2 } {
                    let (flow, rank, bytes) = (random.below(8) as u32, random.below(40) as u64, 1000);
                    b.push(packet(flow, step, rank, bytes));
                    model.push((rank, flow, step, u64::from(bytes)));
                    while model.iter().map(|p| p.3).sum::<u64>() > 300_000 {
                        let worst = (0..model.len()).max_by_key(|&at| (model[at].0, model[at].2)).unwrap();
                        dropped.push(model.remove(worst).2);
                    }
                } else {
                    let flow = model.iter().min_by_key(|p| (p.0, p.2)).map(|p| p.1);
                    let first = model.iter().position(|p| Some(p.1) == flow);
                    assert_eq!(
                        b.pop(),
                        first.map(|at| model.remove(at)).map(|p| (p.1, p.2)),
                        "seed {seed}, step {step}"
                    );
                }
            }
            let told: Vec<u32> = b.dropped.iter().map(|&id| b.slab[id].segment()).collect();
            assert_eq!(told, dropped, "seed {seed}");
            assert!(!dropped.is_empty());
        }
    }
}
