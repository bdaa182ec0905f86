//! Rate of a subflow: reduced at CNPs, raised by timer and byte counter.

use super::Dcqcn;
use subak_core::Ns;

#[derive(Debug, Clone, Copy)]
pub(super) struct DcqcnSubflow {
    pub line_bps: f64,
    /// Current rate R_C, bit/s.
    pub rate_bps: f64,
    /// Target rate R_T, bit/s.
    pub target_bps: f64,
    pub alpha: f64,
    /// Time up to which alpha is computed, ns.
    pub alpha_at_ns: Ns,
    /// Whether a CNP arrived since `alpha_at_ns`.
    pub notified: bool,
    /// Arrival of the first CNP, ns.
    pub first_ns: Option<Ns>,
    /// Whether a CNP arrived whose rate cut is still pending.
    pub cuts: bool,
    /// Number of expiries of the timer since the last cut.
    pub timed: u32,
    /// Number of expiries of the byte counter since the last cut.
    pub counted: u32,
    pub bytes: u64,
    /// Expiry of the timer, ns.
    pub due_ns: Ns,
    pub has_timer: bool,
}

impl DcqcnSubflow {
    pub fn new(line_bps: f64) -> Self {
        DcqcnSubflow {
            line_bps,
            rate_bps: line_bps,
            target_bps: line_bps,
            alpha: 1.0,
            alpha_at_ns: 0,
            notified: false,
            first_ns: None,
            cuts: false,
            timed: 0,
            counted: 0,
            bytes: 0,
            due_ns: 0,
            has_timer: false,
        }
    }

    /// Updates alpha for the time up to `now_ns`: one decrease per `alpha_timer`. Under `alpha_update = "interval"`,
    /// the first of them is an increase instead if a CNP arrived.
    pub fn bring_alpha_to(&mut self, scheme: &Dcqcn, now_ns: Ns) {
        let mut passed = (now_ns - self.alpha_at_ns) / scheme.alpha_ns;
        if scheme.alpha_by_interval {
            self.alpha_at_ns += passed * scheme.alpha_ns;
        }
        if passed > 0 && std::mem::take(&mut self.notified) {
            self.alpha += scheme.g * (1.0 - self.alpha);
            passed -= 1;
        }
        self.alpha *= (1.0 - scheme.g).powi(passed.min(1 << 20) as i32);
    }

    /// Handles a CNP; returns the time of the resulting cut, or `None` if one is pending already.
    pub fn notify(&mut self, scheme: &Dcqcn, now_ns: Ns) -> Option<Ns> {
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        if first_ns == now_ns {
            // Alpha stays 1 until a flow's first CNP.
            self.alpha_at_ns = now_ns;
        } else if scheme.alpha_by_interval {
            self.bring_alpha_to(scheme, now_ns);
            self.notified = true;
        }
        if std::mem::replace(&mut self.cuts, true) {
            return None;
        }
        // Cuts are aligned to intervals from the first CNP; a cut comes after the update of alpha.
        let passed = (now_ns - first_ns).checked_div(scheme.cut_ns).unwrap_or(0);
        Some(if scheme.cut_ns == 0 { now_ns } else { first_ns + (passed + 1) * scheme.cut_ns + 1 })
    }

    pub fn cut(&mut self, scheme: &Dcqcn, now_ns: Ns) {
        self.cuts = false;
        self.bring_alpha_to(scheme, now_ns);
        if scheme.clamp || self.timed + self.counted > 0 {
            self.target_bps = self.rate_bps;
        }
        self.rate_bps = (self.rate_bps * (1.0 - self.alpha / 2.0)).max(scheme.min_rate * self.line_bps);
        if !scheme.alpha_by_interval {
            self.alpha += scheme.g * (1.0 - self.alpha);
            self.alpha_at_ns = now_ns;
        }
        (self.timed, self.counted, self.bytes) = (0, 0, 0);
        self.due_ns = now_ns + scheme.timer_ns;
    }

    /// Raises the rate after an expiry of the timer or the counter.
    pub fn raise(&mut self, scheme: &Dcqcn) {
        let least = if scheme.counter_bytes > 0 { self.timed.min(self.counted) } else { self.timed };
        let most = self.timed.max(self.counted);
        if most >= scheme.fast {
            let step = if least > scheme.fast { scheme.hai } else { scheme.ai };
            self.target_bps = (self.target_bps + step * self.line_bps).min(self.line_bps);
        }
        self.rate_bps = f64::midpoint(self.target_bps, self.rate_bps);
        // A tolerance of a billionth absorbs rounding errors below the line rate.
        if self.rate_bps > self.line_bps * (1.0 - 1e-9) {
            self.rate_bps = self.line_bps;
        }
    }

    pub fn is_at_line_rate(&self) -> bool {
        self.rate_bps >= self.line_bps
    }
}
