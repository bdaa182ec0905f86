//! A fair queue, or a drop-tail FIFO, as a parameter of the scheme chooses.

use super::Fifo;
use subak_core::Ns;
use subak_core::scheme::{Class, PacketId, Pop, Queue, Scheme, Slab};

/// Output queue of a link: a fair queue `Q`, or a drop-tail FIFO.
#[derive(Debug)]
pub enum FairOrFifo<Q> {
    /// The fair queue.
    Fair(Q),
    /// The drop-tail FIFO.
    Fifo(Fifo),
}

impl<S: Scheme, Q: Queue<S>> Queue<S> for FairOrFifo<Q> {
    #[inline]
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        match self {
            FairOrFifo::Fair(queue) => queue.push(now_ns, packet, slab, dropped),
            FairOrFifo::Fifo(queue) => queue.push(now_ns, packet, slab, dropped),
        }
    }
    #[inline]
    fn pop(&mut self, now_ns: Ns, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) -> Pop {
        match self {
            FairOrFifo::Fair(queue) => queue.pop(now_ns, slab, dropped),
            FairOrFifo::Fifo(queue) => queue.pop(now_ns, slab, dropped),
        }
    }
    fn pause(&mut self, class: Class, on: bool) {
        match self {
            FairOrFifo::Fair(queue) => queue.pause(class, on),
            FairOrFifo::Fifo(queue) => Queue::<S>::pause(queue, class, on),
        }
    }
    fn first(&self) -> Option<PacketId> {
        match self {
            FairOrFifo::Fair(queue) => queue.first(),
            FairOrFifo::Fifo(queue) => Queue::<S>::first(queue),
        }
    }
    fn fixed_room_bytes(&self) -> Option<u64> {
        match self {
            FairOrFifo::Fair(queue) => queue.fixed_room_bytes(),
            FairOrFifo::Fifo(queue) => Queue::<S>::fixed_room_bytes(queue),
        }
    }
    fn bytes(&self) -> u64 {
        match self {
            FairOrFifo::Fair(queue) => queue.bytes(),
            FairOrFifo::Fifo(queue) => Queue::<S>::bytes(queue),
        }
    }
    fn packets(&self) -> usize {
        match self {
            FairOrFifo::Fair(queue) => queue.packets(),
            FairOrFifo::Fifo(queue) => Queue::<S>::packets(queue),
        }
    }
}
