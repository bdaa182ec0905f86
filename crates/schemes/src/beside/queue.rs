//! The queue that several schemes share.

use super::Beside;
use crate::queue::{Fifo, Priority};
use subak_core::Ns;
use subak_core::scheme::{Class, PacketId, Pop, Queue, Slab};

/// A drop-tail FIFO, or one for each class if a scheme has classes.
#[derive(Debug, Clone)]
pub enum SharedQueue {
    /// One FIFO of this many bytes.
    Fifo(Fifo),
    /// Strict priority between classes.
    Priority(Priority),
}

/// The queue that a scheme has at a port.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wanted {
    /// A drop-tail FIFO of this many bytes.
    Fifo(u64),
    /// Strict priority between classes.
    Priority(Priority),
}

impl Wanted {
    /// A queue for the schemes that want `self` and `other`; `None` if there is none.
    pub fn with(self, other: Wanted) -> Option<Wanted> {
        let (one, two) = (self.room_bytes(), other.room_bytes());
        match (self, other) {
            (Wanted::Priority(one), Wanted::Priority(other)) => (one == other).then_some(Wanted::Priority(one)),
            (Wanted::Priority(kept), Wanted::Fifo(_)) | (Wanted::Fifo(_), Wanted::Priority(kept)) => {
                (one == two).then_some(Wanted::Priority(kept))
            }
            (kept, Wanted::Fifo(_)) => (one == two).then_some(kept),
        }
    }

    fn room_bytes(&self) -> u64 {
        match self {
            Wanted::Fifo(bytes) => *bytes,
            Wanted::Priority(queue) => queue.room_bytes(),
        }
    }

    pub fn queue(self) -> SharedQueue {
        match self {
            Wanted::Fifo(bytes) => SharedQueue::Fifo(Fifo::new(bytes)),
            Wanted::Priority(queue) => SharedQueue::Priority(queue),
        }
    }
}

impl SharedQueue {
    fn inner(&self) -> &dyn Queue<Beside> {
        match self {
            SharedQueue::Fifo(queue) => queue,
            SharedQueue::Priority(queue) => queue,
        }
    }
}

impl Queue<Beside> for SharedQueue {
    #[inline]
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<Beside>, dropped: &mut Vec<PacketId>) {
        match self {
            SharedQueue::Fifo(queue) => queue.push(now_ns, packet, slab, dropped),
            SharedQueue::Priority(queue) => queue.push(now_ns, packet, slab, dropped),
        }
    }
    #[inline]
    fn pop(&mut self, now_ns: Ns, slab: &mut Slab<Beside>, dropped: &mut Vec<PacketId>) -> Pop {
        match self {
            SharedQueue::Fifo(queue) => queue.pop(now_ns, slab, dropped),
            SharedQueue::Priority(queue) => queue.pop(now_ns, slab, dropped),
        }
    }
    fn pause(&mut self, class: Class, on: bool) {
        match self {
            SharedQueue::Fifo(queue) => Queue::<Beside>::pause(queue, class, on),
            SharedQueue::Priority(queue) => Queue::<Beside>::pause(queue, class, on),
        }
    }
    fn first(&self) -> Option<PacketId> {
        self.inner().first()
    }
    fn fixed_room_bytes(&self) -> Option<u64> {
        self.inner().fixed_room_bytes()
    }
    fn bytes(&self) -> u64 {
        self.inner().bytes()
    }
    fn packets(&self) -> usize {
        self.inner().packets()
    }
}
