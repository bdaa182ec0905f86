//! Rate of a subflow, with its updates, in floating point and in integers.

use super::fixed::{self, FixedUpdate, ONE};
use super::{Floor, MOST_RATIO, RateUpdate, SenderState, SozeArithmetic, SozeLaw};
use subak_core::Ns;

/// Number of RTTs in which a flow sends at least one packet, since it needs feedback.
pub(super) const SILENT_RTTS: u32 = 32;

/// Relative rounding error of a rate in integers, with a margin.
const ROUNDING: f64 = 1e-3;

/// Bounds of a rate that depend on the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Largest rate, bit/s.
    pub most_bps: f64,
    /// Size of a full packet on the wire, bits.
    pub packet_bits: u64,
    /// RTT of which the minimum rate sends a packet in `SILENT_RTTS`, ns.
    pub rtt_ns: Ns,
}

impl Limits {
    /// Rate of one packet an RTT, bit/s.
    fn packet_bps(&self) -> f64 {
        self.packet_bits as f64 * 1e9 / self.rtt_ns as f64
    }

    /// Whether `bps` is the rate of one packet in `SILENT_RTTS` RTTs, or less.
    pub fn is_least(&self, bps: f64) -> bool {
        bps * f64::from(SILENT_RTTS) <= self.packet_bps() * (1.0 + ROUNDING)
    }
}

/// Feedback of an ACK to its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The largest delay of the path, ns.
    pub delay_ns: u32,
    /// Time since the previous update, ns.
    pub passed_ns: Ns,
    /// RTT that `passed_ns` is compared with, ns.
    pub rtt_ns: Ns,
}

/// Rate of a subflow.
#[derive(Debug, Clone, Copy)]
pub enum SenderRate {
    /// In floating point.
    Float(FloatRate),
    /// In integers.
    Fixed(FixedSozeRate),
}

/// Calls the same method of either variant.
macro_rules! either {
    ($rate:expr, $r:ident => $do:expr) => {
        match $rate {
            SenderRate::Float($r) => $do,
            SenderRate::Fixed($r) => $do,
        }
    };
}

impl SenderRate {
    /// Rate of a flow of weight 1 before its start.
    pub fn new(law: &SozeLaw, p_ns: f64, line_rate_bps: f64, limits: &Limits) -> Self {
        let update = law.update(law.target(p_ns, line_rate_bps));
        let start_bps = law.start_bps(update.target.alpha_bps);
        match law.arithmetic {
            SozeArithmetic::Float => {
                SenderRate::Float(FloatRate { update, floor: law.floor, start_bps, weight: 1.0, bps: 0.0 })
            }
            SozeArithmetic::Fixed => SenderRate::Fixed(FixedSozeRate::new(&update, law, start_bps, limits)),
        }
    }

    /// Sets the rate with which the flow starts.
    pub fn start(&mut self, limits: &Limits) {
        either!(self, r => r.start(limits));
    }
    /// Sets the weight; with `at_once` the rate changes in proportion. Returns whether the weight changed.
    pub fn weigh(&mut self, weight: f64, at_once: bool, limits: &Limits) -> bool {
        either!(self, r => r.weigh(weight, at_once, limits))
    }
    /// Updates the rate after a change of the RTT from `from_ns` to `to_ns`, so that the window stays constant.
    #[inline]
    pub fn keep_window(&mut self, from_ns: Ns, to_ns: Ns) {
        either!(self, r => r.keep_window(from_ns, to_ns));
    }
    /// Applies the present limits to the rate.
    pub fn bound(&mut self, limits: &Limits) {
        either!(self, r => r.bound(limits));
    }
    /// Handles feedback; `whole`: as if one RTT had passed since the last update.
    #[inline]
    pub fn hear(&mut self, heard: Heard, whole: bool, limits: &Limits) {
        either!(self, r => r.hear(heard, whole, limits));
    }
    /// Handles an RTO: halves the rate. A drop implies a full queue, and without ACKs there is no other signal.
    pub fn time_out(&mut self, limits: &Limits) {
        either!(self, r => r.time_out(limits));
    }
    /// The rate in bit/s.
    #[inline]
    pub fn bps(&self) -> f64 {
        match self {
            SenderRate::Float(r) => r.bps,
            SenderRate::Fixed(r) => fixed::exp2(r.log2_rate) as f64 / 65_536.0,
        }
    }
}

/// A rate in floating point.
#[derive(Debug, Clone, Copy)]
pub struct FloatRate {
    update: RateUpdate,
    floor: Floor,
    start_bps: f64,
    weight: f64,
    bps: f64,
}

impl FloatRate {
    fn bound(&mut self, limits: &Limits) {
        let packet_bps = limits.packet_bps();
        let least_bps = match self.floor {
            Floor::Packet => packet_bps,
            Floor::Beta => self.update.target.least_bps(self.weight).max(packet_bps / f64::from(SILENT_RTTS)),
        };
        self.bps = self.bps.clamp(least_bps.min(limits.most_bps), limits.most_bps);
    }
    fn start(&mut self, limits: &Limits) {
        self.bps = self.start_bps * self.weight;
        self.bound(limits);
    }
    fn weigh(&mut self, weight: f64, at_once: bool, limits: &Limits) -> bool {
        let before = std::mem::replace(&mut self.weight, weight);
        if at_once && before != weight {
            self.bps *= weight / before;
            self.bound(limits);
        }
        before != weight
    }
    fn keep_window(&mut self, from_ns: Ns, to_ns: Ns) {
        self.bps *= from_ns as f64 / to_ns as f64;
    }
    #[inline]
    fn hear(&mut self, heard: Heard, whole: bool, limits: &Limits) {
        let rtts = if whole { 1.0 } else { heard.passed_ns as f64 / heard.rtt_ns as f64 };
        self.bps = self.update.next_bps(self.bps, self.weight, f64::from(heard.delay_ns), rtts);
        self.bound(limits);
    }
    fn time_out(&mut self, limits: &Limits) {
        self.bps /= MOST_RATIO;
        self.bound(limits);
    }
}

/// A rate in integers: its binary logarithm with 32 fractional bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedSozeRate {
    update: FixedUpdate,
    floor: Floor,
    window: bool,
    log2_start: i64,
    /// Logarithm of half of beta, the smallest expected rate/weight, bit/s.
    log2_least: i64,
    /// Logarithm of the rate of one packet per nanosecond, bit/s.
    log2_packet: i64,
    /// Largest rate by [`Limits`], bit/s, and its logarithm.
    most: (u64, i64),
    log2_weight: i64,
    log2_rate: i64,
}

/// Settings of a sender in a kernel, in integers. Logarithms are base 2, with 32 fractional bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SozeSettings {
    /// Logarithm of alpha, the largest rate/weight, bit/s.
    pub log2_alpha: i64,
    /// Logarithm of the initial rate of a flow of weight 1, bit/s.
    pub log2_start: i64,
    /// Logarithm of half of beta, the smallest expected rate/weight, bit/s.
    pub log2_least: i64,
    /// Logarithm of one packet per nanosecond, bit/s.
    pub log2_packet: i64,
    /// Logarithm of the largest rate, bit/s.
    pub log2_most: i64,
    /// log2(alpha / beta) / p, per ns, with 48 fractional bits.
    pub slope: u64,
    /// Largest delay above k that counts, ns.
    pub most_above_ns: u64,
    /// k, the delay of alpha, ns.
    pub k_ns: u32,
    /// m, the exponent of a rate update, with 31 fractional bits.
    pub m: u32,
    /// Whether the update deviates from the Soze paper: see [`RateUpdate::exact`](super::RateUpdate).
    pub exact: bool,
    /// Whether the minimum rate is half of the flow's rate at beta; otherwise it is one packet per RTT.
    pub floor_beta: bool,
    /// Whether the state variable is a window, not a rate.
    pub window: bool,
}

impl FixedSozeRate {
    /// Settings for a kernel program.
    pub fn settings(&self) -> SozeSettings {
        let FixedSozeRate { update, floor, window, log2_start, log2_least, log2_packet, most, .. } = *self;
        let (log2_alpha, slope, most_above_ns, k_ns, m, exact) = update.parts();
        let floor_beta = floor == Floor::Beta;
        SozeSettings {
            log2_alpha,
            log2_start,
            log2_least,
            log2_packet,
            log2_most: most.1,
            slope,
            most_above_ns,
            k_ns,
            m,
            exact,
            floor_beta,
            window,
        }
    }
    /// A copy with this rate, bit/s, and this weight, as logarithms.
    #[must_use]
    pub fn at(self, log2_rate: i64, log2_weight: i64) -> Self {
        FixedSozeRate { log2_rate, log2_weight, ..self }
    }
    /// Rate of a flow of weight 1 before its start.
    pub fn new(update: &RateUpdate, law: &SozeLaw, start_bps: f64, limits: &Limits) -> Self {
        FixedSozeRate {
            update: FixedUpdate::new(update),
            floor: law.floor,
            window: law.state == SenderState::Window,
            log2_start: fixed::log2_of(start_bps),
            log2_least: fixed::log2_of(update.target.least_bps(1.0)),
            log2_packet: fixed::log2_of(limits.packet_bits as f64 * 1e9),
            most: most(limits),
            log2_weight: 0,
            log2_rate: 0,
        }
    }
    /// The logarithm of the rate, bit/s.
    pub fn log2_rate(&self) -> i64 {
        self.log2_rate
    }
    fn bound(&mut self, limits: &Limits) {
        if limits.most_bps as u64 != self.most.0 {
            self.most = most(limits);
        }
        let packet = self.log2_packet - fixed::log2(limits.rtt_ns);
        let least = match self.floor {
            Floor::Packet => packet,
            Floor::Beta => {
                (self.log2_least + self.log2_weight).max(packet - i64::from(SILENT_RTTS.trailing_zeros()) * ONE)
            }
        };
        self.log2_rate = self.log2_rate.clamp(least.min(self.most.1), self.most.1);
    }
    fn start(&mut self, limits: &Limits) {
        self.log2_rate = self.log2_start + self.log2_weight;
        self.bound(limits);
    }
    fn weigh(&mut self, weight: f64, at_once: bool, limits: &Limits) -> bool {
        let log2_weight = fixed::log2(fixed::rounded(weight, 32)) - 32 * ONE;
        let before = std::mem::replace(&mut self.log2_weight, log2_weight);
        if at_once && before != log2_weight {
            self.log2_rate += log2_weight - before;
            self.bound(limits);
        }
        before != log2_weight
    }
    fn keep_window(&mut self, from_ns: Ns, to_ns: Ns) {
        self.log2_rate += fixed::log2(from_ns) - fixed::log2(to_ns);
    }
    #[inline]
    fn hear(&mut self, heard: Heard, whole: bool, limits: &Limits) {
        let rtts = if whole { ONE as u64 } else { fixed::rtts(heard.passed_ns, heard.rtt_ns) };
        self.log2_rate = self.update.next(self.log2_rate, self.log2_weight, heard.delay_ns, rtts);
        self.bound(limits);
    }
    fn time_out(&mut self, limits: &Limits) {
        const { assert!(MOST_RATIO == 2.0, "half of a rate is one less in the logarithm") };
        self.log2_rate -= ONE;
        self.bound(limits);
    }
}

fn most(limits: &Limits) -> (u64, i64) {
    (limits.most_bps as u64, fixed::log2_of(limits.most_bps.max(1.0)))
}
