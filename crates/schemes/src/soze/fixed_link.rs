//! A virtual queue in integer arithmetic: the same as [`super::VirtualLink`] in floating point.

use super::fixed::{rounded, times};
use super::settings::SozeLinkSettings;
use super::{Virtual, VirtualLink};
use subak_core::Ns;

/// Longest delay, about 2 s, in ns with 32 fractional bits.
const MOST_NS: i64 = (i32::MAX as i64) << 32;

/// A virtual queue. Times are in ns with 32 fractional bits unless stated otherwise.
#[derive(Debug, Clone)]
pub struct FixedVirtual {
    /// eta, the fraction of the capacity at which the virtual queue drains, with 31 fractional bits.
    eta: i64,
    /// Weight of the real queue in the signal, with 16 fractional bits.
    queue: u64,
    k_ns: u64,
    /// Inverse of the time in which senders are to reduce a real queue by 63%, 1/ns.
    per_empties: u64,
    /// Queueing delay of the real queue above which the drain is not slowed further.
    most_excess_ns: u64,
    most_ns: i64,
    start_ns: i64,
    ns_per_byte: u64,
    /// Largest number of bytes that counts in a time.
    most_bytes: u64,
    delay_ns: i64,
}

impl FixedVirtual {
    /// An empty virtual queue of a link of `capacity_bps` in a network whose largest base RTT is `rtt_ns`.
    pub fn new(set: &Virtual, rtt_ns: Ns, capacity_bps: f64) -> Self {
        let link: VirtualLink = set.link(rtt_ns);
        let time = |ns: f64| rounded(ns, 32).min(MOST_NS as u64) as i64;
        let empties_ns = (set.empties_rtts * rtt_ns as f64).clamp(1.0, 1e9);
        let mut queue = FixedVirtual {
            eta: rounded(set.eta, 31) as i64,
            queue: rounded(set.queue, 16),
            k_ns: time(set.law.k_ns) as u64,
            per_empties: rounded(1.0 / empties_ns, 32),
            most_excess_ns: rounded(2.0 * empties_ns, 32),
            most_ns: time(link.most_ns),
            start_ns: time(link.start_ns),
            ns_per_byte: 0,
            most_bytes: 0,
            delay_ns: 0,
        };
        queue.resize(capacity_bps);
        queue
    }

    /// Settings for a kernel program.
    pub fn settings(&self) -> SozeLinkSettings {
        SozeLinkSettings {
            is_virtual: true,
            ns_per_byte: self.ns_per_byte,
            most_bytes: self.most_bytes,
            eta: self.eta,
            queue: self.queue,
            k_ns: self.k_ns,
            per_empties: self.per_empties,
            most_excess_ns: self.most_excess_ns,
            most_ns: self.most_ns,
            start_ns: self.start_ns,
            ..SozeLinkSettings::default()
        }
    }

    /// Sets the link's capacity.
    pub fn resize(&mut self, capacity_bps: f64) {
        self.ns_per_byte = rounded(8e9 / capacity_bps, 32).max(1);
        self.most_bytes = MOST_NS as u64 / self.ns_per_byte;
    }

    /// Transmission time of `bytes`, ns.
    #[inline]
    fn time_ns(&self, bytes: u64) -> u64 {
        bytes.min(self.most_bytes) * self.ns_per_byte
    }

    /// Sets the virtual delay to its initial value.
    pub fn begin(&mut self) {
        self.delay_ns = self.start_ns;
    }

    /// Drains the virtual queue for a time without arrivals, in which `queued` bytes were in the real queue.
    #[inline]
    pub fn drain(&mut self, passed_ns: Ns, queued_bytes: u64) {
        let excess_ns = self.time_ns(queued_bytes).saturating_sub(self.k_ns).min(self.most_excess_ns);
        let slower = ((excess_ns >> 16) * self.per_empties) >> 17;
        let rate = (self.eta - slower as i64).max(-(1 << 31));
        let passed_ns = (passed_ns.min(i32::MAX as u64) << 32) as i64;
        let sunk_ns = times(passed_ns, rate.unsigned_abs() as u32);
        let next_ns = if rate < 0 { self.delay_ns.saturating_add(sunk_ns) } else { self.delay_ns - sunk_ns };
        self.delay_ns = next_ns.clamp(0, self.most_ns);
    }

    /// Adds the bytes of an arrival.
    #[inline]
    pub fn fill(&mut self, bytes: u32) {
        let more_ns = self.time_ns(u64::from(bytes)) as i64;
        self.delay_ns = self.delay_ns.saturating_add(more_ns).min(self.most_ns);
    }

    /// The link's signal, whole ns.
    #[inline]
    pub fn signal_ns(&self, queued_bytes: u64) -> u32 {
        let excess_ns = self.time_ns(queued_bytes).saturating_sub(self.k_ns);
        let queue_ns = ((excess_ns >> 24) * self.queue) >> 24;
        (((self.delay_ns as u64 + (1 << 31)) >> 32) + queue_ns).min(u64::from(u32::MAX)) as u32
    }
}
