//! First-order lag by which rates approach their goal.
//!
//! A scheme that states that it comes within w of its goal after n round trips has the time constant
//! T = n RTT / ln(1/w): what starts from nothing is then within w after n round trips. RTT is the longest of the flows
//! that run. All rates have the same T, so that whatever lies between two sets of rates that links can carry, links can
//! carry too. A rate x + g, g its distance from the goal x, is x + g e^(-t/T) after t.

use subak_core::Ns;
use subak_core::scheme::Settles;

/// Newton's steps to the end of a flow; a handful suffices.
const MOST_STEPS: usize = 100;

/// The distance of each subflow's rate from its goal, and how it shrinks.
#[derive(Debug, Clone)]
pub(crate) struct Lag {
    /// T in round trips.
    rtts: f64,
    /// T, s.
    constant_s: f64,
    gap_bps: Vec<f64>,
}

impl Lag {
    /// `None` where rates are at their goal at once.
    pub fn of(settles: Settles) -> Option<Lag> {
        let rtts = settles.rtts / -libm::log(settles.within);
        (rtts > 0.0).then(|| Lag { rtts, constant_s: 0.0, gap_bps: Vec::new() })
    }

    /// One more subflow, which does not send.
    pub fn add(&mut self) {
        self.gap_bps.push(0.0);
    }

    /// The longest round trip is this from now on.
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

    /// Bits that `sub` sends beyond its goal in the next `seconds`.
    pub fn extra_bits(&self, sub: usize, seconds: f64) -> f64 {
        self.beyond(self.gap_bps[sub], seconds)
    }

    fn beyond(&self, gap_bps: f64, seconds: f64) -> f64 {
        -gap_bps * self.constant_s * libm::expm1(-seconds / self.constant_s)
    }

    /// Remaining fraction of a distance after `seconds`.
    pub fn left(&self, seconds: f64) -> f64 {
        libm::exp(-seconds / self.constant_s)
    }

    pub fn shrink(&mut self, sub: usize, left: f64) {
        self.gap_bps[sub] *= left;
    }

    /// Time to send `bits` at a rate that is `gap_bps` above `goal_bps` now, s; infinite if they are never sent.
    pub fn seconds(&self, bits: f64, goal_bps: f64, gap_bps: f64) -> f64 {
        if gap_bps == 0.0 || bits <= 0.0 {
            return if bits <= 0.0 { 0.0 } else { bits / goal_bps };
        }
        if goal_bps <= 0.0 && bits >= gap_bps * self.constant_s {
            return f64::INFINITY;
        }
        // What is sent is concave in time for a rate that falls, convex for one that rises: from these ends, Newton's steps
        // never go past the answer.
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
