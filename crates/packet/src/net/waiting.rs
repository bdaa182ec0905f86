//! Queues whose departures are fixed at arrival: the packets that wait, and the position in the order of events up to
//! which they have left.

use super::serializer::TICKS_PER_NS;
use crate::event::{Event, Packed};
use crate::wheel::Tied;
use std::collections::VecDeque;
use subak_core::scheme::{PacketId, PacketKind};
use subak_core::{LinkId, Ns};

/// Position in the order of events: the event handled last. All events before it have been handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handled {
    ns: Ns,
    /// Order value (draw) of the event handled last; above all draws if all events of this nanosecond have been
    /// handled.
    draw: u32,
    last: Packed,
}

impl Handled {
    /// The position in the order of events after all events up to `ns`.
    pub fn all(ns: Ns) -> Self {
        Handled { ns, draw: u32::MAX, last: Event::Wake(LinkId(0), PacketId(0)).into() }
    }

    /// The position in the order of events before the first one.
    pub fn none() -> Self {
        Handled { draw: 0, ..Handled::all(0) }
    }

    /// Advances the position to `event`, which is about to be handled.
    #[inline]
    pub fn go_on(&mut self, ns: Ns, draw: u16, event: Packed) {
        let next = Handled { ns, draw: draw.into(), last: event };
        // An event scheduled for the same nanosecond may have a lower order value; the position never moves back.
        *self = if ns > self.ns { next } else { self.later(next) };
    }

    /// The later of two positions in the order of events.
    pub fn later(self, other: Self) -> Self {
        let key = |handled: &Self| (handled.ns, handled.draw, handled.last.tie());
        if key(&other) > key(&self) { other } else { self }
    }

    /// Whether a packet whose transmission on `link` starts at `from_ticks` has left the queue at this position in
    /// the order of events.
    #[inline]
    pub fn has_left(&self, from_ticks: u64, link: LinkId) -> bool {
        let now_ticks = self.ns * TICKS_PER_NS;
        from_ticks <= now_ticks && (from_ticks + TICKS_PER_NS <= now_ticks || self.has_woken(link))
    }

    /// Whether the wake event of `link` at this nanosecond would have been handled already.
    #[cold]
    fn has_woken(&self, link: LinkId) -> bool {
        let wake = Packed::from(Event::Wake(link, PacketId(0)));
        let draw = u32::from(wake.draw(self.ns));
        draw < self.draw || (draw == self.draw && wake.tie() < self.last.tie())
    }
}

/// Size and kind of a queued packet, in four bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingPacket(u32);

impl WaitingPacket {
    /// A packet of `bytes`.
    pub fn new(bytes: u32, kind: PacketKind) -> Self {
        WaitingPacket(bytes << 2 | kind.place() as u32)
    }
    /// Size on the wire, bytes.
    pub fn bytes(self) -> u64 {
        (self.0 >> 2).into()
    }
    /// Its kind.
    pub fn kind(self) -> PacketKind {
        match self.0 & 3 {
            0 => PacketKind::Data,
            1 => PacketKind::Ack,
            _ => PacketKind::Ctl,
        }
    }
}

/// A queue with fixed departures: a packet's transmission starts when that of the packet before it ends.
#[derive(Debug)]
pub(crate) struct Departures {
    /// Packets whose transmission has not started.
    pub waiting: VecDeque<WaitingPacket>,
    /// Start of the first packet's transmission, ticks.
    pub first_ticks: u64,
    /// Queue length, bytes.
    pub bytes: u64,
    /// Size of the queue, bytes.
    pub room_bytes: u64,
}

/// State of a queue and of its link at a point in time.
pub(crate) struct QueueStatus {
    pub queued_bytes: u64,
    pub queued_packets: u64,
    /// Bytes sent by kind of packet.
    pub sent_bytes: [u64; 3],
    /// Kind of the last packet whose transmission has started.
    pub last_kind: PacketKind,
    /// End of that packet's transmission, ticks, if another packet follows.
    pub until_ticks: Option<u64>,
}
