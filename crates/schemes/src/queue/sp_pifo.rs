//! SP-PIFO: a few strict-priority FIFOs in place of a sorted queue (Alcoz, Dietmüller and Vanbever, NSDI 2020).
//!
//! A packet's rank is its virtual start under start-time fair queueing ([`Stfq`](super::Stfq)). Each FIFO has a bound.
//! From the lowest priority upwards, the first FIFO whose bound is at most the rank takes the packet, and the rank
//! becomes its bound (push-up). A rank below the bound of the highest priority goes there, and lowers the other bounds by
//! the difference (push-down).
//!
//! Ranks may leave out of order, also those of one flow. ACKs and control packets have a FIFO of their own with priority
//! over all data: under STFQ they start at V. A full buffer drops the arriving packet, which is not charged to its flow.

use super::control_first::{ControlFirst, Discipline};
use super::stfq::{StartTimes, VirtualLength, key_of, virtual_len};
use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::scheme::{PacketId, Port, Scheme, Slab};

/// SP-PIFO for data, and priority for the rest.
pub type SpPifo = ControlFirst<AdaptiveFifos>;

/// Strict-priority FIFOs with bounds that adapt to the ranks.
#[derive(Debug)]
pub struct AdaptiveFifos {
    /// FIFOs of data, highest priority first.
    fifos: Vec<Fifo>,
    times: StartTimes,
}

#[derive(Debug, Clone, Default)]
struct Fifo {
    /// Packets and their ranks.
    packets: VecDeque<(PacketId, f64)>,
    bound: f64,
}

impl SpPifo {
    /// `queues` empty FIFOs before `port`.
    pub fn new(port: &Port, queues: usize) -> Self {
        ControlFirst::of(port, AdaptiveFifos { fifos: vec![Fifo::default(); queues], times: StartTimes::new(port) })
    }

    /// Bounds of the FIFOs, highest priority first.
    pub fn bounds(&self) -> Vec<f64> {
        self.data.fifos.iter().map(|fifo| fifo.bound).collect()
    }
}

impl AdaptiveFifos {
    /// Adapts the bounds to `rank`, and returns the index of its FIFO.
    fn place(&mut self, rank: f64) -> usize {
        if let Some(at) = self.fifos.iter().rposition(|fifo| fifo.bound <= rank) {
            self.fifos[at].bound = rank;
            return at;
        }
        let cost = self.fifos[0].bound - rank;
        for fifo in &mut self.fifos {
            fifo.bound -= cost;
        }
        self.fifos[0].bound = rank;
        0
    }
}

impl<S: Scheme> Discipline<S> for AdaptiveFifos
where
    S::Data: VirtualLength,
{
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &Slab<S>) -> bool {
        let rank = self.times.start(now_ns, key_of(&slab[packet]), virtual_len(&slab[packet]));
        let at = self.place(rank);
        self.fifos[at].packets.push_back((packet, rank));
        if self.times.is_full() {
            let queued = self.fifos.iter().flat_map(|fifo| &fifo.packets).map(|&(packet, _)| key_of(&slab[packet]));
            self.times.tidy(now_ns, queued);
        }
        true
    }

    fn pop(&mut self, _slab: &Slab<S>) -> Option<PacketId> {
        let (packet, rank) = self.fifos.iter_mut().find_map(|fifo| fifo.packets.pop_front())?;
        self.times.leave(rank);
        Some(packet)
    }
}
