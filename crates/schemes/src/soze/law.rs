//! Parameters of Soze's senders.

use super::{DelayUnit, RateUpdate, Target};
use subak_core::Ns;

/// State variable of a sender between ACKs (Soze, section 3.3, allows a window or a rate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderState {
    /// A window: the rate of the Soze paper's algorithm 1 is the window over the measured RTT.
    Window,
    /// A rate, which paces packets.
    Rate,
    /// A rate; the window is the rate times the measured RTT.
    WindowOfRate,
}

/// Times at which the rate is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Often {
    /// At each ACK, scaled to the fraction of an RTT since the previous update (Soze, section 3.3).
    Packet,
    /// At each ACK, as if a whole RTT had passed since the previous update (Soze, equations 22 and 23 at each packet).
    Whole,
    /// Once per measured RTT (Soze, algorithm 1).
    Rtt,
}

/// Minimum rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// One packet per measured RTT.
    Packet,
    /// Half of the flow's rate at beta, and at least one packet in 32 RTTs.
    Beta,
}

/// Arithmetic of senders and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SozeArithmetic {
    /// Floating point.
    Float,
    /// Integers, as in kernels and switches: see [`super::fixed`].
    Fixed,
}

/// Parameters by which senders compute a rate from a delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SozeLaw {
    /// alpha, the largest rate/weight, bit/s; 0: largest line rate of the network over the smallest weight.
    pub alpha_bps: f64,
    /// beta, the smallest expected rate/weight, bit/s, if alpha is given; 0: alpha over `unit_flows`.
    pub beta_bps: f64,
    /// Smallest weight: by default, alpha is the largest line rate over it.
    pub smallest_weight: f64,
    /// Ratio of alpha to beta, unless beta is given.
    pub unit_flows: f64,
    /// p, the delay of beta minus that of alpha, ns; 0: `integral_rtts` times ln(alpha / beta) RTTs, but at least
    /// `least_p_ns`.
    pub p_ns: f64,
    /// Minimum of a p that depends on the RTT, ns.
    pub least_p_ns: f64,
    /// p over ln(alpha / beta), in units of the network's largest RTT, if p depends on the RTT.
    pub integral_rtts: f64,
    /// k, the delay of alpha, ns.
    pub k_ns: f64,
    /// m, the exponent of a rate update (Soze, equation 7).
    pub m: f64,
    /// State variable: window or rate.
    pub state: SenderState,
    /// Times at which the rate is updated.
    pub often: Often,
    /// Minimum rate.
    pub floor: Floor,
    /// Sum of the weights at its bottleneck that a starting flow assumes.
    pub start_weights: f64,
    /// Whether to deviate from the Soze paper: time in base RTTs, the exponent of the exact integral, delays bounded by
    /// k + p, and immediate effect of a new weight on the rate.
    pub exact: bool,
    /// Arithmetic: floating point or integers.
    pub arithmetic: SozeArithmetic,
}

impl SozeLaw {
    /// ln(alpha / beta): logarithm of the ratio of the largest to the smallest expected rate/weight.
    pub fn span(&self) -> f64 {
        match self.alpha_bps > 0.0 && self.beta_bps > 0.0 {
            true => libm::log(self.alpha_bps / self.beta_bps),
            false => libm::log(self.unit_flows),
        }
    }

    /// p in a network whose largest base RTT is `rtt_ns`, ns.
    pub fn p_ns(&self, rtt_ns: Ns) -> f64 {
        if self.p_ns > 0.0 {
            return self.p_ns;
        }
        (self.integral_rtts * self.span() * rtt_ns as f64).max(self.least_p_ns)
    }

    /// alpha in a network with this largest line rate, bit/s. It is the same for all flows, so that a delay maps to
    /// one rate/weight.
    pub fn alpha_bps(&self, line_rate_bps: f64) -> f64 {
        if self.alpha_bps > 0.0 { self.alpha_bps } else { line_rate_bps / self.smallest_weight }
    }

    /// Initial rate/weight, bit/s: the line rate that alpha stands for, over the sum of weights that a starting flow
    /// assumes.
    pub fn start_bps(&self, alpha_bps: f64) -> f64 {
        alpha_bps * self.smallest_weight / self.start_weights
    }

    /// Delay that means the initial rate/weight, ns.
    pub fn start_delay_ns(&self, rtt_ns: Ns) -> f64 {
        let start = libm::log((self.start_weights / self.smallest_weight).max(1.0));
        self.k_ns + self.p_ns(rtt_ns) * start / self.span()
    }

    /// The target function for this p, in a network with this largest line rate.
    pub fn target(&self, p_ns: f64, line_rate_bps: f64) -> Target {
        let alpha_bps = self.alpha_bps(line_rate_bps);
        let beta_bps = if self.beta_bps > 0.0 { self.beta_bps } else { alpha_bps / self.unit_flows };
        Target { alpha_bps, beta_bps, p_ns, k_ns: self.k_ns }
    }

    /// The rate update with this target function.
    pub fn update(&self, target: Target) -> RateUpdate {
        RateUpdate { target, m: self.m, exact: self.exact }
    }

    /// Unit of the delays in packets, in a network whose largest base RTT is `rtt_ns`.
    pub fn unit(&self, rtt_ns: Ns) -> DelayUnit {
        DelayUnit::of(self.k_ns + self.p_ns(rtt_ns))
    }
}
