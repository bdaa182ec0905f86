//! A small set of queues with different weights, in place of fair queues (NUMFabric, section 8).
//!
//! Queue k of K has the fixed weight low (high / low)^(k / (K - 1)). A packet goes to the queue whose weight is nearest
//! its flow's on a logarithmic scale. A queue's share of the link is its weight times the number of flows in it
//! ([`Share::Flows`]), or its weight alone ([`Share::Queue`]), which flows in one queue then divide. A flow counts in the
//! queue of its last packet, for one to two intervals of [`ACTIVE_PACKETS`] full packets.
//!
//! Queues are served by start-time fair queueing with one virtual finish a queue ([`Service::Wfq`]), or by deficit round
//! robin (Shreedhar and Varghese, SIGCOMM 1995; [`Service::Drr`]). Round robin forgets what a queue was served before it
//! became empty. Under Swift flows have about one packet queued, so that queues are often empty.
//!
//! A flow whose weight changes may have packets in two queues, which leave out of order.

use super::control_first::{ControlFirst, Discipline};
use super::stfq::{Spread, VirtualLength, key_of, virtual_len};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use subak_core::Ns;
use subak_core::scheme::{Packet, PacketId, Port, Scheme, Slab};

/// Full packets whose transmission time is the interval in which a flow counts.
pub const ACTIVE_PACKETS: f64 = 100.0;

/// A queue's share of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// The queue's weight times the number of its flows.
    Flows,
    /// The queue's weight.
    Queue,
}

/// The order in which queues are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Start-time fair queueing over the queues.
    Wfq,
    /// Deficit round robin.
    Drr,
}

/// Queues of fixed weights for data, and priority for the rest.
pub type WeightedQueues = ControlFirst<Weights>;

/// Queues of fixed weights.
#[derive(Debug)]
pub struct Weights {
    queues: Vec<WeightedQueue>,
    share: Share,
    low: f64,
    /// Queues for each factor of e in weight.
    per_e: f64,
    mtu_bytes: f64,
    flows: ActiveFlows,
    order: Order,
}

#[derive(Debug, Default)]
struct WeightedQueue {
    /// Packets, with their virtual starts under [`Service::Wfq`].
    packets: VecDeque<(PacketId, f64)>,
    /// Weight, as a fraction of the highest.
    weight: f64,
    /// Flows that count in this queue.
    flows: usize,
    /// Virtual finish of the last packet, bytes over weight; or the deficit, bytes.
    counter: f64,
}

/// State of the service.
#[derive(Debug)]
enum Order {
    /// Virtual time: the virtual start of the packet that left last.
    Wfq(f64),
    /// Queues with packets, of which the visited one is in front; and whether that one has received its quantum.
    Drr(VecDeque<usize>, bool),
}

/// Flows that sent in the present or the last interval.
#[derive(Debug)]
struct ActiveFlows {
    /// By flow: the queue of its last packet, and the packet's interval.
    last: HashMap<u64, (usize, u64), BuildHasherDefault<Spread>>,
    interval_ns: Ns,
    interval: u64,
}

impl ActiveFlows {
    /// A packet of the flow `key` goes to queue `at`.
    fn see(&mut self, now_ns: Ns, key: u64, at: usize, queues: &mut [WeightedQueue]) {
        let interval = now_ns / self.interval_ns;
        if interval != self.interval {
            self.interval = interval;
            self.last.retain(|_, &mut (before, seen)| {
                let is_active = seen + 1 >= interval;
                queues[before].flows -= usize::from(!is_active);
                is_active
            });
        }
        queues[at].flows += 1;
        if let Some((before, _)) = self.last.insert(key, (at, interval)) {
            queues[before].flows -= 1;
        }
    }
}

impl WeightedQueues {
    /// `queues` empty queues before `port`, with weights from `low` to `high`.
    pub fn new(port: &Port, queues: usize, (low, high): (f64, f64), share: Share, service: Service) -> Self {
        let ratio = (high / low).max(1.0);
        let steps = (queues - 1) as f64;
        let weight = |k: usize| if steps > 0.0 { libm::pow(ratio, k as f64 / steps - 1.0) } else { 1.0 };
        let interval_ns = ACTIVE_PACKETS * f64::from(port.mtu_bytes) * 8e9 / port.capacity_bps;
        let data = Weights {
            queues: (0..queues).map(|k| WeightedQueue { weight: weight(k), ..WeightedQueue::default() }).collect(),
            share,
            low,
            per_e: if ratio > 1.0 { steps / libm::log(ratio) } else { 0.0 },
            mtu_bytes: f64::from(port.mtu_bytes),
            flows: ActiveFlows { last: HashMap::default(), interval_ns: (interval_ns as Ns).max(1), interval: 0 },
            order: match service {
                Service::Wfq => Order::Wfq(0.0),
                Service::Drr => Order::Drr(VecDeque::new(), false),
            },
        };
        ControlFirst::of(port, data)
    }

    /// Index of the queue for a weight.
    pub fn place(&self, weight: f64) -> usize {
        self.data.place(weight)
    }
}

impl Weights {
    fn place(&self, weight: f64) -> usize {
        let at = (libm::log(weight / self.low) * self.per_e).round();
        at.clamp(0.0, (self.queues.len() - 1) as f64) as usize
    }

    fn place_of<S: Scheme>(&self, packet: &Packet<S>) -> usize
    where
        S::Data: VirtualLength,
    {
        let length = virtual_len(packet);
        // A length of zero is that of an infinite weight.
        if length > 0.0 { self.place(f64::from(packet.bytes) * 8.0 / length) } else { self.queues.len() - 1 }
    }

    /// Weight of a queue for its share of the link.
    fn share_of(&self, at: usize) -> f64 {
        let WeightedQueue { weight, flows, .. } = self.queues[at];
        // Packets may be left when their flow no longer counts.
        if self.share == Share::Flows { weight * flows.max(1) as f64 } else { weight }
    }

    /// The packet of the smallest virtual start; among equals that of the lowest queue.
    fn pop_earliest(&mut self) -> Option<PacketId> {
        let heads = self.queues.iter().enumerate().filter_map(|(at, queue)| Some((at, queue.packets.front()?.1)));
        let (at, start) = heads.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        if let Order::Wfq(virtual_time) = &mut self.order {
            *virtual_time = virtual_time.max(start);
        }
        Some(self.queues[at].packets.pop_front()?.0)
    }

    /// The next packet by deficit round robin.
    fn pop_in_round<S: Scheme>(&mut self, slab: &Slab<S>) -> Option<PacketId> {
        let cost = |queue: &WeightedQueue| f64::from(slab[queue.packets[0].0].bytes);
        let quanta: Vec<f64> = (0..self.queues.len()).map(|at| self.share_of(at) * self.mtu_bytes).collect();
        let Order::Drr(round, has_quantum) = &mut self.order else { return None };
        let mut visits = 0;
        loop {
            let at = *round.front()?;
            let queue = &mut self.queues[at];
            if !std::mem::replace(has_quantum, true) {
                queue.counter += quanta[at];
            }
            let bytes = cost(queue);
            if queue.counter >= bytes * (1.0 - 1e-12) {
                queue.counter -= bytes;
                let packet = queue.packets.pop_front()?.0;
                if queue.packets.is_empty() {
                    // An empty queue leaves the round and loses its deficit.
                    queue.counter = 0.0;
                    round.pop_front();
                    *has_quantum = false;
                }
                return Some(packet);
            }
            round.rotate_left(1);
            *has_quantum = false;
            visits += 1;
            if visits == round.len() {
                // The quanta of all rounds in which no queue could send are added in one step.
                let needs = |&at: &usize| {
                    let queue = &self.queues[at];
                    ((cost(queue) - queue.counter) / quanta[at] - 1.0).ceil().max(0.0)
                };
                let rounds = round.iter().map(needs).fold(f64::INFINITY, f64::min);
                for &at in &*round {
                    self.queues[at].counter += rounds * quanta[at];
                }
                visits = 0;
            }
        }
    }
}

impl<S: Scheme> Discipline<S> for Weights
where
    S::Data: VirtualLength,
{
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &Slab<S>) -> bool {
        let at = self.place_of(&slab[packet]);
        self.flows.see(now_ns, key_of(&slab[packet]), at, &mut self.queues);
        let share = self.share_of(at);
        let queue = &mut self.queues[at];
        let start = match &mut self.order {
            Order::Wfq(virtual_time) => {
                let start = queue.counter.max(*virtual_time);
                queue.counter = start + f64::from(slab[packet].bytes) / share;
                start
            }
            Order::Drr(round, _) => {
                if queue.packets.is_empty() {
                    round.push_back(at);
                }
                0.0
            }
        };
        queue.packets.push_back((packet, start));
        true
    }

    fn pop(&mut self, slab: &Slab<S>) -> Option<PacketId> {
        match self.order {
            Order::Wfq(_) => self.pop_earliest(),
            Order::Drr(..) => self.pop_in_round(slab),
        }
    }
}
