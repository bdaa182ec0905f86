//! Strict priority between the classes, first in, first out within each; one room for all.

use std::collections::VecDeque;
use subak_core::Ns;
use subak_core::scheme::{Class, Pop, Queue, Scheme, Slab};

const CLASSES: usize = 3;

/// Control before high before low. Control packets are never dropped for want of room: the schemes that send them
/// limit their rate.
#[derive(Debug, Clone)]
pub struct Priority {
    waiting: [VecDeque<u32>; CLASSES],
    bytes: u64,
    limit_bytes: u64,
}

impl Priority {
    /// An empty queue with room for `limit_bytes` of data.
    pub fn new(limit_bytes: u64) -> Self {
        Priority { waiting: Default::default(), bytes: 0, limit_bytes }
    }
}

impl<S: Scheme> Queue<S> for Priority {
    #[inline]
    fn push(&mut self, _now_ns: Ns, packet: u32, slab: &mut Slab<S>, dropped: &mut Vec<u32>) {
        let bytes = u64::from(slab[packet].bytes);
        let class = slab[packet].class;
        if class != Class::Control && self.bytes + bytes > self.limit_bytes {
            dropped.push(packet);
            return;
        }
        self.bytes += bytes;
        self.waiting[class as usize].push_back(packet);
    }

    #[inline]
    fn pop(&mut self, _now_ns: Ns, slab: &mut Slab<S>, _dropped: &mut Vec<u32>) -> Pop {
        for class in &mut self.waiting {
            if let Some(packet) = class.pop_front() {
                self.bytes -= u64::from(slab[packet].bytes);
                return Pop::Packet(packet);
            }
        }
        Pop::Empty
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }
}
