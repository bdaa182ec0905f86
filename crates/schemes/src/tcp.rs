//! The congestion window that the TCPs share: slow start, additive increase, one cut a window (RFC 5681, 6582, with
//! the selective acknowledgements of the driver in place of duplicate-ACK inflation).

use subak_core::scheme::{Ack, Loss, LossKind, Param, ParamUnit, Params, Recovery};

/// `params.initial_window`.
pub const INITIAL_WINDOW: Param =
    Param::number("initial_window", 10.0, ParamUnit::Packets, "window at the start of a flow");
/// `params.rto_min`.
pub const RTO_MIN: Param = Param::number(
    "rto_min",
    1e-3,
    ParamUnit::Seconds,
    "smallest retransmission timeout: more than two full buffers of 360 us delay a packet",
);

/// With [`RTO_MIN`].
pub fn recovery(params: &Params) -> Recovery {
    Recovery { rto_min_ns: params.ns("rto_min").max(1), ..Recovery::default() }
}

/// A congestion window of one subflow, in payload bytes.
#[derive(Debug, Clone)]
pub struct Window {
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    /// First segment sent after the last cut: losses and marks of earlier ones belong to the same event.
    recover: u32,
    /// Between a fast retransmission and the first acknowledgement of a segment sent after it.
    recovering: bool,
}

impl Window {
    /// A window of `initial` segments of `mss_bytes` in slow start.
    pub fn new(mss_bytes: u32, initial: f64) -> Self {
        let mss = f64::from(mss_bytes);
        Window { mss, cwnd: initial * mss, ssthresh: f64::INFINITY, recover: 0, recovering: false }
    }

    /// The window, bytes.
    pub fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    /// Whether the acknowledged segment was sent after the last cut.
    pub fn past_cut(&self, segment: u32) -> bool {
        segment >= self.recover
    }

    /// Grows by an acknowledgement, if the window was what held the sender back.
    pub fn grow<D>(&mut self, ack: &Ack<D>) {
        if self.recovering && self.past_cut(ack.segment) {
            self.recovering = false;
        }
        let used = (ack.in_flight_bytes + ack.acked_bytes) as f64 + self.mss >= self.cwnd;
        if self.recovering || !used {
            return;
        }
        let acked = ack.acked_bytes as f64;
        self.cwnd += if self.cwnd < self.ssthresh { acked } else { self.mss * acked / self.cwnd };
    }

    /// Shrinks to `factor` of itself, at most once for what was in flight at the last cut.
    pub fn cut(&mut self, factor: f64, next_segment: u32) {
        self.ssthresh = (self.cwnd * factor).max(2.0 * self.mss);
        self.cwnd = self.ssthresh;
        self.recover = next_segment;
    }

    /// Halves on a loss that later acknowledgements told of; restarts from one segment after a timeout.
    pub fn on_loss(&mut self, loss: &Loss) {
        if self.past_cut(loss.segment) {
            self.cut(0.5, loss.next_segment);
            self.recovering = loss.kind == LossKind::Reordered;
        }
        if loss.kind == LossKind::Timeout {
            self.cwnd = self.mss;
            self.recovering = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(segment: u32, in_flight_bytes: u64) -> Ack<()> {
        Ack {
            subflow: 0,
            acked_bytes: 1000,
            rtt_ns: 1000,
            ecn: false,
            in_flight_bytes,
            remaining_bytes: u64::MAX,
            segment,
            next_segment: segment + 10,
            data: (),
        }
    }

    #[test]
    fn slow_start_doubles_a_round_and_avoidance_adds_one_segment() {
        let mut w = Window::new(1000, 10.0);
        for k in 0..10 {
            w.grow(&ack(k, 9000 + u64::from(k) * 1000));
        }
        assert_eq!(w.bytes(), 20_000);
        w.cut(0.5, 20);
        for k in 20..30 {
            w.grow(&ack(k, 20_000));
        }
        assert!((10_900..=11_000).contains(&w.bytes()), "{}", w.bytes());
    }

    #[test]
    fn one_cut_a_window_and_a_restart_after_a_timeout() {
        let mut w = Window::new(1000, 16.0);
        let loss = |segment, kind| Loss { subflow: 0, kind, segment, next_segment: 40, in_flight_bytes: 0 };
        w.on_loss(&loss(5, LossKind::Reordered));
        w.on_loss(&loss(7, LossKind::Reordered));
        assert_eq!(w.bytes(), 8000);
        w.on_loss(&loss(45, LossKind::Timeout));
        assert_eq!(w.bytes(), 1000);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut w = Window::new(1000, 10.0);
        w.grow(&ack(0, 2000));
        assert_eq!(w.bytes(), 10_000);
    }
}
