//! The transmitter of a link: times of transmissions.

use subak_core::Ns;
use subak_core::scheme::Clock;

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
pub const TICKS_PER_NS: u64 = 1000 << 10;

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
    pub fn busy_until_ticks(&self) -> u64 {
        self.busy_until_ticks
    }

    /// Transmission time of `bytes`, ticks.
    #[inline]
    pub fn ticks(&self, bytes: u64) -> u64 {
        bytes * self.ticks_per_byte
    }

    /// Bytes of the last packet that are not sent yet at `now_ns`, in proportion to time. `behind`: times of the
    /// control frames sent after that packet.
    pub fn unsent_bytes(&self, now_ns: Ns, behind: &ControlFrameTimes) -> u64 {
        let ends_last = behind.until_ticks == self.busy_until_ticks;
        self.unsent_until(if ends_last { behind.from_ticks } else { self.busy_until_ticks }, now_ns)
    }

    /// Bytes not sent yet at `now_ns`, of a transmission that ends at `until_ticks`.
    pub fn unsent_until(&self, until_ticks: u64, now_ns: Ns) -> u64 {
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
