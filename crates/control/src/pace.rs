//! Rate limit of messages.

use subak_core::Ns;

/// Token bucket; without a rate there is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    bps: Option<f64>,
    /// Burst size, as transmission time at the rate, ns.
    burst_ns: Ns,
    /// Time at which the bucket is full again, ns.
    paid_ns: Ns,
}

impl Pace {
    /// Sets rate (bit/s) and burst; an invalid rate means no limit.
    pub fn set(&mut self, bps: f64, burst_bytes: usize) {
        self.bps = (bps.is_finite() && bps > 0.0).then_some(bps);
        self.burst_ns = self.bps.map_or(0, |bps| ns(burst_bytes, bps));
    }

    /// Time at which the next datagram may be sent, ns.
    pub fn next_ns(&self) -> Ns {
        self.paid_ns.saturating_sub(self.burst_ns)
    }

    /// Accounts for a sent datagram of `bytes`.
    pub fn spend(&mut self, now_ns: Ns, bytes: usize) {
        if let Some(bps) = self.bps {
            self.paid_ns = self.paid_ns.max(now_ns) + ns(bytes, bps);
        }
    }
}

fn ns(bytes: usize, bps: f64) -> Ns {
    (bytes as f64 * 8e9 / bps) as Ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let mut pace = Pace::default();
        assert_eq!(pace.next_ns(), 0);
        pace.set(8e9, 16_000);
        let mut now_ns = 1_000_000;
        let mut sent = 0.0;
        for _ in 0..100 {
            now_ns = pace.next_ns().max(now_ns);
            pace.spend(now_ns, 1000);
            sent += 1000.0;
        }
        let passed_ns = (now_ns - 1_000_000) as f64;
        assert!(sent <= passed_ns + 16_000.0 + 1000.0 && sent >= passed_ns + 16_000.0 - 1000.0, "{passed_ns}");
    }
}
