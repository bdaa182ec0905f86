//! Approximate fair queueing: calendar queues in place of a sorted queue (Sharma, Liu, Atreya and Krishnamurthy, NSDI
//! 2018), with weights.
//!
//! Time is divided into rounds of equal virtual length. FIFO number r modulo K has the packets of round r, and is served
//! until it is empty; then the next round begins. A packet belongs to the round of its virtual start: the virtual finish
//! of its flow's previous packet, or the start of the present round if that is later. The paper takes the finish. With
//! starts an idle flow's packet always has a place, and many short rounds are start-time fair queueing.
//!
//! A packet of a round that has no FIFO yet is dropped, as in the paper, or put into the last round ([`Beyond`]). If the
//! queue has no data, its round begins at once. Virtual finishes are kept for each flow, or in a count-min sketch of
//! [`ROWS`] rows with conservative update, in which flows may share counters. ACKs and control packets have priority over
//! all data. A full buffer drops the arriving packet. Packets of one flow stay in order.

use super::control_first::{ControlFirst, Discipline};
use super::stfq::{StartTimes, VirtualLength, key_of, virtual_len};
use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::rng::mix;
use subak_core::scheme::{PacketId, Port, Scheme, Slab};

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

/// Calendar queues for data, and priority for the rest.
pub type Afq = ControlFirst<Calendar>;

/// Calendar queues: FIFOs that are served in turns.
#[derive(Debug)]
pub struct Calendar {
    fifos: Vec<VecDeque<PacketId>>,
    /// The round that is served.
    round: u64,
    /// Virtual length of a round.
    round_len: f64,
    beyond: Beyond,
    finishes: Finishes,
    packets: usize,
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
        let fifos = vec![VecDeque::new(); queues];
        ControlFirst::of(port, Calendar { fifos, round: 0, round_len, beyond, finishes, packets: 0 })
    }

    /// The round that is served.
    pub fn round(&self) -> u64 {
        self.data.round
    }
}

impl Calendar {
    fn place(&self, round: u64) -> usize {
        (round % self.fifos.len() as u64) as usize
    }

    /// Round of a packet of the flow `key` and its virtual length in rounds; `None` drops it. Updates the flow's finish.
    fn admit(&mut self, now_ns: Ns, key: u64, length: f64) -> Option<u64> {
        let start = self.finishes.get(key).max(self.round as f64);
        // A start far beyond what a u64 holds is converted to its maximum.
        let round = (start as u64).min(u64::MAX / 2);
        let rounds = self.fifos.len() as u64;
        let (round, start) = if round < self.round + rounds {
            (round, start)
        } else if self.packets == 0 {
            // All rounds before this one are empty.
            self.round = round;
            (round, start)
        } else if self.beyond == Beyond::Drop {
            return None;
        } else {
            let last = self.round + rounds - 1;
            (last, last as f64)
        };
        self.finishes.set(now_ns, key, start + length);
        Some(round)
    }

    #[cold]
    fn tidy<S: Scheme>(&mut self, now_ns: Ns, slab: &Slab<S>) {
        if let Finishes::Exact(times) = &mut self.finishes {
            times.leave(self.round as f64);
            times.tidy(now_ns, self.fifos.iter().flatten().map(|&packet| key_of(&slab[packet])));
        }
    }
}

impl<S: Scheme> Discipline<S> for Calendar
where
    S::Data: VirtualLength,
{
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &Slab<S>) -> bool {
        let length = virtual_len(&slab[packet]) / self.round_len;
        let Some(round) = self.admit(now_ns, key_of(&slab[packet]), length) else { return false };
        let at = self.place(round);
        self.fifos[at].push_back(packet);
        self.packets += 1;
        if matches!(&self.finishes, Finishes::Exact(times) if times.is_full()) {
            self.tidy(now_ns, slab);
        }
        true
    }

    fn pop(&mut self, _slab: &Slab<S>) -> Option<PacketId> {
        loop {
            let at = self.place(self.round);
            if let Some(packet) = self.fifos[at].pop_front() {
                self.packets -= 1;
                return Some(packet);
            }
            self.round += 1;
        }
    }
}
