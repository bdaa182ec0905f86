//! Rate limit of a host's messages.

use subak_core::Ns;

/// Token bucket: a sustained rate, and bursts of a tenth of a second at that rate.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    per_s: f64,
    tokens: f64,
    at_ns: Ns,
}

impl Bucket {
    /// A full bucket for `per_s` tokens a second.
    pub fn new(per_s: f64) -> Bucket {
        Bucket { per_s, tokens: Self::room(per_s), at_ns: 0 }
    }

    fn room(per_s: f64) -> f64 {
        (per_s / 10.0).max(1.0)
    }

    /// Removes a token from the bucket; false if it has none.
    pub fn take(&mut self, now_ns: Ns) -> bool {
        let passed_s = now_ns.saturating_sub(self.at_ns) as f64 * 1e-9;
        self.at_ns = self.at_ns.max(now_ns);
        self.tokens = (self.tokens + passed_s * self.per_s).min(Self::room(self.per_s));
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_its_rate_pass_and_a_burst() {
        let mut bucket = Bucket::new(1000.0);
        let at_once = (0..500).filter(|_| bucket.take(0)).count();
        assert_eq!(at_once, 100);
        let later = (1..=1_000_000).filter(|k| bucket.take(k * 1000)).count();
        assert!((999..=1001).contains(&later), "{later} in a second");
        assert!(!bucket.take(5), "a clock that goes back gives nothing");
    }
}
