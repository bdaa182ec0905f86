//! Arithmetic of pacing.

use super::flow::{PS, Subflow};
use subak_core::Ns;
use subak_core::scheme::{Clock, Rules};

/// Largest time between two paced packets, ps: more than ten days.
const LONGEST_GAP_PS: f64 = 1e18;

/// How the sources of a run apply pacing rates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacer {
    /// Resolution of the time between packets.
    clock: Clock,
    /// Whether a new rate applies only after the next packet.
    late_rates: bool,
}

impl Pacer {
    /// The pacer of a scheme with these properties.
    pub fn new(rules: &Rules) -> Self {
        Pacer { clock: rules.clock, late_rates: rules.pacing.late_rates }
    }

    /// Sets the pacing rate and the window that the source requests; the rate is limited to `demand_bps`.
    #[inline]
    pub fn set(self, sub: &mut Subflow, rate_bps: Option<f64>, window_bytes: Option<u64>, demand_bps: f64) {
        sub.held = false;
        sub.window_bytes = window_bytes.unwrap_or(u64::MAX);
        if sub.rate_bps != rate_bps {
            sub.rate_bps = rate_bps;
            // Without a pacing rate, packets are paced at the demand.
            let rate_bps = rate_bps.unwrap_or(f64::INFINITY).min(demand_bps);
            if rate_bps.is_finite() && self.moves_next(sub) {
                let gap_ps = self.gap_ps(sub.last_bytes, rate_bps);
                sub.pace_ps = sub.last_sent_ps.saturating_add(gap_ps);
            }
        }
    }

    /// Whether a new rate changes the time of the next packet.
    #[inline]
    pub fn moves_next(self, sub: &Subflow) -> bool {
        sub.last_bytes > 0 && !self.late_rates
    }

    #[inline]
    fn gap_ps(self, bytes: u32, rate_bps: f64) -> u64 {
        let exact_ps = (f64::from(bytes) * 8e12 / rate_bps).min(LONGEST_GAP_PS) as u64;
        match self.clock {
            Clock::Exact => exact_ps,
            Clock::WholeNs => (exact_ps - exact_ps % PS).max(PS),
        }
    }

    /// Advances pacing after a packet was sent at `now_ns`. If it was sent less than a nanosecond late, the next packet
    /// is scheduled from the ideal time, so that rounding does not reduce the rate. If it waited for other subflows'
    /// packets, up to one packet's time is made up.
    pub fn advance(self, sub: &mut Subflow, now_ns: Ns, bytes: u32, rate_bps: f64) {
        if !rate_bps.is_finite() {
            return;
        }
        let now_ps = now_ns * PS;
        let gap_ps = self.gap_ps(bytes, rate_bps);
        let made_up_ps = if sub.had_to_wait { gap_ps } else { 0 };
        let start_ps = match self.clock {
            Clock::WholeNs => now_ps,
            Clock::Exact if sub.pace_ps + PS > now_ps => sub.pace_ps.min(now_ps),
            Clock::Exact => sub.pace_ps.max(now_ps.saturating_sub(made_up_ps)),
        };
        sub.last_sent_ps = start_ps;
        sub.last_bytes = bytes;
        sub.pace_ps = start_ps.saturating_add(gap_ps);
    }

    /// Accounts for a packet of the subflow that left its NIC only at `now_ns`, behind other subflows' packets. Whole
    /// nanoseconds mean the arithmetic of a NIC that paces from that time on.
    pub fn left(self, sub: &mut Subflow, now_ns: Ns) {
        if self.clock == Clock::WholeNs {
            let late_ps = (now_ns * PS).saturating_sub(sub.last_sent_ps);
            sub.last_sent_ps += late_ps;
            sub.pace_ps = sub.pace_ps.saturating_add(late_ps);
        }
    }
}
