//! Round robin over flows or over a few physical queues, by packets or by bytes, in proportion to weights.
//!
//! Deficit round robin is from Shreedhar and Varghese (SIGCOMM 1995). A visited queue may send its quantum of bytes,
//! and keeps the rest for the next round. Weighted round robin counts packets instead. The quantum is the weight of
//! the next packet's flow times a full packet. ACKs and control packets have priority over all data.
//!
//! With `queues` physical queues, flows are assigned by number, modulo the number of queues. Flows that share a queue
//! are served in order of arrival. At a full buffer the last packet of the longest queue is dropped.

use super::Paused;
use std::collections::{BTreeMap, VecDeque};
use subak_core::Ns;
use subak_core::scheme::{Class, Packet, PacketId, PacketKind, Pop, Queue, Scheme, Slab};

/// A header that carries its flow's weight.
pub trait Weighed {
    /// Weight, positive and finite.
    fn weight(&self) -> f64;
}

/// The unit of a quantum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantumUnit {
    /// Packets: weighted round robin.
    Packets,
    /// Bytes: deficit round robin.
    Bytes,
}

/// A round robin of limited bytes.
#[derive(Debug)]
pub struct RoundRobin {
    unit: QuantumUnit,
    /// Number of physical queues; `None`: one for each subflow.
    queues: Option<u64>,
    mtu_bytes: u32,
    first: VecDeque<PacketId>,
    waiting: BTreeMap<u64, RoundRobinPacket>,
    /// Queues with packets in round robin order; the visited one is in front.
    round: VecDeque<u64>,
    /// Whether the queue in front has received its quantum of this visit.
    has_quantum: bool,
    bytes: u64,
    packets: usize,
    limit_bytes: u64,
    paused: Paused,
}

#[derive(Debug, Default)]
struct RoundRobinPacket {
    packets: VecDeque<PacketId>,
    bytes: u64,
    deficit: f64,
}

impl RoundRobin {
    /// An empty round robin with full packets of `mtu_bytes` and a buffer of `limit_bytes`; `queues` of 0 gives each
    /// subflow one.
    pub fn new(unit: QuantumUnit, queues: u64, mtu_bytes: u32, limit_bytes: u64) -> Self {
        RoundRobin {
            unit,
            queues: Some(queues).filter(|&n| n > 0),
            mtu_bytes,
            first: VecDeque::new(),
            waiting: BTreeMap::new(),
            round: VecDeque::new(),
            has_quantum: false,
            bytes: 0,
            packets: 0,
            limit_bytes,
            paused: Paused::default(),
        }
    }

    fn key<S: Scheme>(&self, packet: &Packet<S>) -> u64 {
        let subflow = u64::from(packet.flow.0) << 8 | u64::from(packet.subflow);
        self.queues.map_or(subflow, |n| u64::from(packet.flow.0) % n)
    }

    /// Cost of a packet, and quantum of its flow, in the queue's unit.
    fn cost_and_quantum<S: Scheme>(&self, packet: &Packet<S>) -> (f64, f64)
    where
        S::Data: Weighed,
    {
        let weight = packet.data.weight().max(1e-9);
        match self.unit {
            QuantumUnit::Packets => (1.0, weight),
            QuantumUnit::Bytes => (f64::from(packet.bytes), weight * f64::from(self.mtu_bytes)),
        }
    }

    /// Adds the quanta of all rounds in which no queue could send a packet in one step, instead of visiting them.
    fn skip_rounds<S: Scheme>(&mut self, slab: &Slab<S>)
    where
        S::Data: Weighed,
    {
        let needs = |key: &u64| {
            let w = &self.waiting[key];
            let (cost, quantum) = self.cost_and_quantum(&slab[w.packets[0]]);
            ((cost - w.deficit) / quantum - 1.0).ceil().max(0.0)
        };
        let rounds = self.round.iter().map(needs).fold(f64::INFINITY, f64::min);
        if rounds > 0.0 && rounds.is_finite() {
            let quanta: Vec<(u64, f64)> = self
                .round
                .iter()
                .map(|key| (*key, self.cost_and_quantum(&slab[self.waiting[key].packets[0]]).1))
                .collect();
            for (key, quantum) in quanta {
                self.waiting.get_mut(&key).expect("it is in the round").deficit += rounds * quantum;
            }
        }
    }

    fn next<S: Scheme>(&mut self, slab: &Slab<S>) -> Option<PacketId>
    where
        S::Data: Weighed,
    {
        let mut visits = 0;
        loop {
            let key = *self.round.front()?;
            let head = self.waiting[&key].packets[0];
            let (cost, quantum) = self.cost_and_quantum(&slab[head]);
            let w = self.waiting.get_mut(&key).expect("it is in the round");
            if !std::mem::replace(&mut self.has_quantum, true) {
                w.deficit += quantum;
            }
            if w.deficit >= cost * (1.0 - 1e-12) {
                w.deficit -= cost;
                self.take(key, slab, false);
                return Some(head);
            }
            self.round.rotate_left(1);
            self.has_quantum = false;
            visits += 1;
            if visits == self.round.len() {
                self.skip_rounds(slab);
                visits = 0;
            }
        }
    }

    /// Removes the first or the last packet of a queue; an empty queue leaves the round and loses its deficit.
    fn take<S: Scheme>(&mut self, key: u64, slab: &Slab<S>, last: bool) -> Option<PacketId> {
        let w = self.waiting.get_mut(&key)?;
        let packet = if last { w.packets.pop_back() } else { w.packets.pop_front() }?;
        let bytes = u64::from(slab[packet].bytes);
        w.bytes -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        if w.packets.is_empty() {
            self.waiting.remove(&key);
            if self.round.front() == Some(&key) {
                self.has_quantum = false;
            }
            self.round.retain(|&k| k != key);
        }
        Some(packet)
    }
}

impl<S: Scheme> Queue<S> for RoundRobin
where
    S::Data: Weighed,
{
    fn push(&mut self, _now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        self.bytes += u64::from(slab[packet].bytes);
        self.packets += 1;
        if slab[packet].kind != PacketKind::Data {
            self.first.push_back(packet);
            return;
        }
        let key = self.key(&slab[packet]);
        let w = self.waiting.entry(key).or_default();
        if w.packets.is_empty() {
            self.round.push_back(key);
        }
        w.packets.push_back(packet);
        w.bytes += u64::from(slab[packet].bytes);
        while self.bytes > self.limit_bytes {
            let longest = self.waiting.iter().max_by_key(|(_, w)| w.bytes).map(|(key, _)| *key);
            let Some(victim) = longest.and_then(|key| self.take(key, slab, true)) else { break };
            dropped.push(victim);
        }
    }

    fn pop(&mut self, _now_ns: Ns, slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        if let Some(packet) = self.first.pop_front() {
            self.bytes -= u64::from(slab[packet].bytes);
            self.packets -= 1;
            return Pop::Packet(packet);
        }
        if Class::DATA.iter().any(|&class| self.paused.holds(class)) {
            return Pop::Empty;
        }
        self.next(slab).map_or(Pop::Empty, Pop::Packet)
    }

    fn pause(&mut self, class: Class, on: bool) {
        self.paused.set(class, on);
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrr::{Wrr, WrrHeader};
    use proptest::prelude::*;
    use subak_core::{FlowId, IdVec};

    fn packet(flow: u32, bytes: u32, weight: f64) -> Packet<Wrr> {
        Packet { bytes, data: WrrHeader::of(weight), ..Packet::blank(FlowId(flow)).carrying(0, bytes) }
    }

    /// Packets and bytes of each flow among the first `served` packets that leave. `flows` has each flow's packet size
    /// in bytes and its weight.
    fn served(unit: QuantumUnit, queues: u64, flows: &[(u32, f64)], served: usize) -> Vec<(usize, u64)> {
        let (mut slab, mut dropped) = (Slab::<Wrr>::default(), Vec::new());
        let mut queue = RoundRobin::new(unit, queues, 1500, u64::MAX);
        for _ in 0..served {
            for (flow, &(bytes, weight)) in (0..).zip(flows) {
                let id = slab.insert(packet(flow, bytes, weight));
                queue.push(0, id, &mut slab, &mut dropped);
            }
        }
        let mut got = IdVec::<FlowId, _>::filled((0, 0), flows.len());
        for _ in 0..served {
            let Pop::Packet(id) = queue.pop(0, &mut slab, &mut dropped) else { panic!("it is not empty") };
            let of = &mut got[slab[id].flow];
            *of = (of.0 + 1, of.1 + u64::from(slab[id].bytes));
        }
        got.into_raw()
    }

    #[test]
    fn packets_are_served_by_weight_whatever_their_sizes() {
        let got = served(QuantumUnit::Packets, 0, &[(1500, 1.0), (100, 2.0), (1500, 3.0)], 600);
        assert_eq!(got.iter().map(|g| g.0).collect::<Vec<_>>(), [100, 200, 300]);
    }

    #[test]
    fn deficits_serve_bytes_by_weight_whatever_the_sizes_of_packets() {
        let got = served(QuantumUnit::Bytes, 0, &[(1500, 1.0), (100, 1.0), (700, 2.5), (1499, 1e-3)], 3000);
        let share = |k: usize| got[k].1 as f64 / got[0].1 as f64;
        assert!((share(1) - 1.0).abs() < 0.03 && (share(2) - 2.5).abs() < 0.05, "{got:?}");
        assert!(share(3) < 0.02, "{got:?}");
    }

    #[test]
    fn weights_far_below_one_still_share_and_end() {
        let got = served(QuantumUnit::Bytes, 0, &[(1500, 1e-7), (1500, 3e-7)], 400);
        assert_eq!(got.iter().map(|g| g.0).collect::<Vec<_>>(), [100, 300]);
    }

    #[test]
    fn flows_of_one_physical_queue_share_what_it_has() {
        // Flows 0 and 2 share a queue, which serves them in order of arrival whatever their weights.
        let got = served(QuantumUnit::Packets, 2, &[(1500, 1.0), (1500, 1.0), (1500, 3.0)], 800);
        assert!(got[0].0.abs_diff(got[2].0) <= 1 && got[1].0 == 267, "{got:?}");
    }

    #[test]
    fn a_buffer_takes_all_its_bytes() {
        let (mut slab, mut dropped) = (Slab::<Wrr>::default(), Vec::new());
        let mut queue = RoundRobin::new(QuantumUnit::Packets, 0, 1500, 3000);
        for n in 0..3 {
            let id = slab.insert(packet(n, 1500, 1.0));
            queue.push(0, id, &mut slab, &mut dropped);
            assert_eq!(dropped.len(), n.saturating_sub(1) as usize);
        }
        assert_eq!(Queue::<Wrr>::bytes(&queue), 3000);
    }

    proptest! {
        /// Each packet leaves once or is dropped, flows stay in order, and the queue's counters balance.
        #[test]
        fn nothing_is_lost_or_doubled(
            steps in prop::collection::vec((0u32..6, 40u32..1500, 0.01f64..8.0, any::<bool>()), 1..300),
            queues in 0u64..4, by_bytes in any::<bool>(), limit in 2_000u64..50_000,
        ) {
            let (mut slab, mut dropped) = (Slab::<Wrr>::default(), Vec::new());
            let unit = if by_bytes { QuantumUnit::Bytes } else { QuantumUnit::Packets };
            let mut queue = RoundRobin::new(unit, queues, 1500, limit);
            let (mut came, mut left, mut last) = (0, 0, IdVec::<FlowId, _>::filled(None, 6));
            for (n, &(flow, bytes, weight, pops)) in steps.iter().enumerate() {
                let id = slab.insert(packet(flow, bytes, weight).carrying(n as u32, bytes));
                queue.push(0, id, &mut slab, &mut dropped);
                came += 1;
                if pops && let Pop::Packet(id) = queue.pop(0, &mut slab, &mut dropped) {
                    left += 1;
                    prop_assert!(last[slab[id].flow] < Some(slab[id].segment()));
                    last[slab[id].flow] = Some(slab[id].segment());
                }
                prop_assert!(Queue::<Wrr>::bytes(&queue) <= limit);
            }
            while let Pop::Packet(_) = queue.pop(0, &mut slab, &mut dropped) {
                left += 1;
            }
            prop_assert_eq!(left + dropped.len(), came);
            prop_assert_eq!((Queue::<Wrr>::bytes(&queue), Queue::<Wrr>::packets(&queue)), (0, 0));
        }
    }
}
