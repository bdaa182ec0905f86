//! Start-time fair queueing with weights that may change with every packet (NUMFabric, section 5, equations 12 and
//! 13).
//!
//! A data packet carries its virtual length, its length over its flow's weight. Its virtual start is the virtual finish
//! of its flow's previous packet, or the present virtual time V if that is later. V is the virtual start of the packet
//! that left last. Packets leave in the order of their starts. ACKs and control packets have a virtual length of zero
//! and start at V. V is never set back, even when the link becomes idle.
//!
//! A flow whose last packet finished at or before V has no effect, and its state is removed. The state of a flow
//! without queued packets is also removed after the time of [`IDLE_PACKETS`] full packets. The table is thus
//! proportional to the number of active flows. At a full queue, the packet of the largest virtual length is dropped,
//! the newest among equals.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use subak_core::Ns;
use subak_core::scheme::{Packet, PacketId, PacketKind, Pop, Port, Queue, Scheme, Slab};

/// A header that holds a virtual packet length.
pub trait VirtualLength {
    /// The packet's length over its flow's weight: finite and not negative.
    fn virtual_len(&self) -> f64;
}

/// Number of full packets, after a flow's last one, whose transmission time must pass before its state is removed.
pub const IDLE_PACKETS: u64 = 1000;
/// Minimum size of the flow table at which the state of idle flows is removed.
const FEW_FLOWS: usize = 64;

/// A start-time fair queue of limited bytes.
#[derive(Debug)]
pub struct Stfq {
    waiting: BinaryHeap<Reverse<StfqPacket>>,
    /// Number of arrivals; among equal starts packets leave in order of arrival.
    came: u64,
    times: StartTimes,
    bytes: u64,
    limit_bytes: u64,
}

/// Virtual time of a link, and the virtual finish of each flow's last packet.
#[derive(Debug)]
pub(super) struct StartTimes {
    /// Virtual time V: the virtual start of the packet that left last.
    virtual_time: f64,
    flows: HashMap<u64, StfqFlow, BuildHasherDefault<Spread>>,
    /// Flow-table size that triggers removal of idle flows.
    tidy_at: usize,
    idle_ns: Ns,
}

/// A queued packet. Virtual starts are not negative, so that their bits have the same order as the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StfqPacket {
    start_bits: u64,
    came: u64,
    packet: PacketId,
}

/// State of a flow.
#[derive(Debug, Clone, Copy)]
struct StfqFlow {
    /// Virtual finish of the flow's last packet.
    finish: f64,
    last_ns: Ns,
}

/// Hasher of flow numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    #[inline]
    fn write_u64(&mut self, key: u64) {
        let h = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = h ^ (h >> 32);
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Number of the packet's subflow among all.
#[inline]
pub(super) fn key_of<S: Scheme>(packet: &Packet<S>) -> u64 {
    u64::from(packet.flow.0) << 8 | u64::from(packet.subflow)
}

/// Virtual length of a packet: zero for everything but data.
#[inline]
pub(super) fn virtual_len<S: Scheme>(packet: &Packet<S>) -> f64
where
    S::Data: VirtualLength,
{
    if packet.kind == PacketKind::Data { packet.data.virtual_len() } else { 0.0 }
}

impl StartTimes {
    /// Times at `port`, without flows.
    pub(super) fn new(port: &Port) -> Self {
        let full_packet_ns = f64::from(port.mtu_bytes) * 8e9 / port.capacity_bps;
        StartTimes {
            virtual_time: 0.0,
            flows: HashMap::default(),
            tidy_at: FEW_FLOWS,
            idle_ns: (IDLE_PACKETS as f64 * full_packet_ns) as Ns,
        }
    }

    /// Virtual start of a packet of this virtual length (NUMFabric, equation 12); also updates the flow's virtual
    /// finish (equation 13).
    #[inline]
    pub(super) fn start(&mut self, now_ns: Ns, key: u64, length: f64) -> f64 {
        if length == 0.0 {
            return self.virtual_time;
        }
        let new = StfqFlow { finish: 0.0, last_ns: now_ns };
        let flow = self.flows.entry(key).or_insert(new);
        let start = flow.finish.max(self.virtual_time);
        *flow = StfqFlow { finish: start + length, last_ns: now_ns };
        start
    }

    /// Virtual finish of the flow's last packet; 0 without state.
    #[inline]
    pub(super) fn finish(&self, key: u64) -> f64 {
        self.flows.get(&key).map_or(0.0, |flow| flow.finish)
    }

    /// Sets the virtual finish of the flow's last packet.
    #[inline]
    pub(super) fn set_finish(&mut self, now_ns: Ns, key: u64, finish: f64) {
        self.flows.insert(key, StfqFlow { finish, last_ns: now_ns });
    }

    /// The packet with this virtual start leaves.
    #[inline]
    pub(super) fn leave(&mut self, start: f64) {
        self.virtual_time = self.virtual_time.max(start);
    }

    /// Number of flows in the table.
    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether the table has the size at which idle flows are removed.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.flows.len() >= self.tidy_at
    }

    /// Removes idle flows from the table: those that are not `queued`.
    #[cold]
    pub(super) fn tidy(&mut self, now_ns: Ns, queued: impl Iterator<Item = u64>) {
        let waiting: HashSet<u64, BuildHasherDefault<Spread>> = queued.collect();
        let (virtual_time, idle_ns) = (self.virtual_time, self.idle_ns);
        self.flows.retain(|key, flow| {
            flow.finish > virtual_time && (now_ns - flow.last_ns < idle_ns || waiting.contains(key))
        });
        self.tidy_at = FEW_FLOWS.max(2 * self.flows.len());
    }
}

impl Stfq {
    /// An empty queue of `port`.
    pub fn new(port: &Port) -> Self {
        Stfq {
            waiting: BinaryHeap::new(),
            came: 0,
            times: StartTimes::new(port),
            bytes: 0,
            limit_bytes: port.buffer_bytes,
        }
    }

    /// Number of flows in the table.
    pub fn flows(&self) -> usize {
        self.times.flows()
    }

    /// Drops the packet of the largest virtual length, the newest among equals.
    #[cold]
    fn drop_largest<S: Scheme>(&mut self, slab: &Slab<S>, dropped: &mut Vec<PacketId>)
    where
        S::Data: VirtualLength,
    {
        let by_length = |a: &StfqPacket, b: &StfqPacket| {
            virtual_len(&slab[a.packet]).total_cmp(&virtual_len(&slab[b.packet])).then(a.came.cmp(&b.came))
        };
        let Some(victim) = self.waiting.iter().map(|w| w.0).max_by(by_length) else { return };
        self.waiting.retain(|w| w.0.came != victim.came);
        let packet = &slab[victim.packet];
        self.bytes -= u64::from(packet.bytes);
        // The flow's next packet starts as if the dropped one had not arrived.
        let finish = f64::from_bits(victim.start_bits) + virtual_len(packet);
        if let Some(flow) = self.times.flows.get_mut(&key_of(packet))
            && flow.finish == finish
        {
            flow.finish = f64::from_bits(victim.start_bits);
        }
        dropped.push(victim.packet);
    }
}

impl<S: Scheme> Queue<S> for Stfq
where
    S::Data: VirtualLength,
{
    #[inline]
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let start = self.times.start(now_ns, key_of(&slab[packet]), virtual_len(&slab[packet]));
        debug_assert!(start >= 0.0 && start.is_finite());
        self.waiting.push(Reverse(StfqPacket { start_bits: start.to_bits(), came: self.came, packet }));
        self.came += 1;
        self.bytes += u64::from(slab[packet].bytes);
        while self.bytes > self.limit_bytes {
            self.drop_largest(slab, dropped);
        }
        if self.times.is_full() {
            self.times.tidy(now_ns, self.waiting.iter().map(|w| key_of(&slab[w.0.packet])));
        }
    }

    #[inline]
    fn pop(&mut self, _now_ns: Ns, slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        let Some(Reverse(next)) = self.waiting.pop() else { return Pop::Empty };
        self.times.leave(f64::from_bits(next.start_bits));
        self.bytes -= u64::from(slab[next.packet].bytes);
        Pop::Packet(next.packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.waiting.len()
    }
}
