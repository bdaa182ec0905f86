//! Stochastic fair queues with CoDel: FQ-CoDel (RFC 8290), called sfqCoDel in Nichols' code for ns-2.
//!
//! A seeded hash of subflow and direction assigns packets to one of `bins` queues. Bins that become active are served
//! before those that stay active; among each, by deficit round robin with `quantum` bytes. CoDel (RFC 8289) drops at
//! the head of a bin whose queueing delay exceeded the target for an interval, and again after interval/sqrt(n) until
//! the delay is below the target. If the buffer is full, the longest bin drops a packet: at its head (RFC 8290,
//! section 4.1), or at its tail as in the code for ns-2.

use std::collections::VecDeque;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::rng::mix;
use subak_core::scheme::{Packet, PacketId, Param, Params, Pop, Port, Queue, Scheme, Slab};
use subak_core::{InputError, Ns};

/// Value of the parameter `queue` under which queues are fair.
const FAIR: &[&str] = &["sfq-codel"];

/// Parameter `target`: CoDel's target queueing delay.
pub const TARGET: Param = Param::number(
    "target",
    5e-3,
    ValueType::Time,
    "target queueing delay of CoDel; 0: a twentieth of the interval, at least a full packet's time",
)
.only("queue", FAIR);
/// Parameter `codel_interval`: time above the target before CoDel drops.
pub const INTERVAL: Param = Param::number(
    "codel_interval",
    100e-3,
    ValueType::Time,
    "time above the target after which CoDel drops; 0: the network's longest RTT",
)
.only("queue", FAIR);
/// Parameter `bins`: number of queues that flows are hashed to.
pub const BINS: Param = Param::number("bins", 1024.0, AMOUNT, "queues that flows are hashed to").only("queue", FAIR);
/// Parameter `quantum`: bytes that a queue may send per round of the round robin.
pub const QUANTUM: Param =
    Param::number("quantum", 1514.0, ValueType::Bytes, "quantum of a queue; 0: one packet, as in the ns-2 program")
        .only("queue", FAIR);
/// Parameter `overflow`: which packet a full buffer drops.
pub const OVERFLOW: Param = Param::choice(
    "overflow",
    &["head", "tail"],
    "packet of the longest queue that a full buffer drops: the first, as in RFC 8290, or the last, as in the ns-2 program",
).only("queue", FAIR);
/// Parameter `device`: packets in a FIFO behind the fair queues.
pub const DEVICE: Param = Param::number(
    "device",
    0.0,
    AMOUNT,
    "size of a FIFO behind the fair queues, as in a network card; ns-3 has at least one packet",
)
.only("queue", FAIR);

/// CoDel's target queueing delay, and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Target delay, ns.
    pub target_ns: Ns,
    /// Time for which the delay may exceed the target, ns.
    pub interval_ns: Ns,
}

/// CoDel's state of a queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codel {
    /// Time at which the delay will have exceeded the target for an interval, ns; `None` if it is below the target.
    due_ns: Option<Ns>,
    is_dropping: bool,
    next_ns: Ns,
    count: u32,
    /// Drop count at the start of the latest dropping state.
    began: u32,
}

impl Codel {
    /// Number of intervals within which a dropping state continues the count of the previous one.
    const MEMORY: Ns = 16;

    /// Whether to drop the packet at the head, which was queued for `waited_ns` and has `behind_bytes` behind it.
    /// Call it once per packet when the link is free. With at most a full packet behind, nothing is dropped.
    pub fn drops(&mut self, now_ns: Ns, timing: Timing, waited_ns: Ns, behind_bytes: u64, mtu_bytes: u32) -> bool {
        if waited_ns < timing.target_ns || behind_bytes <= u64::from(mtu_bytes) {
            self.due_ns = None;
            self.is_dropping = false;
            return false;
        }
        let is_due = match self.due_ns {
            None => {
                self.due_ns = Some(now_ns + timing.interval_ns);
                false
            }
            Some(due_ns) => now_ns >= due_ns,
        };
        match (is_due, self.is_dropping) {
            (false, _) => self.is_dropping = false,
            (true, false) => {
                self.begin(now_ns, timing.interval_ns);
                return true;
            }
            (true, true) if now_ns >= self.next_ns => {
                self.count += 1;
                self.next_ns += self.step_ns(timing.interval_ns);
                return true;
            }
            (true, true) => {}
        }
        false
    }

    /// Records that the queue is empty.
    pub fn on_empty(&mut self) {
        self.due_ns = None;
        self.is_dropping = false;
    }

    fn begin(&mut self, now_ns: Ns, interval_ns: Ns) {
        let reached = self.count - self.began;
        let is_recent = now_ns.saturating_sub(self.next_ns) < Self::MEMORY * interval_ns;
        self.count = if reached > 1 && is_recent { reached } else { 1 };
        self.began = self.count;
        self.is_dropping = true;
        self.next_ns = now_ns + self.step_ns(interval_ns);
    }

    /// Time to the next drop, ns.
    fn step_ns(&self, interval_ns: Ns) -> Ns {
        (interval_ns as f64 / f64::from(self.count).sqrt()) as Ns
    }
}

/// Parameters of the queues.
#[derive(Debug, Clone, Copy)]
pub struct SfqPlan {
    target_ns: Ns,
    interval_ns: Ns,
    bins: usize,
    quantum: u32,
    drops_tail: bool,
    device: usize,
}

impl SfqPlan {
    /// CoDel's target and interval, ns (0: computed from the link and the network's RTT), over `bins` queues with a
    /// quantum of `quantum` bytes (0: one packet). A full buffer drops the first packet of the longest queue.
    pub fn new(target_ns: Ns, interval_ns: Ns, bins: u16, quantum: u32) -> Self {
        SfqPlan { target_ns, interval_ns, bins: usize::from(bins.max(1)), quantum, drops_tail: false, device: 0 }
    }

    /// Reads [`TARGET`], [`INTERVAL`], [`BINS`], [`QUANTUM`], [`OVERFLOW`] and [`DEVICE`].
    pub fn of(params: &Params) -> Result<Self, InputError> {
        Ok(SfqPlan {
            target_ns: (params.within("target", 0.0, 10.0)? * 1e9).round() as Ns,
            interval_ns: (params.within("codel_interval", 0.0, 100.0)? * 1e9).round() as Ns,
            bins: params.whole("bins", 1.0, 65535.0)? as usize,
            quantum: params.within("quantum", 0.0, 1e6)? as u32,
            drops_tail: params.word("overflow") == "tail",
            device: params.whole("device", 0.0, 1e4)? as usize,
        })
    }

    /// CoDel's target and interval at `port`.
    pub fn timing(&self, port: &Port) -> Timing {
        let interval_ns = if self.interval_ns > 0 { self.interval_ns } else { port.rtt_ns.max(1) };
        let packet_ns = (f64::from(port.mtu_bytes) * 8e9 / port.capacity_bps.max(1.0)).ceil() as Ns;
        let scaled_ns = (interval_ns / 20).max(packet_ns);
        Timing { target_ns: if self.target_ns > 0 { self.target_ns } else { scaled_ns }, interval_ns }
    }

    /// The output queue of `port`.
    pub fn queue(&self, port: &Port) -> SfqCodel {
        SfqCodel {
            timing: self.timing(port),
            quantum: self.quantum,
            drops_tail: self.drops_tail,
            mtu_bytes: port.mtu_bytes,
            limit_bytes: port.buffer_bytes,
            seed: port.seed,
            place: vec![0; self.bins],
            bins: Vec::new(),
            fresh: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
            device: VecDeque::new(),
            device_room: self.device,
            device_bytes: 0,
        }
    }
}

/// Fair queues with CoDel and a common limit of bytes.
#[derive(Debug)]
pub struct SfqCodel {
    timing: Timing,
    quantum: u32,
    drops_tail: bool,
    mtu_bytes: u32,
    limit_bytes: u64,
    seed: u64,
    /// Index in `bins` plus one, by hash; 0 for a bin that was never used.
    place: Vec<u16>,
    bins: Vec<Bin>,
    /// Newly active bins, which are served first.
    fresh: VecDeque<u16>,
    /// Bins that stay active.
    old: VecDeque<u16>,
    /// Bytes in the fair queues, without the device.
    bytes: u64,
    packets: usize,
    /// Packets that have left the fair queues for the device's FIFO.
    device: VecDeque<PacketId>,
    device_room: usize,
    device_bytes: u64,
}

#[derive(Debug, Default)]
struct Bin {
    packets: VecDeque<PacketId>,
    bytes: u64,
    credit: i64,
    is_listed: bool,
    codel: Codel,
}

impl SfqCodel {
    fn bin<S: Scheme>(&mut self, packet: &Packet<S>) -> usize {
        let key = u64::from(packet.flow.0) << 16 | u64::from(packet.subflow) << 8 | packet.way as u64;
        let hash = (mix(key ^ self.seed) % self.place.len() as u64) as usize;
        if self.place[hash] == 0 {
            self.bins.push(Bin::default());
            self.place[hash] = self.bins.len() as u16;
        }
        usize::from(self.place[hash]) - 1
    }

    fn take<S: Scheme>(&mut self, bin: usize, slab: &Slab<S>, from_tail: bool) -> Option<PacketId> {
        let bin = &mut self.bins[bin];
        let packet = if from_tail { bin.packets.pop_back() } else { bin.packets.pop_front() }?;
        let bytes = u64::from(slab[packet].bytes);
        bin.bytes -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        Some(packet)
    }

    /// Next packet of a bin that CoDel does not drop.
    fn through<S: Scheme>(
        &mut self,
        now_ns: Ns,
        at: usize,
        slab: &Slab<S>,
        dropped: &mut Vec<PacketId>,
    ) -> Option<PacketId> {
        while let Some(packet) = self.take(at, slab, false) {
            let waited_ns = now_ns.saturating_sub(slab[packet].enqueued_ns);
            let bin = &mut self.bins[at];
            if !bin.codel.drops(now_ns, self.timing, waited_ns, bin.bytes, self.mtu_bytes) {
                return Some(packet);
            }
            dropped.push(packet);
        }
        self.bins[at].codel.on_empty();
        None
    }

    /// Next packet by deficit round robin.
    fn next<S: Scheme>(&mut self, now_ns: Ns, slab: &Slab<S>, dropped: &mut Vec<PacketId>) -> Option<PacketId> {
        loop {
            let is_fresh = !self.fresh.is_empty();
            let list = if is_fresh { &mut self.fresh } else { &mut self.old };
            let &number = list.front()?;
            let at = usize::from(number);
            if self.bins[at].credit <= 0 {
                list.pop_front();
                self.old.push_back(number);
                self.bins[at].credit += self.turn();
                continue;
            }
            if let Some(packet) = self.through(now_ns, at, slab, dropped) {
                self.bins[at].credit -= self.cost(slab[packet].bytes);
                return Some(packet);
            }
            // A newly active bin that becomes empty must wait a round before it counts as new again.
            if is_fresh {
                self.fresh.pop_front();
                self.old.push_back(number);
            } else {
                self.old.pop_front();
                self.bins[at].is_listed = false;
            }
        }
    }

    /// Moves packets from the fair queues to the device until it is full.
    fn fill<S: Scheme>(&mut self, now_ns: Ns, slab: &Slab<S>, dropped: &mut Vec<PacketId>) {
        while self.device.len() < self.device_room
            && let Some(packet) = self.next(now_ns, slab, dropped)
        {
            self.device_bytes += u64::from(slab[packet].bytes);
            self.device.push_back(packet);
        }
    }

    /// Quantum of a bin, bytes; one packet if the parameter `quantum` is 0.
    fn turn(&self) -> i64 {
        i64::from(self.quantum.max(1))
    }
    fn cost(&self, bytes: u32) -> i64 {
        if self.quantum == 0 { 1 } else { i64::from(bytes) }
    }
}

impl<S: Scheme> Queue<S> for SfqCodel {
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let (at, turn) = (self.bin(&slab[packet]), self.turn());
        let bytes = u64::from(slab[packet].bytes);
        let bin = &mut self.bins[at];
        bin.packets.push_back(packet);
        bin.bytes += bytes;
        self.bytes += bytes;
        self.packets += 1;
        if !std::mem::replace(&mut bin.is_listed, true) {
            bin.credit = turn;
            self.fresh.push_back(at as u16);
        }
        while self.bytes > self.limit_bytes {
            let longest = (0..self.bins.len()).max_by_key(|&k| (self.bins[k].bytes, std::cmp::Reverse(k)));
            let Some(victim) = longest.and_then(|k| self.take(k, slab, self.drops_tail)) else { break };
            dropped.push(victim);
        }
        self.fill(now_ns, slab, dropped);
    }

    fn pop(&mut self, now_ns: Ns, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) -> Pop {
        let first = self.device.pop_front();
        if let Some(packet) = first {
            self.device_bytes -= u64::from(slab[packet].bytes);
        }
        let Some(packet) = first.or_else(|| self.next(now_ns, slab, dropped)) else { return Pop::Empty };
        self.fill(now_ns, slab, dropped);
        Pop::Packet(packet)
    }

    fn first(&self) -> Option<PacketId> {
        let next = || {
            let &bin = self.fresh.front().or(self.old.front())?;
            self.bins[usize::from(bin)].packets.front()
        };
        self.device.front().or_else(next).copied()
    }

    fn bytes(&self) -> u64 {
        self.bytes + self.device_bytes
    }

    fn packets(&self) -> usize {
        self.packets + self.device.len()
    }
}

#[cfg(test)]
mod tests;
