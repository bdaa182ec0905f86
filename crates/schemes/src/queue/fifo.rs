//! Drop-tail FIFO.

use super::Paused;
use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::scheme::{Class, PacketId, Pop, Queue, Scheme, Slab};

/// A drop-tail queue of limited bytes.
#[derive(Debug, Clone)]
pub struct Fifo {
    waiting: VecDeque<PacketId>,
    bytes: u64,
    limit_bytes: u64,
    paused: Paused,
}

impl Fifo {
    /// An empty queue with room for `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Fifo { waiting: VecDeque::new(), bytes: 0, limit_bytes, paused: Paused::default() }
    }
}

impl<S: Scheme> Queue<S> for Fifo {
    #[inline]
    fn push(&mut self, _now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let bytes = u64::from(slab[packet].bytes);
        if self.bytes + bytes > self.limit_bytes {
            dropped.push(packet);
            return;
        }
        self.bytes += bytes;
        self.waiting.push_back(packet);
    }

    #[inline]
    fn pop(&mut self, _now_ns: Ns, slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        // A paused packet stops all packets behind it.
        let held = |&packet: &PacketId| !self.paused.is_none() && self.paused.holds(slab[packet].class);
        if self.waiting.front().is_some_and(held) {
            return Pop::Empty;
        }
        match self.waiting.pop_front() {
            Some(packet) => {
                self.bytes -= u64::from(slab[packet].bytes);
                Pop::Packet(packet)
            }
            None => Pop::Empty,
        }
    }

    fn pause(&mut self, class: Class, on: bool) {
        self.paused.set(class, on);
    }

    fn first(&self) -> Option<PacketId> {
        self.waiting.front().copied()
    }

    fn fixed_room_bytes(&self) -> Option<u64> {
        Some(self.limit_bytes)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.waiting.len()
    }
}
