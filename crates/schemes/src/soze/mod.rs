//! Soze's equations and its sender (Wang and Ng, Soze, section 3), shared by transports with different signals.

mod filter;
pub mod fixed;
mod fixed_link;
#[cfg(test)]
mod fixed_tests;
mod fluid;
mod law;
mod link;
mod rate;
mod sender;
mod settings;
#[cfg(test)]
mod tests;

pub use filter::{Filter, Leaving, Signal};
pub use fixed::FixedUpdate;
pub use fixed_link::FixedVirtual;
pub use fluid::{NewFluidFlow, SozeFluid};
pub use law::{Floor, Often, SenderState, SozeArithmetic, SozeLaw};
pub use link::{Virtual, VirtualLink};
pub use rate::{FixedSozeRate, Heard, Limits, SenderRate, SozeSettings};
pub use sender::SozeSender;
pub use settings::SozeLinkSettings;

/// Target function of Soze (equation 6): maps a rate/weight to a delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// Largest rate/weight, bit/s.
    pub alpha_bps: f64,
    /// Smallest expected rate/weight, bit/s.
    pub beta_bps: f64,
    /// p: delay for a rate/weight of beta minus delay for alpha, ns.
    pub p_ns: f64,
    /// k: delay for a rate/weight of alpha, ns.
    pub k_ns: f64,
}

impl Target {
    /// ln(alpha / beta): logarithm of the ratio of the largest to the smallest expected rate/weight.
    #[inline]
    pub fn span(&self) -> f64 {
        libm::log(self.alpha_bps / self.beta_bps)
    }

    /// The delay for a rate/weight, ns: target function T (Soze, equation 6).
    pub fn delay_ns(&self, share_bps: f64) -> f64 {
        self.p_ns * libm::log(self.alpha_bps / share_bps) / self.span() + self.k_ns
    }

    /// The rate/weight for a delay, bit/s: inverse of T (Soze, equation 25, with k included). A delay below k maps to
    /// alpha.
    #[inline]
    pub fn share_bps(&self, delay_ns: f64) -> f64 {
        let above = (delay_ns - self.k_ns).max(0.0) / self.p_ns;
        self.alpha_bps * libm::exp(-above * self.span())
    }

    /// Minimum rate of a flow, bit/s: half of its rate at beta.
    #[inline]
    pub fn least_bps(&self, weight: f64) -> f64 {
        0.5 * self.beta_bps * weight
    }

    /// Factor U of a rate update (Soze, equation 7). `share_bps`: the present rate/weight, bit/s.
    pub fn ratio(&self, share_bps: f64, delay_ns: f64, m: f64) -> f64 {
        libm::exp(m * libm::log(self.share_bps(delay_ns) / share_bps))
    }
}

/// Largest factor by which a rate changes in an RTT.
pub const MOST_RATIO: f64 = 2.0;
/// Largest number of RTTs that count in a rise of the rate after a time without feedback: one feedback is only one
/// sample.
pub const MOST_RISE_RTTS: f64 = 2.0;

/// Rate update of Soze (algorithm 1), scaled to the time since the previous one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateUpdate {
    /// The target function.
    pub target: Target,
    /// m, the exponent of an update (Soze, equation 7).
    pub m: f64,
    /// Whether the update deviates from the Soze paper: the exponent is that of the exact integral over time, delays
    /// are bounded by k + p, and a rise is bounded by [`MOST_RISE_RTTS`].
    pub exact: bool,
}

impl RateUpdate {
    /// Exponent of the update's factor U (Soze, equation 7) for an update `rtts` RTTs after the previous one.
    #[inline]
    pub fn exponent(&self, rtts: f64) -> f64 {
        if self.exact { 1.0 - libm::exp(-self.m * rtts) } else { self.m * rtts.min(1.0) }
    }

    /// Rate after feedback of `delay_ns`, `rtts` RTTs after the previous update, bit/s.
    #[inline]
    pub fn next_bps(&self, rate_bps: f64, weight: f64, delay_ns: f64, rtts: f64) -> f64 {
        let end_ns = self.target.k_ns + self.target.p_ns;
        let delay_ns = if self.exact { delay_ns.min(end_ns) } else { delay_ns };
        let off = libm::log(self.target.share_bps(delay_ns) * weight / rate_bps);
        let fall = libm::log(MOST_RATIO) * rtts;
        let rise = if self.exact { libm::log(MOST_RATIO) * rtts.min(MOST_RISE_RTTS) } else { fall };
        rate_bps * libm::exp((self.exponent(rtts) * off).clamp(-fall, rise))
    }
}

/// Lower bound of p / (tau ln(alpha / beta)) for a stable loop with feedback delay tau and smoothing by m: sin(u) / u
/// with u tan(u) = m tau / RTT. `docs/transports/soze.md` has the derivation.
pub fn least_integral(m_tau: f64) -> f64 {
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..60 {
        let u = 0.5 * (low + high);
        if u * libm::tan(u) < m_tau { low = u } else { high = u }
    }
    let u = 0.5 * (low + high);
    libm::sin(u) / u
}

/// Soze header of a packet: the largest delay of the links crossed, in a unit derived from k + p.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MaxDelay(pub u16);

/// The unit of [`MaxDelay`]: the smallest power of two, in ns, such that four times k + p fits in two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayUnit {
    shift: u32,
}

impl DelayUnit {
    /// The unit for a given k + p, the delay of the smallest expected rate/weight.
    pub fn of(k_plus_p_ns: f64) -> Self {
        let least = (4.0 * k_plus_p_ns / f64::from(u16::MAX)).ceil().clamp(1.0, 1e9) as u64;
        DelayUnit { shift: least.next_power_of_two().trailing_zeros() }
    }

    /// Converts a delay to the nearest value of the field.
    #[inline]
    pub fn put(self, delay_ns: f64) -> MaxDelay {
        let unit = (1u64 << self.shift) as f64;
        MaxDelay((delay_ns / unit + 0.5).clamp(0.0, f64::from(u16::MAX)) as u16)
    }

    /// Converts a delay in whole ns to the nearest value of the field.
    #[inline]
    pub fn put_ns(self, delay_ns: u32) -> MaxDelay {
        let half = (1u64 << self.shift) >> 1;
        MaxDelay(((u64::from(delay_ns) + half) >> self.shift).min(u64::from(u16::MAX)) as u16)
    }

    /// Exponent: the unit is 2^result ns.
    pub fn shift(self) -> u32 {
        self.shift
    }

    /// Converts a value of the field to ns.
    #[inline]
    pub fn ns(self, field: MaxDelay) -> u32 {
        (u64::from(field.0) << self.shift).min(u64::from(u32::MAX)) as u32
    }
}
