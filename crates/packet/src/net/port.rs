//! An output port: queue, serializer and counters of one directed link.

use super::pfc::Gate;
use super::serializer::{ControlFrameTimes, Serializer};
use super::waiting::{Departures, Handled, QueueStatus};
use std::mem::offset_of;
use subak_core::backend::LinkView;
use subak_core::scheme::{PacketKind, Port, Queue, Scheme};
use subak_core::{LinkId, Ns};

/// A directed link with its queue and state machine. The fields that every packet uses come first, on as few cache
/// lines as possible.
#[repr(C, align(64))]
pub(super) struct PortState<S: Scheme> {
    /// The queue, if departure times are computed on arrival; `queue` is then unused.
    pub departures: Option<Departures>,
    /// Transmitter of the link.
    pub serializer: Serializer,
    /// Number of active faults that keep the link down.
    pub held_down: u32,
    /// Whether packets that arrive at the queue are dropped, because a fault keeps the link down.
    pub drops: bool,
    /// Kind of the last packet sent.
    pub last_kind: PacketKind,
    /// Number of this link among the incoming links of the node at its far end.
    pub input: u16,
    /// Whether a wake event for the queue is pending.
    pub wakes: bool,
    /// Number of packets and control frames sent so far, modulo 256.
    pub turn: u8,
    /// Whether the node at the link's start belongs to this logical process.
    pub begins_here: bool,
    /// Whether the node at the link's end belongs to this logical process.
    pub ends_here: bool,
    /// The scheme's state machine at the link.
    pub hop: S::Hop,
    /// Bytes sent by kind of packet; a packet counts in full from the start of its transmission.
    pub sent_bytes: [u64; 3],
    /// Maximum queue length: [`LinkView::peak_queued_bytes`].
    pub peak_queued_bytes: u64,
    /// The part of the port that state machines can read.
    pub port: Port,
    /// The queue, if each departure is an event.
    pub queue: S::Queue,
    /// Other counters. Few packets use the fields from here on.
    pub view: LinkView,
    /// Transmission times of the control frames sent after the last packet.
    pub frames: ControlFrameTimes,
    /// Number of restarts of the link's state machine, modulo 256.
    pub life: u8,
    /// Time at which the link last went down, ns.
    pub down_ns: Option<Ns>,
    /// The link in the opposite direction.
    pub reverse_link: Option<LinkId>,
    /// Pauses of packet classes on the link.
    pub gate: Gate,
    /// Packets in `queue`, counted here to check the queue's own counts.
    #[cfg(debug_assertions)]
    held: Held,
}

/// Packets that entered a queue and neither left nor were dropped.
#[cfg(debug_assertions)]
#[derive(Default)]
struct Held {
    packets: u64,
    bytes: u64,
}

#[cfg(debug_assertions)]
impl Held {
    fn enter(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Overflows if more leaves than has entered.
    fn leave(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

const fn least(bytes: usize) -> usize {
    if bytes < 384 { bytes } else { 384 }
}

impl<S: Scheme> PortState<S> {
    /// Size of the frequently used first fields of a port, which are prefetched, bytes: with fixed departures, and
    /// without. Large state machines are prefetched only in part.
    pub const HOT_BYTES: [usize; 2] =
        [least(offset_of!(Self, port) + offset_of!(Port, buffer_bytes)), least(offset_of!(Self, view))];

    /// The port of an idle link.
    pub fn new(scheme: &S, port: Port, reverse_link: Option<LinkId>) -> Self {
        PortState {
            hop: scheme.hop(&port),
            queue: scheme.queue(&port),
            serializer: Serializer::new(port.capacity_bps, scheme.rules().clock),
            last_kind: PacketKind::Data,
            wakes: false,
            departures: None,
            turn: 0,
            begins_here: true,
            ends_here: true,
            input: 0,
            held_down: 0,
            drops: false,
            down_ns: None,
            life: 0,
            reverse_link,
            gate: Gate::default(),
            sent_bytes: [0; 3],
            frames: ControlFrameTimes::default(),
            peak_queued_bytes: 0,
            view: LinkView::default(),
            port,
            #[cfg(debug_assertions)]
            held: Held::default(),
        }
    }

    /// Updates the queue length in `port`, which state machines read.
    #[inline]
    pub fn refresh(&mut self, handled: &Handled) {
        if self.departures.is_some() {
            return self.remove_departed(handled);
        }
        self.port.queued_bytes = self.queue.bytes();
        self.port.queued_packets = self.queue.packets() as u32;
    }

    /// Removes departed packets from the queue.
    #[inline]
    pub fn remove_departed(&mut self, handled: &Handled) {
        let Some(departures) = &mut self.departures else { return };
        while let Some(&first) = departures.waiting.front()
            && handled.has_left(departures.first_ticks, self.port.link)
        {
            departures.bytes -= first.bytes();
            departures.first_ticks += self.serializer.ticks(first.bytes());
            self.sent_bytes[first.kind().place()] += first.bytes();
            self.last_kind = first.kind();
            departures.waiting.pop_front();
        }
        debug_assert!(!departures.waiting.is_empty() || departures.bytes == 0, "an empty queue has no bytes");
        self.port.queued_bytes = departures.bytes;
        self.port.queued_packets = departures.waiting.len() as u32;
    }

    /// State of the queue and the link at the position `handled`.
    pub fn standing(&self, handled: &Handled) -> QueueStatus {
        let mut standing = QueueStatus {
            queued_bytes: self.queue.bytes(),
            queued_packets: self.queue.packets() as u64,
            sent_bytes: self.sent_bytes,
            last_kind: self.last_kind,
            until_ticks: None,
        };
        let Some(departures) = &self.departures else { return standing };
        standing.queued_bytes = departures.bytes;
        standing.queued_packets = departures.waiting.len() as u64;
        let mut from_ticks = departures.first_ticks;
        for packet in &departures.waiting {
            if !handled.has_left(from_ticks, self.port.link) {
                standing.until_ticks = Some(from_ticks);
                break;
            }
            from_ticks += self.serializer.ticks(packet.bytes());
            standing.queued_bytes -= packet.bytes();
            standing.queued_packets -= 1;
            standing.sent_bytes[packet.kind().place()] += packet.bytes();
            standing.last_kind = packet.kind();
        }
        standing
    }

    /// Notes, for [`PortState::check`], that a packet of `bytes` has entered the queue.
    #[inline]
    pub fn note_in(&mut self, bytes: u32) {
        let _ = bytes;
        #[cfg(debug_assertions)]
        self.held.enter(bytes);
    }

    /// Notes, for [`PortState::check`], that a packet of `bytes` has left the queue or was dropped.
    #[inline]
    pub fn note_out(&mut self, bytes: u32) {
        let _ = bytes;
        #[cfg(debug_assertions)]
        self.held.leave(bytes);
    }

    /// Checks that the queue has the packets that entered it and neither left nor were dropped, and the sum of their
    /// bytes.
    #[inline]
    pub fn check(&self) {
        #[cfg(debug_assertions)]
        {
            let has = (self.queue.packets() as u64, self.queue.bytes());
            debug_assert_eq!(has, (self.held.packets, self.held.bytes), "queue of {:?}", self.port.link);
        }
    }

    /// Sends a packet at `now_ns`; returns the end of its last bit, ns.
    #[inline]
    pub fn transmit(&mut self, now_ns: Ns, kind: PacketKind, bytes: u32) -> Ns {
        self.last_kind = kind;
        self.turn = self.turn.wrapping_add(1);
        self.sent_bytes[kind.place()] += u64::from(bytes);
        self.serializer.transmit(now_ns, bytes)
    }

    /// Sends a control frame at `now_ns`, ahead of the queue; returns the end of its last bit, ns. The frame's bytes
    /// are counted at once.
    pub fn transmit_control(&mut self, now_ns: Ns, bytes: u32) -> Ns {
        self.turn = self.turn.wrapping_add(1);
        self.sent_bytes[PacketKind::Ctl.place()] += u64::from(bytes);
        self.serializer.transmit_control(now_ns, bytes, &mut self.frames)
    }

    /// State of the link at `now_ns`.
    pub fn view_at(&self, now_ns: Ns, handled: &Handled) -> LinkView {
        let mut view = self.view;
        let standing = self.standing(handled);
        let QueueStatus { queued_bytes, queued_packets, mut sent_bytes, last_kind, until_ticks } = standing;
        (view.queued_bytes, view.queued_packets) = (queued_bytes, queued_packets);
        view.peak_queued_bytes = self.peak_queued_bytes;
        (view.pauses, view.paused_ns) = self.gate.so_far(now_ns);
        let unsent_bytes = match until_ticks {
            Some(until_ticks) => self.serializer.unsent_until(until_ticks, now_ns),
            None => self.serializer.unsent_bytes(now_ns, &self.frames),
        };
        let last = &mut sent_bytes[last_kind.place()];
        *last -= unsent_bytes.min(*last);
        let bytes = |kind: PacketKind| sent_bytes[kind.place()];
        view.data_bytes = bytes(PacketKind::Data);
        view.ack_bytes = bytes(PacketKind::Ack);
        view.ctl_bytes = bytes(PacketKind::Ctl);
        view
    }
}
