//! TCP CUBIC: after a loss the window is a cubic function of time, flat at the window of the loss.
//!
//! RFC 9438, with its names: window in segments, time in seconds. It runs over sfqCoDel, as the scheme with which
//! Flowtune is compared (section 5.3.3), or over drop-tail queues. Slow start ends with a loss, or with the HyStart of
//! Linux: there is no HyStart++.

use crate::queue::{FairOrFifo, Fifo, SfqCodel, SfqPlan, sfq_codel};
use crate::tcp::{self, Window, Windows};
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, FlowInfo, Goal, Info, Io, Loss, LossKind, Named, OnHosts, Packet, Param, Params, Port, Recovery, Rules,
    Scheme, SchemeKind, Settles, SharesLinks, Source,
};
use subak_core::{IdVec, InputError, Ns, SubflowId};

/// TCP CUBIC senders, over drop-tail queues, or fair queues with CoDel.
#[derive(Debug, Clone)]
pub struct Cubic {
    law: Constants,
    windows: Windows,
    recovery: Recovery,
    /// Fair queues with CoDel; `None`: drop-tail queues.
    fair: Option<SfqPlan>,
}

/// Constants of the cubic function.
#[derive(Debug, Clone, Copy)]
struct Constants {
    /// C, segments per cubic second.
    c: f64,
    /// Window after a loss, as a fraction of the window before the loss.
    beta: f64,
    has_fast_convergence: bool,
    is_reno_friendly: bool,
    /// HyStart's unit of time, ns; `None`: slow start ends with a loss.
    hystart_ns: Option<Ns>,
}

/// Windows below this many segments stay in slow start.
const LEAST_SEGMENTS: f64 = 16.0;
/// Number of RTTs of a round before their minimum counts.
const RTT_SAMPLES: u32 = 8;
/// Bytes of four segments of the largest size that the kernel hands to a device.
const BURST_BYTES: f64 = 262_144.0;
/// Least growth of the window per RTT while the capacity is unknown.
const BLIND_GROWTH: f64 = 0.05;

/// The HyStart of Linux: slow start ends without a loss, when the ACKs of a round take half the RTT, or its RTTs are
/// longer than before.
#[derive(Debug, Clone, Copy, Default)]
struct HyStart {
    /// Whether slow start has ended.
    found: bool,
    /// Number of the first segment that was sent after the start of the round.
    end_segment: u32,
    round_start_ns: Ns,
    /// Time of the latest ACK of the round's train, ns.
    last_ack_ns: Ns,
    /// Minimum RTT of the round, ns, and the number of its RTTs.
    round_rtt_ns: Option<Ns>,
    samples: u32,
    /// Minimum RTT of the connection, ns.
    rtt_min_ns: Option<Ns>,
}

/// Congestion windows of a sender, one per subflow.
#[derive(Debug, Clone)]
pub struct CubicSource {
    law: Constants,
    mss: f64,
    subflows: IdVec<SubflowId, (Window, Curve, HyStart)>,
}

/// Cubic function of one window, in segments and seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Curve {
    w_max: f64,
    k: f64,
    /// Start of the present congestion avoidance, ns.
    epoch_ns: Option<Ns>,
    /// Window before the latest loss.
    cwnd_prior: f64,
    /// Window of Reno under the same losses.
    w_est: f64,
    /// Whether the latest loss event was an RTO: the cubic function then starts where slow start ends.
    is_after_timeout: bool,
    /// Whether congestion avoidance began without a known maximum.
    is_blind: bool,
}

impl Named for Cubic {
    const INFO: Info = Info {
        name: "cubic",
        about: "TCP CUBIC over fair queues under CoDel (sfqCoDel), or over drop-tail queues",
        paper: "RFC 9438; RFC 8290 and RFC 8289",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: &[
            Param::number("c", 0.4, AMOUNT, "coefficient C of the cubic, segments per cubic second"),
            Param::number("beta", 0.7, AMOUNT, "fraction of the window after a loss"),
            Param::flag(
                "fast_convergence",
                true,
                "a window reduced below its previous maximum lowers that maximum (fast convergence)",
            ),
            Param::flag(
                "reno_friendly",
                true,
                "the window is at least Reno's (RFC 9438, section 4.3); ns-3 3.37 has no such bound",
            ),
            Param::flag(
                "hystart",
                false,
                "slow start ends when RTTs grow, as in Linux (HyStart); the window then grows by 5% an RTT at least",
            ),
            Param::number(
                "hystart_unit",
                1e-3,
                ValueType::Time,
                "unit of HyStart's times: its RTTs grow by 4 to 16 of it, and ACKs of a train are 2 of it apart",
            ),
            Param::choice("queue", &["sfq-codel", "fifo"], "fair queues under CoDel, or one drop-tail queue"),
            sfq_codel::TARGET,
            sfq_codel::INTERVAL,
            sfq_codel::BINS,
            sfq_codel::QUANTUM,
            sfq_codel::OVERFLOW,
            sfq_codel::DEVICE,
            tcp::INITIAL_WINDOW,
            tcp::REDUCTION,
            tcp::RTO_MIN,
            tcp::TIMEOUT,
            tcp::PROBE,
        ],
        settles: Settles::NEVER,
        on_hosts: OnHosts::Kernel,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for Cubic {
    type Data = ();
    type Ctl = ();
    type Queue = FairOrFifo<SfqCodel>;
    type Source = CubicSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        let plan = SfqPlan::of(params)?;
        Ok(Cubic {
            law: Constants {
                c: params.within("c", 1e-6, 1e12)?,
                beta: params.within("beta", 0.1, 0.99)?,
                has_fast_convergence: params.flag("fast_convergence"),
                is_reno_friendly: params.flag("reno_friendly"),
                hystart_ns: params.flag("hystart").then(|| params.ns("hystart_unit")),
            },
            windows: Windows::of(params)?,
            recovery: tcp::recovery(params),
            fair: (params.word("queue") == "sfq-codel").then_some(plan),
        })
    }
    fn rules(&self) -> Rules {
        let per_hop = if self.fair.is_some() { 1.8 } else { 1.0 };
        Rules { recovery: self.recovery, per_hop, ..Rules::default() }
    }
    fn queue(&self, port: &Port) -> FairOrFifo<SfqCodel> {
        match self.fair {
            Some(plan) => FairOrFifo::Fair(plan.queue(port)),
            None => FairOrFifo::Fifo(Fifo::new(port.buffer_bytes)),
        }
    }
    fn source(&self, flow: &FlowInfo) -> CubicSource {
        let subflow = (self.windows.window(flow), Curve::default(), HyStart::default());
        CubicSource {
            law: self.law,
            mss: f64::from(flow.mss_bytes),
            subflows: IdVec::filled(subflow, flow.paths.len()),
        }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
}

impl Curve {
    /// Restarts the cubic function after a loss at a window of `cwnd` segments.
    fn on_cut(&mut self, law: Constants, cwnd: f64, is_timeout: bool) {
        let gives_way = law.has_fast_convergence && cwnd < self.w_max;
        *self = Curve {
            w_max: if gives_way { cwnd * (1.0 + law.beta) / 2.0 } else { cwnd },
            cwnd_prior: cwnd,
            is_after_timeout: is_timeout,
            ..Curve::default()
        };
    }

    /// Begins congestion avoidance with a window of `cwnd` segments.
    fn begin(&mut self, law: Constants, now_ns: Ns, cwnd: f64) {
        self.epoch_ns = Some(now_ns);
        self.w_est = cwnd;
        self.is_blind = self.w_max == 0.0 || self.is_after_timeout;
        if self.is_after_timeout || self.w_max < cwnd {
            self.w_max = cwnd;
        }
        self.k = libm::cbrt((self.w_max - cwnd) / law.c);
    }

    /// W_cubic(t): window in segments, `t` seconds after congestion avoidance began (RFC 9438, equation 1).
    fn at(&self, law: Constants, t: f64) -> f64 {
        let since = t - self.k;
        law.c * since * since * since + self.w_max
    }

    /// Growth of a congestion window of `cwnd` segments when `acked` segments are ACKed.
    fn grows(&mut self, law: Constants, now_ns: Ns, rtt_ns: Ns, cwnd: f64, acked: f64) -> f64 {
        if self.epoch_ns.is_none() {
            self.begin(law, now_ns, cwnd);
        }
        let t = (now_ns - self.epoch_ns.unwrap_or(now_ns)) as f64 * 1e-9;
        let alpha = if self.w_est >= self.cwnd_prior { 1.0 } else { 3.0 * (1.0 - law.beta) / (1.0 + law.beta) };
        self.w_est += alpha * acked / cwnd;
        if law.is_reno_friendly && self.at(law, t) < self.w_est {
            return (self.w_est - cwnd).max(0.0);
        }
        let target = self.at(law, t + rtt_ns as f64 * 1e-9).clamp(cwnd, 1.5 * cwnd);
        let least = if self.is_blind && law.hystart_ns.is_some() { BLIND_GROWTH } else { 0.0 };
        ((target - cwnd) / cwnd).max(least) * acked
    }
}

impl HyStart {
    /// Whether slow start ends with this ACK, before a window of `cwnd_bytes` has grown. `unit_ns`: the unit of its times.
    fn ends<D>(&mut self, unit_ns: Ns, now_ns: Ns, ack: &Ack<D>, cwnd_bytes: f64, mss: f64) -> bool {
        let rtt_min_ns = self.rtt_min_ns.map_or(ack.rtt_ns, |least_ns| least_ns.min(ack.rtt_ns));
        self.rtt_min_ns = Some(rtt_min_ns);
        if self.found {
            return false;
        }
        if ack.segment >= self.end_segment {
            let (end_segment, found) = (ack.next_segment, false);
            let (round_start_ns, last_ack_ns) = (now_ns, now_ns);
            *self = HyStart {
                found,
                end_segment,
                round_start_ns,
                last_ack_ns,
                rtt_min_ns: self.rtt_min_ns,
                ..HyStart::default()
            };
        }
        if cwnd_bytes < LEAST_SEGMENTS * mss {
            return false;
        }
        if now_ns - self.last_ack_ns <= 2 * unit_ns {
            self.last_ack_ns = now_ns;
            // The kernel sends two windows an RTT at most.
            let burst_ns = (BURST_BYTES * ack.rtt_ns as f64 / (2.0 * cwnd_bytes)) as Ns;
            self.found = now_ns - self.round_start_ns > (rtt_min_ns + burst_ns.min(unit_ns)) / 2;
        }
        let round_rtt_ns = self.round_rtt_ns.map_or(ack.rtt_ns, |least_ns| least_ns.min(ack.rtt_ns));
        self.round_rtt_ns = Some(round_rtt_ns);
        if self.samples < RTT_SAMPLES {
            self.samples += 1;
        } else {
            self.found |= round_rtt_ns > rtt_min_ns + (rtt_min_ns / 8).clamp(4 * unit_ns, 16 * unit_ns);
        }
        self.found
    }
}

impl Source<Cubic> for CubicSource {
    fn on_start(&mut self, io: &mut Io<Cubic>) {
        for (subflow, (window, ..)) in self.subflows.iter_enumerated() {
            io.pace(subflow, None, Some(window.bytes()));
        }
    }

    fn stamp(&mut self, _now_ns: Ns, packet: &mut Packet<Cubic>, _remaining_bytes: u64) {
        self.subflows[packet.subflow].0.sent(packet.payload_bytes());
    }

    fn on_ack(&mut self, io: &mut Io<Cubic>, ack: &Ack<()>) {
        let (law, mss, now_ns) = (self.law, self.mss, io.now_ns);
        let (window, curve, hystart) = &mut self.subflows[ack.subflow];
        window.saw(ack);
        if let Some(unit_ns) = law.hystart_ns
            && window.in_slow_start()
            && hystart.ends(unit_ns, now_ns, ack, window.size(), mss)
        {
            window.end_slow_start();
        }
        window.grow_by(ack, |cwnd, acked| mss * curve.grows(law, now_ns, ack.rtt_ns, cwnd / mss, acked / mss));
        io.pace(ack.subflow, None, Some(window.bytes()));
    }

    fn on_loss(&mut self, io: &mut Io<Cubic>, loss: &Loss) {
        let (window, curve, hystart) = &mut self.subflows[loss.subflow];
        let is_timeout = loss.kind == LossKind::Timeout;
        if is_timeout {
            *hystart = HyStart { end_segment: loss.next_segment, ..HyStart::default() };
        }
        if window.past_cut(loss.segment) {
            curve.on_cut(self.law, window.size() / self.mss, is_timeout);
        } else if is_timeout {
            (curve.epoch_ns, curve.is_after_timeout) = (None, true);
        }
        window.on_loss_to(loss, self.law.beta);
        io.pace(loss.subflow, None, Some(window.bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Constants =
        Constants { c: 0.4, beta: 0.7, has_fast_convergence: true, is_reno_friendly: true, hystart_ns: None };
    const MS: Ns = 1_000_000;

    fn ack(segment: u32, next_segment: u32, rtt_ns: Ns) -> Ack<()> {
        Ack {
            subflow: SubflowId(0),
            acked_bytes: 1000,
            rtt_ns,
            ecn: false,
            in_flight_bytes: 0,
            remaining_bytes: u64::MAX,
            segment,
            next_segment,
            data: (),
        }
    }

    /// Number of ACKs of a round, spaced by `gap_ns`, after which slow start ends. The RTT was 40 ms, and is `rtt_ns`.
    fn acks_of_a_round(gap_ns: Ns, rtt_ns: Ns, segments: u32) -> Option<u32> {
        let mut hystart = HyStart::default();
        let size = f64::from(segments) * 1000.0;
        assert!(!hystart.ends(MS, 0, &ack(0, 10, 40 * MS), size, 1000.0));
        (0..segments).find(|k| {
            let now_ns = 100 * MS + Ns::from(*k) * gap_ns;
            hystart.ends(MS, now_ns, &ack(10 + k, 10 + segments, rtt_ns), size, 1000.0)
        })
    }

    #[test]
    fn slow_start_ends_when_acks_come_for_half_the_rtt() {
        // 20.5 ms: half of the RTT and of 1 ms; the first ACK starts the round.
        assert_eq!(acks_of_a_round(MS, 40 * MS, 30), Some(21));
        // ACKs further apart are no train, and small windows are left alone.
        assert_eq!(acks_of_a_round(MS * 21 / 10, 40 * MS, 30), None);
        assert_eq!(acks_of_a_round(2 * MS, 40 * MS, 15), None);
    }

    #[test]
    fn slow_start_ends_when_all_rtts_of_a_round_are_longer() {
        // An eighth of the RTT is 5 ms: the ninth RTT above 45 ms ends slow start.
        assert_eq!(acks_of_a_round(MS / 100, 45 * MS, 30), None);
        assert_eq!(acks_of_a_round(MS / 100, 45 * MS + 1, 30), Some(8));
    }

    #[test]
    fn after_hystart_the_window_grows_by_a_twentieth() {
        let law = Constants { hystart_ns: Some(MS), is_reno_friendly: false, ..LAW };
        let mut curve = Curve::default();
        assert_eq!(curve.grows(law, 0, MS, 100.0, 100.0), 5.0);
        // After a loss the cubic function alone counts.
        curve.on_cut(law, 100.0, false);
        assert!(curve.grows(law, 10, MS, 70.0, 70.0) < 0.1);
    }

    #[test]
    fn the_cubic_is_back_at_its_old_size_after_k_seconds() {
        // RFC 9438, equation 2, with W_max = 100 and beta = 0.7: K is the cubic root of 75, 4.217 s.
        let mut curve = Curve::default();
        curve.on_cut(LAW, 100.0, false);
        curve.begin(LAW, 0, 70.0);
        assert!((curve.k - 4.2172).abs() < 1e-4, "{}", curve.k);
        assert!((curve.at(LAW, 0.0) - 70.0).abs() < 1e-9 && (curve.at(LAW, curve.k) - 100.0).abs() < 1e-9);
        // One second after K, the window is C segments larger.
        assert!((curve.at(LAW, curve.k + 1.0) - 100.4).abs() < 1e-9);
    }

    #[test]
    fn a_window_that_did_not_come_back_gives_way() {
        let mut curve = Curve::default();
        curve.on_cut(LAW, 100.0, false);
        curve.on_cut(LAW, 90.0, false);
        assert!((curve.w_max - 76.5).abs() < 1e-9);
        curve.on_cut(LAW, 90.0, false);
        assert_eq!(curve.w_max, 90.0);
    }

    #[test]
    fn after_a_timeout_the_cubic_begins_where_slow_start_ends() {
        let mut curve = Curve::default();
        curve.on_cut(LAW, 100.0, true);
        curve.begin(LAW, 0, 70.0);
        assert_eq!((curve.k, curve.w_max), (0.0, 70.0));
    }

    /// Mean window in segments over the second half of `cycles` losses, one per `1/p` packets, at an RTT of `rtt_s`.
    fn average_window(p: f64, rtt_s: f64, cycles: u32) -> f64 {
        // Equation 5 of RFC 9438 models CUBIC without fast convergence.
        let law = Constants { has_fast_convergence: false, ..LAW };
        let (mut curve, mut cwnd, mut now, mut sums) = (Curve::default(), 100.0f64, 0.0f64, (0.0, 0.0));
        let rtt_ns = (rtt_s * 1e9) as Ns;
        for cycle in 0..cycles {
            let mut sent = 0.0;
            while sent < 1.0 / p {
                let acked = cwnd / 4.0;
                now += rtt_s * acked / cwnd;
                let grows = curve.grows(law, (now * 1e9) as Ns, rtt_ns, cwnd, acked);
                if cycle * 2 >= cycles {
                    sums = (sums.0 + cwnd * acked / cwnd, sums.1 + acked / cwnd);
                }
                cwnd += grows;
                sent += acked;
            }
            curve.on_cut(law, cwnd, false);
            cwnd *= law.beta;
        }
        sums.0 / sums.1
    }

    #[test]
    fn average_windows_are_those_of_the_table() {
        // RFC 9438, equation 5: 1.054 RTT^0.75 / p^0.75 with C = 0.4. Its table for an RTT of 0.1 s has 187 at a loss
        // rate of 1e-4, 1054 at 1e-5, 5926 at 1e-6.
        for (p, published) in [(1e-4, 187.0), (1e-5, 1054.0), (1e-6, 5926.0)] {
            // The mean window converges slowly to the equation's, because the cubic is flat there.
            let window = average_window(p, 0.1, 3000);
            assert!((window / published - 1.0).abs() < 0.03, "p {p}: {window}, published {published}");
        }
    }

    #[test]
    fn with_short_round_trips_the_window_is_that_of_reno() {
        // RFC 9438, section 4.3: sqrt(alpha (1 + beta) / (2 (1 - beta)) / p), which equals Reno's sqrt(1.5 / p).
        let window = average_window(1e-4, 1e-4, 400);
        let reno = (1.5f64 / 1e-4).sqrt();
        assert!((window / reno - 1.0).abs() < 0.05, "{window}, {reno}");
        // Without Reno's window as a lower bound, the cubic hardly grows in so short a time.
        let law = Constants { is_reno_friendly: false, ..LAW };
        let mut curve = Curve::default();
        curve.on_cut(law, 100.0, false);
        assert!(curve.grows(law, 0, 100_000, 70.0, 70.0) < 0.01);
        assert!(curve.grows(law, 10_000_000, 100_000, 70.0, 70.0) < 0.3);
    }
}
