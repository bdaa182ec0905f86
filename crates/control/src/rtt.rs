//! Retransmission timeout (RFC 6298).

use subak_core::Ns;

/// RTT estimator of one channel, sampled from its ACKs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rtt {
    /// SRTT, ns; 0 before the first sample.
    smoothed_ns: Ns,
    variation_ns: Ns,
    least_ns: Option<Ns>,
}

impl Rtt {
    /// Adds a sample: a datagram was ACKed `sample_ns` after it was sent (equations 2.2 and 2.3).
    pub fn sample(&mut self, sample_ns: Ns) {
        if self.least_ns.is_none() {
            (self.smoothed_ns, self.variation_ns) = (sample_ns, sample_ns / 2);
        } else {
            self.variation_ns = (3 * self.variation_ns + self.smoothed_ns.abs_diff(sample_ns)) / 4;
            self.smoothed_ns = (7 * self.smoothed_ns + sample_ns) / 8;
        }
        self.least_ns = Some(self.least_ns.map_or(sample_ns, |least| least.min(sample_ns)));
    }

    /// SRTT, ns; 0 before the first sample.
    pub fn smoothed_ns(&self) -> Ns {
        self.smoothed_ns
    }

    /// Smallest sample, ns; 0 before the first.
    pub fn least_ns(&self) -> Ns {
        self.least_ns.unwrap_or(0)
    }

    /// RTO after `in_a_row` consecutive timeouts, ns: at least `min_ns`, and doubled after each timeout up to
    /// `max_ns`. `delay_ns` is the peer's largest delay of an ACK.
    pub fn timeout_ns(&self, in_a_row: u32, min_ns: Ns, max_ns: Ns, delay_ns: Ns) -> Ns {
        let once_ns = (self.smoothed_ns + 4 * self.variation_ns + delay_ns).max(min_ns);
        once_ns.saturating_mul(1 << in_a_row.min(30)).min(max_ns).max(once_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_round_trip_as_rfc_6298_has_it() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout_ns(0, 20, 1000, 10), 20, "before any sample");
        rtt.sample(100);
        assert_eq!(rtt.timeout_ns(0, 20, 1000, 10), 100 + 4 * 50 + 10);
        rtt.sample(60);
        // RTTVAR = 3/4 50 + 1/4 |100 - 60|, SRTT = 7/8 100 + 1/8 60.
        assert_eq!((rtt.variation_ns, rtt.smoothed_ns, rtt.least_ns()), (47, 95, 60));
    }

    #[test]
    fn each_timeout_in_a_row_doubles_it_up_to_the_most_but_never_below_the_round_trip() {
        let mut rtt = Rtt::default();
        assert_eq!([0, 1, 2, 3, 4, 60].map(|k| rtt.timeout_ns(k, 20, 200, 0)), [20, 40, 80, 160, 200, 200]);
        rtt.sample(1000);
        assert_eq!(rtt.timeout_ns(5, 20, 200, 0), 3000, "a round trip beyond the most");
    }
}
