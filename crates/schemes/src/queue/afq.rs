//! Approximate fair queueing: calendar queues in place of a sorted queue (Sharma, Liu, Atreya and Krishnamurthy, NSDI
//! 2018), with weights.
//!
//! Time is divided into rounds of equal virtual length. FIFO number r modulo K has the packets of round r, and is served
//! until it is empty; then the next round begins. A packet belongs to the round of its virtual start: the virtual finish
//! of its flow's previous packet, or the start of the present round if that is later. The paper takes the finish. With
//! starts an idle flow's packet always has a place, and many short rounds are start-time fair queueing.
//!
//! A packet of a round that has no FIFO yet is dropped, as in the paper, or put into the last round ([`Beyond`]). Virtual
//! finishes are kept for each flow, or in a count-min sketch of [`ROWS`] rows with conservative update, in which flows
//! may share counters. ACKs and control packets have priority over all data. A full buffer drops the arriving packet.
//! Packets of one flow stay in order.

use super::stfq::{StartTimes, VirtualLength, key_of, virtual_len};
use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::rng::mix;
use subak_core::scheme::{PacketId, PacketKind, Pop, Port, Queue, Scheme, Slab};

/// Number of rows of the count-min sketch.
pub const ROWS: usize = 2;

/// Treatment of packets of rounds that have no FIFO yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// Dropped.
    Drop,
    /// Put into the last round; the flow's virtual finish is that of a packet of this round.
    Last,
}

/// Calendar queues: FIFOs that are served in turns.
#[derive(Debug)]
pub struct Afq {
    first: VecDeque<PacketId>,
    fifos: Vec<VecDeque<PacketId>>,
    /// The round that is served.
    round: u64,
    /// Virtual length of a round.
    round_len: f64,
    beyond: Beyond,
    finishes: Finishes,
    /// Queued data packets.
    data: usize,
    bytes: u64,
    limit_bytes: u64,
}

/// Virtual finish of each flow's last packet, in rounds.
#[derive(Debug)]
enum Finishes {
    Exact(StartTimes),
    /// Rows of counters, one after the other; and the ports' seed of the hashes.
    Sketch {
        counters: Vec<f64>,
        seed: u64,
    },
}

impl Finishes {
    /// Positions of a flow's counters in a sketch of so many counters.
    fn places(key: u64, seed: u64, counters: usize) -> [usize; ROWS] {
        let columns = counters / ROWS;
        std::array::from_fn(|row| row * columns + (mix(mix(seed ^ row as u64) ^ key) % columns as u64) as usize)
    }

    fn get(&self, key: u64) -> f64 {
        match self {
            Finishes::Exact(times) => times.finish(key),
            Finishes::Sketch { counters, seed } => {
                let places = Self::places(key, *seed, counters.len());
                places.into_iter().map(|at| counters[at]).fold(f64::INFINITY, f64::min)
            }
        }
    }

    fn set(&mut self, now_ns: Ns, key: u64, finish: f64) {
        match self {
            Finishes::Exact(times) => times.set_finish(now_ns, key, finish),
            Finishes::Sketch { counters, seed } => {
                for at in Self::places(key, *seed, counters.len()) {
                    counters[at] = counters[at].max(finish);
                }
            }
        }
    }
}

impl Afq {
    /// `queues` empty FIFOs before `port`, with rounds of the virtual length `round_len`. The sketch has `columns`
    /// counters a row; 0 keeps each flow's finish.
    pub fn new(port: &Port, queues: usize, round_len: f64, beyond: Beyond, columns: usize) -> Self {
        let finishes = match columns {
            0 => Finishes::Exact(StartTimes::new(port)),
            _ => Finishes::Sketch { counters: vec![0.0; ROWS * columns], seed: port.seed },
        };
        Afq {
            first: VecDeque::new(),
            fifos: vec![VecDeque::new(); queues],
            round: 0,
            round_len,
            beyond,
            finishes,
            data: 0,
            bytes: 0,
            limit_bytes: port.buffer_bytes,
        }
    }

    /// The round that is served.
    pub fn round(&self) -> u64 {
        self.round
    }

    fn place(&self, round: u64) -> usize {
        (round % self.fifos.len() as u64) as usize
    }

    /// Round of a packet of the flow `key` and its virtual length in rounds; `None` drops it. Updates the flow's finish.
    fn admit(&mut self, now_ns: Ns, key: u64, length: f64) -> Option<u64> {
        let start = self.finishes.get(key).max(self.round as f64);
        let last = self.round + self.fifos.len() as u64 - 1;
        // A start far beyond what a u64 holds is converted to its maximum.
        let (round, start) = match start as u64 {
            round if round <= last => (round, start),
            _ if self.beyond == Beyond::Drop => return None,
            _ => (last, last as f64),
        };
        self.finishes.set(now_ns, key, start + length);
        Some(round)
    }

    fn next_data(&mut self) -> Option<PacketId> {
        if self.data == 0 {
            return None;
        }
        self.data -= 1;
        loop {
            let at = self.place(self.round);
            if let Some(packet) = self.fifos[at].pop_front() {
                return Some(packet);
            }
            self.round += 1;
        }
    }

    #[cold]
    fn tidy<S: Scheme>(&mut self, now_ns: Ns, slab: &Slab<S>) {
        if let Finishes::Exact(times) = &mut self.finishes {
            times.leave(self.round as f64);
            times.tidy(now_ns, self.fifos.iter().flatten().map(|&packet| key_of(&slab[packet])));
        }
    }
}

impl<S: Scheme> Queue<S> for Afq
where
    S::Data: VirtualLength,
{
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let bytes = u64::from(slab[packet].bytes);
        if self.bytes + bytes > self.limit_bytes {
            dropped.push(packet);
            return;
        }
        if slab[packet].kind == PacketKind::Data {
            let length = virtual_len(&slab[packet]) / self.round_len;
            let Some(round) = self.admit(now_ns, key_of(&slab[packet]), length) else {
                dropped.push(packet);
                return;
            };
            let at = self.place(round);
            self.fifos[at].push_back(packet);
            self.data += 1;
        } else {
            self.first.push_back(packet);
        }
        self.bytes += bytes;
        if matches!(&self.finishes, Finishes::Exact(times) if times.is_full()) {
            self.tidy(now_ns, slab);
        }
    }

    fn pop(&mut self, _now_ns: Ns, slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        let Some(packet) = self.first.pop_front().or_else(|| self.next_data()) else { return Pop::Empty };
        self.bytes -= u64::from(slab[packet].bytes);
        Pop::Packet(packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.first.len() + self.data
    }
}
