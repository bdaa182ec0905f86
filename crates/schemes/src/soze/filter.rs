//! The link's signal and its filter, in floating point and in integers.

use super::fixed::{lost, rounded, times};
use super::settings::SozeLinkSettings;
use super::{DelayUnit, MaxDelay, SozeArithmetic};
use subak_core::Ns;

/// Quantity that a link signals to senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Queueing delay of the packet, ns.
    Wait,
    /// Queue length over the link's rate when the packet leaves, ns.
    Backlog,
    /// Utilization, scaled so that k + p means a fully utilized link, ns.
    Utilization,
}

/// A packet at its departure from the output queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// Size on the wire, bytes.
    pub bytes: u32,
    /// Queueing delay of the packet, ns.
    pub wait_ns: Ns,
    /// Queue length behind the packet, bytes.
    pub queued_bytes: u64,
}

/// Filter: smooths a link's signal with a time constant.
#[derive(Debug, Clone)]
pub struct Filter {
    signal: Signal,
    unit: DelayUnit,
    filter_ns: f64,
    /// k + p, the delay that signals a fully utilized link if the signal is utilization, ns.
    full_ns: f64,
    at_ns: Ns,
    numbers: Numbers,
}

#[derive(Debug, Clone)]
enum Numbers {
    Float(Float),
    Fixed(FixedFilter),
}

#[derive(Debug, Clone)]
struct Float {
    ns_per_byte: f64,
    smoothed_ns: f64,
}

/// Filter in integers. Values have 32 fractional bits unless stated otherwise.
#[derive(Debug, Clone)]
struct FixedFilter {
    /// log2(e) over the time constant, per ns, with 48 fractional bits; 0 for no filter.
    decay: u64,
    /// Time without packets after which the filter is reset, ns.
    longest_ns: u64,
    ns_per_byte: u64,
    /// Queue length, bytes, above which a longer queue does not change the signal.
    most_bytes: u64,
    /// Contribution of a sent byte to the utilization signal, ns.
    told_per_byte: u64,
    smoothed_ns: i64,
}

/// Longest delay in the integer filter, about 2 s.
const MOST_NS: i64 = (i32::MAX as i64) << 32;

impl Filter {
    /// Filter of a link of `capacity_bps`, before its first packet. A time constant below a nanosecond means no
    /// filter.
    pub fn new(signal: Signal, filter_ns: f64, full_ns: f64, capacity_bps: f64, numbers: SozeArithmetic) -> Self {
        let numbers = match numbers {
            SozeArithmetic::Float => Numbers::Float(Float { ns_per_byte: 0.0, smoothed_ns: 0.0 }),
            SozeArithmetic::Fixed => Numbers::Fixed(FixedFilter::new(filter_ns)),
        };
        let mut filter = Filter { signal, unit: DelayUnit::of(full_ns), filter_ns, full_ns, at_ns: 0, numbers };
        filter.resize(capacity_bps);
        filter
    }

    /// Sets the link's capacity.
    pub fn resize(&mut self, capacity_bps: f64) {
        let ns_per_byte = 8e9 / capacity_bps;
        match &mut self.numbers {
            Numbers::Float(float) => float.ns_per_byte = ns_per_byte,
            Numbers::Fixed(fixed) => fixed.resize(ns_per_byte, self.full_ns / self.filter_ns.max(1.0)),
        }
    }

    /// The link's signal at the departure of a packet.
    #[inline]
    pub fn tell(&mut self, now_ns: Ns, packet: Leaving) -> MaxDelay {
        let passed_ns = now_ns - std::mem::replace(&mut self.at_ns, now_ns);
        match &mut self.numbers {
            Numbers::Fixed(fixed) => self.unit.put_ns(fixed.tell(self.signal, passed_ns, packet)),
            Numbers::Float(float) => {
                let filter = (self.filter_ns, self.full_ns);
                self.unit.put(float.tell(self.signal, passed_ns, packet, filter))
            }
        }
    }
}

impl Filter {
    /// The link's signal at the departure of a packet, in whole ns; `None` for a filter in floating point.
    pub fn tell_ns(&mut self, now_ns: Ns, packet: Leaving) -> Option<u32> {
        let passed_ns = now_ns - std::mem::replace(&mut self.at_ns, now_ns);
        let Numbers::Fixed(fixed) = &mut self.numbers else { return None };
        Some(fixed.tell(self.signal, passed_ns, packet))
    }

    /// Settings for a kernel program; `None` for floating point.
    pub fn settings(&self) -> Option<SozeLinkSettings> {
        let Numbers::Fixed(fixed) = &self.numbers else { return None };
        Some(SozeLinkSettings {
            ns_per_byte: fixed.ns_per_byte,
            most_bytes: fixed.most_bytes,
            decay: fixed.decay,
            longest_ns: fixed.longest_ns,
            told_per_byte: fixed.told_per_byte,
            is_utilization: self.signal == Signal::Utilization,
            ..SozeLinkSettings::default()
        })
    }
}

impl Float {
    #[inline]
    fn tell(&mut self, signal: Signal, passed_ns: Ns, packet: Leaving, (filter_ns, full_ns): (f64, f64)) -> f64 {
        let keep = if filter_ns >= 1.0 { libm::exp(-(passed_ns as f64) / filter_ns) } else { 0.0 };
        let now_ns = match signal {
            Signal::Wait => packet.wait_ns as f64,
            Signal::Backlog => packet.queued_bytes as f64 * self.ns_per_byte,
            Signal::Utilization => {
                // The packet's transmission time, spread over the filter's time constant.
                let sent = f64::from(packet.bytes) * self.ns_per_byte / filter_ns.max(1.0);
                self.smoothed_ns = keep * self.smoothed_ns + sent * full_ns;
                return self.smoothed_ns;
            }
        };
        self.smoothed_ns = keep * self.smoothed_ns + (1.0 - keep) * now_ns;
        self.smoothed_ns
    }
}

impl FixedFilter {
    fn new(filter_ns: f64) -> Self {
        let decay = if filter_ns >= 1.0 { rounded(std::f64::consts::LOG2_E / filter_ns, 48) } else { 0 };
        let longest_ns = (60 << 48) / decay.max(1);
        FixedFilter { decay, longest_ns, ns_per_byte: 0, most_bytes: 0, told_per_byte: 0, smoothed_ns: 0 }
    }

    fn resize(&mut self, ns_per_byte: f64, full_over_filter: f64) {
        self.ns_per_byte = rounded(ns_per_byte, 32).max(1);
        self.most_bytes = MOST_NS as u64 / self.ns_per_byte;
        // The product with a packet's size, at most 2^16 bytes, must fit.
        self.told_per_byte = rounded(ns_per_byte * full_over_filter, 32).min(1 << 46);
    }

    #[inline]
    fn tell(&mut self, signal: Signal, passed_ns: Ns, packet: Leaving) -> u32 {
        let gain = match self.decay {
            0 => 1 << 31,
            decay => lost(((passed_ns.min(self.longest_ns) * decay) >> 16) as i64),
        };
        let change = match signal {
            Signal::Wait => times(((packet.wait_ns.min(i32::MAX as u64) << 32) as i64) - self.smoothed_ns, gain),
            Signal::Backlog => {
                let queued_ns = packet.queued_bytes.min(self.most_bytes) * self.ns_per_byte;
                times(queued_ns as i64 - self.smoothed_ns, gain)
            }
            Signal::Utilization => {
                (u64::from(packet.bytes) * self.told_per_byte) as i64 - times(self.smoothed_ns, gain)
            }
        };
        self.smoothed_ns = self.smoothed_ns.saturating_add(change).clamp(0, MOST_NS);
        ((self.smoothed_ns + (1 << 31)) >> 32) as u32
    }
}
