//! An output port: queue, serializer and counters of one directed link.

use crate::departures::{Departures, Handled, QueueStatus};
use crate::pfc::Gate;
use std::mem::offset_of;
use subak_core::backend::LinkView;
use subak_core::scheme::{Clock, PacketKind, Port, Queue, Scheme};
use subak_core::{LinkId, Ns};

/// Transmitter of a link. Ends of transmissions are in ticks of 2^-10 ps.
#[derive(Debug, Clone, Copy)]
pub struct Serializer {
    clock: Clock,
    ticks_per_byte: u64,
    busy_until_ticks: u64,
    /// End of the last transmission, ns, rounded up.
    free_ns: Ns,
    /// Transmission time per byte of the last packet, ticks.
    last_ticks_per_byte: u64,
}

/// Ticks per nanosecond. A tick is 2^-10 ps: five hours fit in 64 bits, and the transmission time of a byte at 1.6 Tb/s
/// is rounded by less than 1 in 10,000.
pub(crate) const TICKS_PER_NS: u64 = 1000 << 10;

impl Serializer {
    /// An idle transmitter of `capacity_bps`.
    pub fn new(capacity_bps: f64, clock: Clock) -> Self {
        let ticks_per_byte = (8e9 / capacity_bps * TICKS_PER_NS as f64).round() as u64;
        Serializer { clock, ticks_per_byte, busy_until_ticks: 0, free_ns: 0, last_ticks_per_byte: ticks_per_byte }
    }

    /// Sets the capacity for transmissions that start from now on.
    pub fn resize(&mut self, capacity_bps: f64) {
        self.ticks_per_byte = Serializer::new(capacity_bps, self.clock).ticks_per_byte;
    }

    /// Time at which the link is free, ns, rounded up.
    #[inline]
    pub fn free_ns(&self) -> Ns {
        self.free_ns
    }

    /// End of the last bit's transmission, ticks.
    #[inline]
    pub(crate) fn busy_until_ticks(&self) -> u64 {
        self.busy_until_ticks
    }

    /// Transmission time of `bytes`, ticks.
    #[inline]
    pub(crate) fn ticks(&self, bytes: u64) -> u64 {
        bytes * self.ticks_per_byte
    }

    /// Bytes of the last packet that are not sent yet at `now_ns`, in proportion to time. `behind`: times of the
    /// control frames sent after that packet.
    pub fn unsent_bytes(&self, now_ns: Ns, behind: &ControlFrameTimes) -> u64 {
        let ends_last = behind.until_ticks == self.busy_until_ticks;
        self.unsent_until(if ends_last { behind.from_ticks } else { self.busy_until_ticks }, now_ns)
    }

    /// Bytes not sent yet at `now_ns`, of a transmission that ends at `until_ticks`.
    fn unsent_until(&self, until_ticks: u64, now_ns: Ns) -> u64 {
        until_ticks.saturating_sub(now_ns * TICKS_PER_NS).div_ceil(self.last_ticks_per_byte.max(1))
    }

    /// Sends a control frame of `bytes` after the packet in transmission and the control frames `behind` that packet;
    /// returns the end of the frame's last bit, ns.
    pub fn transmit_control(&mut self, now_ns: Ns, bytes: u32, behind: &mut ControlFrameTimes) -> Ns {
        let (before_ticks, packet_ticks_per_byte) = (self.busy_until_ticks, self.last_ticks_per_byte);
        if behind.until_ticks != before_ticks {
            behind.from_ticks = before_ticks;
        }
        self.transmit(now_ns, bytes);
        self.last_ticks_per_byte = packet_ticks_per_byte;
        behind.until_ticks = self.busy_until_ticks;
        self.free_ns()
    }

    /// Sends `bytes` at `now_ns`; returns the end of the last bit, ns. A link that was idle for less than a nanosecond
    /// waited only because times are whole nanoseconds. The transmission then starts at the exact end of the last one.
    #[inline]
    pub fn transmit(&mut self, now_ns: Ns, bytes: u32) -> Ns {
        let now_ticks = now_ns * TICKS_PER_NS;
        if now_ticks >= self.busy_until_ticks + TICKS_PER_NS {
            self.busy_until_ticks = now_ticks;
        }
        let mut ticks = self.ticks(bytes.into());
        self.last_ticks_per_byte = self.ticks_per_byte;
        if self.clock == Clock::WholeNs {
            ticks = (ticks - ticks % TICKS_PER_NS).max(TICKS_PER_NS);
            self.last_ticks_per_byte = ticks.div_ceil(u64::from(bytes.max(1)));
        }
        self.busy_until_ticks += ticks;
        self.free_ns = self.busy_until_ticks.div_ceil(TICKS_PER_NS);
        self.free_ns
    }
}

/// Start of the first and end of the last of a sequence of back-to-back control frames, ticks.
#[derive(Debug, Clone, Copy, Default)]
pub struct ControlFrameTimes {
    from_ticks: u64,
    until_ticks: u64,
}

/// A directed link with its queue and state machine. The fields that every packet uses come first, on as few cache
/// lines as possible.
#[repr(C, align(64))]
pub struct PortState<S: Scheme> {
    /// The queue, if departure times are computed on arrival; `queue` is then unused.
    pub(crate) departures: Option<Departures>,
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
        }
    }

    /// Updates the queue length in `port`, which state machines read.
    #[inline]
    pub(crate) fn refresh(&mut self, handled: &Handled) {
        if self.departures.is_some() {
            return self.remove_departed(handled);
        }
        self.port.queued_bytes = self.queue.bytes();
        self.port.queued_packets = self.queue.packets() as u32;
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
    pub(crate) fn view_at(&self, now_ns: Ns, handled: &Handled) -> LinkView {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_to_back_packets_lose_nothing_to_rounding() {
        // 1500 bytes at 7 Gb/s take 1714.2857 ns.
        let mut link = Serializer::new(7e9, Clock::Exact);
        let mut now = 0;
        for _ in 0..7000 {
            now = link.transmit(now, 1500);
        }
        assert!(now.abs_diff(12_000_000) <= 12, "{now}: off by more than a part in a million");
    }

    #[test]
    fn bytes_count_once_they_are_out() {
        let mut link = Serializer::new(10e9, Clock::Exact);
        assert_eq!(link.transmit(100, 1500), 1300);
        let left = [100, 101, 700, 1299, 1300, 9000].map(|now| link.unsent_bytes(now, &ControlFrameTimes::default()));
        assert_eq!(left, [1500, 1499, 750, 2, 0, 0]);
    }

    #[test]
    fn a_packet_on_its_way_out_leaves_at_the_old_capacity() {
        let mut link = Serializer::new(10e9, Clock::Exact);
        link.transmit(0, 1500);
        link.resize(1e9);
        let none = ControlFrameTimes::default();
        assert_eq!((link.unsent_bytes(600, &none), link.free_ns()), (750, 1200));
        assert_eq!((link.transmit(1200, 1500), link.unsent_bytes(7200, &none)), (13_200, 750));
    }

    #[test]
    fn control_frames_behind_a_packet_take_none_of_its_bytes() {
        let (mut link, mut behind) = (Serializer::new(1e9, Clock::Exact), ControlFrameTimes::default());
        link.transmit(0, 1500);
        let unsent = |link: &Serializer, behind: &ControlFrameTimes| {
            [2000, 4000, 12_000].map(|ns| link.unsent_bytes(ns, behind))
        };
        assert_eq!(unsent(&link, &behind), [1250, 1000, 0]);
        // One control frame before a change of capacity, one after it.
        assert_eq!(link.transmit_control(1000, 64, &mut behind), 12_512);
        link.resize(10e9);
        assert_eq!(link.transmit_control(2000, 64, &mut behind), 12_564);
        assert_eq!(unsent(&link, &behind), [1250, 1000, 0]);
        // The unsent bytes of the next packet, which starts 0.8 ns before the link's time, are separate; so are those
        // of a control frame on a free link.
        assert_eq!((link.transmit(12_564, 1500), link.unsent_bytes(13_164, &behind)), (13_764, 749));
        assert_eq!(link.transmit_control(20_000, 64, &mut behind), 20_052);
        assert_eq!(link.unsent_bytes(20_001, &behind), 0);
    }

    #[test]
    fn an_idle_link_starts_now() {
        let mut link = Serializer::new(10e9, Clock::Exact);
        assert_eq!(link.transmit(0, 1500), 1200);
        assert_eq!(link.transmit(5000, 1500), 6200);
    }

    #[test]
    fn a_clock_of_whole_nanoseconds_cuts_each_packet() {
        let mut link = Serializer::new(100e9, Clock::WholeNs);
        let mut now = 0;
        for _ in 0..1000 {
            now = link.transmit(now, 1048);
        }
        assert_eq!((now, link.unsent_bytes(now - 83, &ControlFrameTimes::default())), (83_000, 1048));
        // A packet that is faster than the clock still takes time.
        assert_eq!(Serializer::new(1e13, Clock::WholeNs).transmit(5, 60), 6);
    }
}
