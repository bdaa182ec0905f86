//! Parameters of senders.

use super::{DelayUnit, RateUpdate, Target};
use subak_core::Ns;

/// The variable that a sender keeps between ACKs (section 3.3 allows either).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderState {
    /// A window: the rate of algorithm 1 is the window over the measured round trip.
    Window,
    /// A rate, by which packets are paced.
    Rate,
    /// A rate, of which a window is made with the measured round trip.
    WindowOfRate,
}

/// Times at which the rate is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Often {
    /// At each acknowledgement, by its share of a round trip (section 3.3).
    Packet,
    /// At each acknowledgement, by U with all of m (equations 22 and 23 at each packet).
    Whole,
    /// Once a measured round trip (algorithm 1).
    Rtt,
}

/// The least rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// A packet in a measured round trip.
    Packet,
    /// Half of what beta gives the flow, and a packet in 32 round trips.
    Beta,
}

/// Which numbers senders and links count with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SozeArithmetic {
    /// Floating point.
    Float,
    /// Integers, as kernels and switches do: see [`super::fixed`].
    Fixed,
}

/// Parameters by which senders compute a rate from a delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SozeLaw {
    /// alpha, bit/s; 0: the largest line rate of the network over the smallest weight.
    pub alpha_bps: f64,
    /// beta, bit/s, where alpha is given; 0: alpha over `unit_flows`.
    pub beta_bps: f64,
    /// alpha is the largest line rate over this weight.
    pub smallest_weight: f64,
    /// beta is alpha over this number.
    pub unit_flows: f64,
    /// p, ns; 0: `integral_rtts` of ln(alpha / beta) round trips, and no less than `least_p_ns`.
    pub p_ns: f64,
    /// The least p that follows from the round trip, ns.
    pub least_p_ns: f64,
    /// p over ln(alpha / beta), in the network's longest round trips.
    pub integral_rtts: f64,
    /// k, ns.
    pub k_ns: f64,
    /// m.
    pub m: f64,
    /// Window or rate.
    pub state: SenderState,
    /// Times of updates.
    pub often: Often,
    /// The least rate.
    pub floor: Floor,
    /// The sum of weights that a flow expects when it starts.
    pub start_weights: f64,
    /// Whether the path's idle round trip counts time, the exponent is that of the exact integral, delays end at k + p, and a
    /// new weight changes the rate at once. Otherwise as the paper says it.
    pub exact: bool,
    /// Floating point or integers.
    pub arithmetic: SozeArithmetic,
}

impl SozeLaw {
    /// ln(alpha / beta).
    pub fn span(&self) -> f64 {
        match self.alpha_bps > 0.0 && self.beta_bps > 0.0 {
            true => libm::log(self.alpha_bps / self.beta_bps),
            false => libm::log(self.unit_flows),
        }
    }

    /// p in a network whose longest round trip is `rtt_ns`, ns.
    pub fn p_ns(&self, rtt_ns: Ns) -> f64 {
        if self.p_ns > 0.0 {
            return self.p_ns;
        }
        (self.integral_rtts * self.span() * rtt_ns as f64).max(self.least_p_ns)
    }

    /// alpha in a network whose largest line rate is that, bit/s. It is one for all flows: a delay stands for one
    /// rate-per-weight, whoever hears of it.
    pub fn alpha_bps(&self, line_rate_bps: f64) -> f64 {
        if self.alpha_bps > 0.0 { self.alpha_bps } else { line_rate_bps / self.smallest_weight }
    }

    /// The rate-per-weight that flows start with: alpha's line over the sum of weights that they expect, bit/s.
    pub fn start_bps(&self, alpha_bps: f64) -> f64 {
        alpha_bps * self.smallest_weight / self.start_weights
    }

    /// The delay that stands for it, ns.
    pub fn start_delay_ns(&self, rtt_ns: Ns) -> f64 {
        let start = libm::log((self.start_weights / self.smallest_weight).max(1.0));
        self.k_ns + self.p_ns(rtt_ns) * start / self.span()
    }

    /// The target function in a network with that largest line rate.
    pub fn target(&self, p_ns: f64, line_rate_bps: f64) -> Target {
        let alpha_bps = self.alpha_bps(line_rate_bps);
        let beta_bps = if self.beta_bps > 0.0 { self.beta_bps } else { alpha_bps / self.unit_flows };
        Target { alpha_bps, beta_bps, p_ns, k_ns: self.k_ns }
    }

    /// The update by that target.
    pub fn update(&self, target: Target) -> RateUpdate {
        RateUpdate { target, m: self.m, exact: self.exact }
    }

    /// The field's unit in such a network.
    pub fn unit(&self, rtt_ns: Ns) -> DelayUnit {
        DelayUnit::of(self.k_ns + self.p_ns(rtt_ns))
    }
}
