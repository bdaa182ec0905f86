//! Congestion window shared by the TCP schemes: slow start, additive increase, and one cut per window (RFC 5681 and
//! 6582, with the backend's SACK instead of duplicate-ACK inflation). A cut is immediate, or spread over the ACKs of
//! an RTT by proportional rate reduction (RFC 6937, bound by slow start).

use subak_core::InputError;
use subak_core::keys::ValueType;
use subak_core::scheme::{Ack, FlowInfo, Loss, LossKind, Param, Params, Recovery};

/// Parameter `initial_window`: congestion window at the start of a flow, packets.
pub const INITIAL_WINDOW: Param =
    Param::number("initial_window", 10.0, ValueType::Packets, "window at the start of a flow");
/// Parameter `rto_min`: minimum RTO.
pub const RTO_MIN: Param = Param::number(
    "rto_min",
    1e-3,
    ValueType::Time,
    "smallest retransmission timeout: more than two full buffers of 360 us delay a packet",
);

/// Parameter `reduction`: how the window is reduced after a loss.
pub const REDUCTION: Param = Param::choice(
    "reduction",
    &["immediate", "prr"],
    "reduction of the window after a loss: at once, or over an RTT of ACKs (prr, RFC 6937)",
);
/// Parameter `timeout`: which packets an RTO marks lost.
pub const TIMEOUT: Param = Param::choice(
    "timeout",
    &["old", "all"],
    "packets that a timeout marks lost: those older than an RTT (old, RFC 8985), or all in flight (all, RFC 6298)",
);

/// Parameter `probe`: whether tail loss probes are sent (RFC 8985).
pub const PROBE: Param = Param::flag(
    "probe",
    true,
    "tail loss probe after two RTTs without ACK, before the RTO (RFC 8985); false, as in ns-2: none",
);

/// Initial congestion window and its reduction after a loss.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    initial: f64,
    proportional: bool,
}

impl Windows {
    /// Reads [`INITIAL_WINDOW`] and [`REDUCTION`].
    pub fn of(params: &Params) -> Result<Self, InputError> {
        Ok(Windows {
            initial: params.within("initial_window", 1.0, 1e6)?,
            proportional: params.word("reduction") == "prr",
        })
    }

    /// Initial window of a subflow of `flow`.
    pub fn window(self, flow: &FlowInfo) -> Window {
        Window { proportional: self.proportional, ..Window::new(flow.mss_bytes, self.initial) }
    }
}

/// Loss recovery by [`RTO_MIN`], [`TIMEOUT`] and [`PROBE`].
pub fn recovery(params: &Params) -> Recovery {
    Recovery {
        rto_min_ns: params.ns("rto_min").max(1),
        timeout_loses_all: params.word("timeout") == "all",
        probe: params.flag("probe"),
        ..Recovery::default()
    }
}

/// A congestion window of one subflow, in payload bytes.
#[derive(Debug, Clone)]
pub struct Window {
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    /// Number of the first segment sent after the last cut. Losses and ECN marks of earlier segments belong to the
    /// same congestion event.
    recover: u32,
    /// Whether a fast retransmission was sent and no segment sent after it has been ACKed.
    recovering: bool,
    /// Whether cuts are spread over an RTT.
    proportional: bool,
    /// The cut in progress.
    reduction: Option<Reduction>,
    /// Bytes in flight.
    flight: f64,
    /// Bytes in flight before the latest ACK.
    before: f64,
    /// Bytes that the latest ACK acknowledged.
    newly: f64,
}

/// Variables of RFC 6937 during a proportional reduction, in bytes.
#[derive(Debug, Clone, Copy)]
struct Reduction {
    recover_fs: f64,
    delivered: f64,
    out: f64,
}

impl Window {
    /// A window of `initial` segments of `mss_bytes`, in slow start.
    pub fn new(mss_bytes: u32, initial: f64) -> Self {
        let mss = f64::from(mss_bytes);
        Window {
            mss,
            cwnd: initial * mss,
            ssthresh: f64::INFINITY,
            recover: 0,
            recovering: false,
            proportional: false,
            reduction: None,
            flight: 0.0,
            before: 0.0,
            newly: 0.0,
        }
    }

    /// The window, bytes.
    pub fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    /// The window, bytes, not rounded down.
    pub fn size(&self) -> f64 {
        self.cwnd
    }

    /// Continues in congestion avoidance with a window of `bytes`, after a controller's rate has expired.
    pub fn resume(&mut self, bytes: f64) {
        self.cwnd = bytes.max(self.mss);
        self.ssthresh = self.cwnd;
        (self.reduction, self.recovering) = (None, false);
    }

    /// Whether the window doubles per RTT.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh && !self.recovering && self.reduction.is_none()
    }

    /// Continues in congestion avoidance with the present window.
    pub fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Whether `segment` was sent after the last cut.
    pub fn past_cut(&self, segment: u32) -> bool {
        segment >= self.recover
    }

    /// Records the departure of a data packet.
    pub fn sent(&mut self, payload_bytes: u32) {
        self.flight += f64::from(payload_bytes);
        if let Some(reduction) = &mut self.reduction {
            reduction.out += f64::from(payload_bytes);
        }
    }

    /// Records an ACK. Call it before the other methods for the ACK.
    pub fn saw<D>(&mut self, ack: &Ack<D>) {
        self.before = self.flight;
        self.flight = ack.in_flight_bytes as f64;
        self.newly = ack.acked_bytes as f64;
        if self.reduction.is_some() {
            if self.past_cut(ack.segment) {
                self.reduction = None;
                self.cwnd = self.ssthresh;
            } else {
                self.reduce(self.flight, 0.0);
            }
        }
    }

    /// Grows the window for an ACK if the window limited the sender; in congestion avoidance by one segment per
    /// window.
    pub fn grow<D>(&mut self, ack: &Ack<D>) {
        let mss = self.mss;
        self.grow_by(ack, |cwnd, acked| mss * acked / cwnd);
    }

    /// Grows the window as [`Window::grow`] does, but by `avoidance` in congestion avoidance: a function of the window
    /// and the ACKed bytes that returns bytes.
    pub fn grow_by<D>(&mut self, ack: &Ack<D>, avoidance: impl FnOnce(f64, f64) -> f64) {
        if self.recovering && self.past_cut(ack.segment) {
            self.recovering = false;
        }
        let used = (ack.in_flight_bytes + ack.acked_bytes) as f64 + self.mss >= self.cwnd;
        if self.recovering || self.reduction.is_some() || !used {
            return;
        }
        let acked = ack.acked_bytes as f64;
        self.cwnd += if self.cwnd < self.ssthresh { acked } else { avoidance(self.cwnd, acked) };
    }

    /// Multiplies the window by `factor`. `next_segment` is the next segment to be sent: earlier ones are not
    /// [`Window::past_cut`].
    pub fn cut(&mut self, factor: f64, next_segment: u32) {
        self.ssthresh = (self.cwnd * factor).max(2.0 * self.mss);
        self.recover = next_segment;
        if self.proportional {
            // Bytes that arrived before the cut do not count (RFC 9937), but those in flight before this ACK do.
            let recover_fs = self.before.max(self.mss);
            self.reduction = Some(Reduction { recover_fs, delivered: 0.0, out: 0.0 });
            self.reduce(self.flight, 0.0);
        } else {
            self.cwnd = self.ssthresh;
        }
    }

    /// Sets the window after an ACK during a proportional reduction, with `pipe` bytes in flight. At least `least`
    /// further bytes may be sent.
    fn reduce(&mut self, pipe: f64, least: f64) {
        let Some(reduction) = &mut self.reduction else { return };
        reduction.delivered += self.newly;
        let Reduction { recover_fs, delivered, out } = *reduction;
        let more = if pipe > self.ssthresh {
            // Rounded up to whole segments.
            (delivered * self.ssthresh / recover_fs / self.mss).ceil() * self.mss - out
        } else {
            (self.ssthresh - pipe).min((delivered - out).max(self.newly) + self.mss)
        };
        self.cwnd = pipe + more.max(least);
        // Used once: a loss reported by the same ACK is not a second delivery.
        self.newly = 0.0;
    }

    /// Halves the window on a loss detected by later ACKs; restarts from one segment, plus the bytes in flight, after
    /// an RTO.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.on_loss_to(loss, 0.5);
    }

    /// Multiplies the window by `factor` on a loss detected by later ACKs; restarts as [`Window::on_loss`] does after
    /// an RTO.
    pub fn on_loss_to(&mut self, loss: &Loss, factor: f64) {
        self.flight = loss.in_flight_bytes as f64;
        if self.past_cut(loss.segment) {
            self.cut(factor, loss.next_segment);
            self.recovering = loss.kind != LossKind::Timeout;
            if self.recovering {
                // The first lost segment is retransmitted at once.
                self.reduce(self.flight, self.mss);
            }
        }
        if loss.kind == LossKind::Timeout {
            // Bytes not marked lost are still in flight and count against the window.
            self.cwnd = loss.in_flight_bytes as f64 + self.mss;
            self.recovering = false;
            self.reduction = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::SubflowId;

    fn ack(segment: u32, in_flight_bytes: u64) -> Ack<()> {
        Ack {
            subflow: SubflowId(0),
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
        let loss = |segment, kind| Loss { subflow: SubflowId(0), kind, segment, next_segment: 40, in_flight_bytes: 0 };
        w.on_loss(&loss(5, LossKind::Reordered));
        w.on_loss(&loss(7, LossKind::Reordered));
        assert_eq!(w.bytes(), 8000);
        w.on_loss(&loss(45, LossKind::Timeout));
        assert_eq!(w.bytes(), 1000);
    }

    fn proportional() -> Window {
        Window { proportional: true, ..Window::new(1000, 20.0) }
    }

    /// Sends segments 0 to 19 and loses the first `lost` of them. Returns the segment sent and the segments in flight
    /// at each ACK.
    fn first_round(lost: u32) -> (Vec<u32>, Vec<u32>) {
        let mut w = proportional();
        (0..20).for_each(|_| w.sent(1000));
        let (mut flight, mut next, mut sent, mut pipe) = (20u32, 20, Vec::new(), Vec::new());
        for segment in lost..20 {
            flight -= 1;
            let told = segment == lost + 2;
            // The third ACK reports the losses.
            flight -= if told { lost } else { 0 };
            let ack = Ack { next_segment: next, ..ack(segment, u64::from(flight) * 1000) };
            // In the RFC's example, duplicate ACKs do not let the window grow.
            w.saw(&ack);
            if told {
                let in_flight_bytes = u64::from(flight) * 1000;
                w.on_loss(&Loss {
                    subflow: SubflowId(0),
                    kind: LossKind::Reordered,
                    segment: 0,
                    next_segment: next,
                    in_flight_bytes,
                });
            }
            let mut now = 0;
            while u64::from(flight + 1) * 1000 <= w.bytes() {
                w.sent(1000);
                (flight, next, now) = (flight + 1, next + 1, now + 1);
            }
            sent.push(now);
            pipe.push(flight);
        }
        (sent, pipe)
    }

    #[test]
    fn proportional_reduction_of_one_loss_as_in_the_worked_example() {
        // RFC 6937, section 4, the first example: 20 segments in flight, the first is lost, ssthresh is 10. Every other
        // ACK lets one segment go. (The RFC's last columns of "sent" do not agree with its own "pipe"; this test
        // follows "pipe".)
        let (sent, pipe) = first_round(1);
        assert_eq!(sent, [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
        assert_eq!(pipe[3..], [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10]);
    }

    #[test]
    fn proportional_reduction_of_fifteen_losses_as_in_the_worked_example() {
        // RFC 6937, section 4, the second example, PRR-SSRB: each ACK lets two segments go.
        let (sent, pipe) = first_round(15);
        assert_eq!((sent, pipe), (vec![1, 1, 2, 2, 2], vec![20, 20, 6, 7, 8]));
    }

    #[test]
    fn a_reduction_ends_at_the_threshold() {
        let mut w = proportional();
        (0..20).for_each(|_| w.sent(1000));
        w.saw(&ack(0, 19_000));
        w.cut(0.5, 20);
        assert!(w.bytes() >= 19_000, "{}", w.bytes());
        w.saw(&ack(20, 9000));
        assert_eq!(w.bytes(), 10_000);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut w = Window::new(1000, 10.0);
        w.grow(&ack(0, 2000));
        assert_eq!(w.bytes(), 10_000);
    }
}
