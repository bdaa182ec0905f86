//! Strict priority between classes, FIFO within each. Each class of data has a limit of its own, so that lower
//! classes cause no drops of higher ones.

use super::Paused;
use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::scheme::{Class, PacketId, PacketKind, Pop, Queue, Scheme, Slab};

const CLASSES: usize = 3;

/// Strict priority: control, then high, then low. Control packets are never dropped: the schemes that send them limit
/// their rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Priority {
    waiting: [VecDeque<PacketId>; CLASSES],
    bytes: [u64; CLASSES],
    limit_bytes: u64,
    paused: Paused,
    /// Whether ACKs have priority at their own host's link.
    acks_first: bool,
    /// Number of ACKs at the head of each class.
    acks: [usize; CLASSES],
}

impl Priority {
    /// An empty queue with a limit of `limit_bytes` for each class of data.
    pub fn new(limit_bytes: u64) -> Self {
        Priority {
            waiting: Default::default(),
            bytes: [0; CLASSES],
            limit_bytes,
            paused: Paused::default(),
            acks_first: false,
            acks: [0; CLASSES],
        }
    }

    /// Limit of each class of data, bytes.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Sets whether ACKs have priority over the data of their class at their own host's link.
    #[must_use]
    pub fn with_acks_first_at_nic(self, acks_first: bool) -> Self {
        Priority { acks_first, ..self }
    }
}

impl<S: Scheme> Queue<S> for Priority {
    #[inline]
    fn push(&mut self, _now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        let bytes = u64::from(slab[packet].bytes);
        let class = slab[packet].class;
        if class != Class::Control && self.bytes[class.place()] + bytes > self.limit_bytes {
            dropped.push(packet);
            return;
        }
        self.bytes[class.place()] += bytes;
        let class = class.place();
        if self.acks_first && slab[packet].kind == PacketKind::Ack && slab[packet].hop == 0 {
            self.waiting[class].insert(self.acks[class], packet);
            self.acks[class] += 1;
        } else {
            self.waiting[class].push_back(packet);
        }
    }

    #[inline]
    fn pop(&mut self, _now_ns: Ns, slab: &mut Slab<S>, _dropped: &mut Vec<PacketId>) -> Pop {
        for (k, (class, bytes)) in self.waiting.iter_mut().zip(&mut self.bytes).enumerate() {
            if self.paused.holds_number(k) {
                continue;
            }
            if let Some(packet) = class.pop_front() {
                *bytes -= u64::from(slab[packet].bytes);
                self.acks[k] = self.acks[k].saturating_sub(1);
                return Pop::Packet(packet);
            }
        }
        Pop::Empty
    }

    fn pause(&mut self, class: Class, on: bool) {
        self.paused.set(class, on);
    }

    fn first(&self) -> Option<PacketId> {
        self.waiting.iter().find_map(|class| class.front().copied())
    }

    fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    fn packets(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }
}
