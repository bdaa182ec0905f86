//! First-order lag by which rates approach their goal.
//!
//! A scheme with tolerance w and a convergence time of n RTTs has the time constant T = n RTT / ln(1/w): a rate that
//! starts from 0 is then within w after n RTTs. RTT is the largest base RTT of the active flows. All rates have the
//! same T, so that the rates stay on the line between two feasible vectors and are feasible too. A rate that is g
//! above its goal x is x + g e^(-t/T) after time t.

use subak_core::Ns;
use subak_core::scheme::Settles;

/// Largest number of Newton steps to find the end of a flow; a handful suffices.
const MOST_STEPS: usize = 100;

/// Difference of each subflow's rate from its goal, and its decay.
#[derive(Debug, Clone)]
pub(crate) struct Lag {
    /// Time constant T in RTTs.
    rtts: f64,
    /// Time constant T, s.
    constant_s: f64,
    gap_bps: Vec<f64>,
}

impl Lag {
    /// The lag of a scheme with this tolerance and convergence time; `None` if rates reach their goal without delay.
    pub fn of(settles: Settles) -> Option<Lag> {
        let rtts = settles.rtts / -libm::log(settles.within);
        (rtts > 0.0).then(|| Lag { rtts, constant_s: 0.0, gap_bps: Vec::new() })
    }

    /// Adds a subflow with rate 0.
    pub fn add(&mut self) {
        self.gap_bps.push(0.0);
    }

    /// Sets the largest base RTT.
    pub fn set_rtt(&mut self, rtt_ns: Ns) {
        self.constant_s = self.rtts * rtt_ns as f64 * 1e-9;
    }

    /// Excess of the rate of `sub` over its goal, bit/s.
    pub fn gap_bps(&self, sub: usize) -> f64 {
        self.gap_bps[sub]
    }

    pub fn set_gap(&mut self, sub: usize, bps: f64) {
        self.gap_bps[sub] = bps;
    }

    /// Bits that `sub` sends in the next `seconds` in excess of its goal; negative if below.
    pub fn extra_bits(&self, sub: usize, seconds: f64) -> f64 {
        self.beyond(self.gap_bps[sub], seconds)
    }

    fn beyond(&self, gap_bps: f64, seconds: f64) -> f64 {
        -gap_bps * self.constant_s * libm::expm1(-seconds / self.constant_s)
    }

    /// Fraction of a difference that remains after `seconds`.
    pub fn left(&self, seconds: f64) -> f64 {
        libm::exp(-seconds / self.constant_s)
    }

    pub fn shrink(&mut self, sub: usize, left: f64) {
        self.gap_bps[sub] *= left;
    }

    /// Time to send `bits` at a rate that is now `gap_bps` above `goal_bps`, s; infinite if they are never sent.
    pub fn seconds(&self, bits: f64, goal_bps: f64, gap_bps: f64) -> f64 {
        if gap_bps == 0.0 || bits <= 0.0 {
            return if bits <= 0.0 { 0.0 } else { bits / goal_bps };
        }
        if goal_bps <= 0.0 && bits >= gap_bps * self.constant_s {
            return f64::INFINITY;
        }
        // The bits sent are concave in time for a falling rate and convex for a rising one. From these starts
        // Newton's steps never overshoot.
        let mut t = if gap_bps > 0.0 { 0.0 } else { (bits - gap_bps * self.constant_s) / goal_bps };
        for _ in 0..MOST_STEPS {
            let rate = goal_bps + gap_bps * self.left(t);
            let step = (bits - goal_bps * t - self.beyond(gap_bps, t)) / rate;
            if !step.is_finite() {
                break;
            }
            t += step;
            if step.abs() <= 1e-14 * t {
                break;
            }
        }
        t.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_starts_from_nothing_is_as_near_as_stated_after_the_time_stated() {
        let mut lag = Lag::of(Settles { within: 0.02, rtts: 60.0 }).unwrap();
        lag.set_rtt(10_000);
        assert!((lag.left(60.0 * 10e-6) - 0.02).abs() < 1e-12);
        assert!(Lag::of(Settles::AT_ONCE).is_none());
    }

    proptest! {
        #[test]
        fn the_end_of_a_flow_is_when_its_bits_are_sent(
            bits in 1.0..1e12f64,
            goal in 1e3..1e11f64,
            share in -1.0..20.0f64,
            rtt_ns in 1u64..100_000_000,
        ) {
            let mut lag = Lag::of(Settles { within: 0.1, rtts: 100.0 }).unwrap();
            lag.set_rtt(rtt_ns);
            let gap = share * goal;
            let t = lag.seconds(bits, goal, gap);
            let sent = goal * t + lag.beyond(gap, t);
            prop_assert!((sent / bits - 1.0).abs() < 1e-6, "{sent} of {bits} after {t}");
        }
    }
}
