//! TIMELY: senders set their rates by the RTT and its gradient; the patched version uses a target RTT.
//!
//! Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, algorithm 1. Once per
//! segment, and at most once in `min_rtt`, the sender updates its rate r by the RTT. Below `t_low` it adds a step
//! delta. Above `t_high` it sets r (1 - beta (1 - t_high / rtt)). In between, the RTT's gradient decides, a moving
//! average over `min_rtt`. If it is not positive, the sender adds delta, or 5 delta from the fifth consecutive time
//! on; otherwise it sets r (1 - beta gradient).
//!
//! With this rule every division of the link is a fixed point. The patched version (Zhu et al., ECN or Delay, CoNEXT
//! 2016, section 5) replaces it by
//!
//! ```text
//! r = delta (1 - w) + r (1 - beta w (rtt - t_low) / t_low),   w = 0, 2 gradient + 1/2, 1 between gradients of -1/4 and 1/4
//! ```
//!
//! which has one fixed point: equal rates, and an RTT of t_low (1 + N delta / (beta C)).
//!
//! HPCC's released simulator updates once per RTT, counts updates below `t_low` towards larger steps, and needs one
//! update more before the first of these: the preset `hpcc-simulator`.
//!
//! As in that simulator, the RTT is measured from the packet's departure from the NIC. There is no window, and a flow
//! starts at line rate.

use crate::lossless::{self, Rdma};
use crate::queue::Priority;
use crate::telemetry::Left;
use subak_core::keys::{AMOUNT, ParamValue, ValueType};
use subak_core::scheme::{
    Ack, Around, Doubt, FlowInfo, Goal, Headers, Hop, Info, Io, Named, Packet, PacketKind, Param, Params, PathInfo,
    Port, Preset, Rules, Scheme, SchemeKind, Settles, SharesLinks, Source,
};
use subak_core::{IdVec, InputError, LinkId, Ns, SubflowId};

/// Values of run.py in HPCC's released simulator; rates are fractions of its line rate, 100 Gb/s.
const PRESETS: &[Preset] = &[(
    "hpcc-simulator",
    &[
        ("look", ParamValue::Word("round-trip")),
        ("look_interval", ParamValue::Number(0.0)),
        ("hai_below", ParamValue::Flag(true)),
        ("hai_after", ParamValue::Number(6.0)),
        ("min_rate", ParamValue::Number(0.01)),
        ("stamp", ParamValue::Number(8.0)),
        ("ack_priority", ParamValue::Word("first-at-nic")),
        ("pfc_reserve", ParamValue::Number(4096.0)),
        ("clock", ParamValue::Word("whole-ns")),
        ("new_rate", ParamValue::Word("next-packet")),
        ("nic_timer", ParamValue::Word("one")),
    ],
)];

/// Rate control by the RTT and its gradient, with the parameters of TIMELY (algorithm 1).
#[derive(Debug, Clone, Copy)]
pub struct Timely {
    patched: bool,
    alpha: f64,
    beta: f64,
    given: Times,
    look_ns: Ns,
    /// Whether the rate is updated once per RTT.
    by_rtt: bool,
    segment_bytes: u64,
    /// Whether updates below `t_low` count towards larger steps.
    hai_below: bool,
    stamp_bytes: u32,
    delta: f64,
    hai_after: u32,
    hai: f64,
    min_rate: f64,
    rdma: Rdma,
}

/// RTT thresholds `t_low` and `t_high`, and the unit of the RTT's gradient, ns.
#[derive(Debug, Clone, Copy)]
struct Times {
    low_ns: f64,
    high_ns: f64,
    unit_ns: f64,
}

impl Times {
    /// Thresholds on `path`. By default, they are multiples of its base RTT, and at least the paper's values; at the
    /// paper's base RTT of 20 us, both are equal.
    fn on(self, path: &PathInfo) -> Self {
        Times {
            low_ns: path.time_ns(self.low_ns, 2.5, 50e3),
            high_ns: path.time_ns(self.high_ns, 25.0, 500e3),
            unit_ns: path.time_ns(self.unit_ns, 1.0, 20e3),
        }
    }
}

/// Sender of a flow.
#[derive(Debug)]
pub struct TimelySource {
    scheme: Timely,
    subflows: IdVec<SubflowId, TimelySubflow>,
}

#[derive(Debug, Clone, Copy)]
struct TimelySubflow {
    line_bps: f64,
    times: Times,
    rate_bps: f64,
    /// RTT of the previous update, ns.
    before_ns: Option<f64>,
    /// Moving average of the differences of RTTs, ns.
    difference_ns: f64,
    /// Number of consecutive updates whose gradient was not positive.
    calm: u32,
    bytes: u64,
    looked_ns: Ns,
    /// Number of the first segment whose ACK belongs to the next RTT.
    look_from: u32,
}

/// Hop that records a packet's departure from the first link.
#[derive(Debug, Clone, Copy)]
pub struct TimelyClock;

impl Named for Timely {
    const INFO: Info = Info {
        name: "timely",
        about: "TIMELY: rates by the gradient of the RTT; patched, with one fixed point",
        paper: "Mittal et al., SIGCOMM 2015; Zhu et al., CoNEXT 2016",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: lossless::params![
            Param::choice("preset", &["paper", "hpcc-simulator"], "source of the other parameters' defaults")
                .presetting(PRESETS),
            Param::flag("patched", false, "the version of Zhu et al., 2016: one fixed point, and fair"),
            Param::number("alpha", 0.875, AMOUNT, "weight of the newest difference of RTTs"),
            Param::number("beta", 0.0, AMOUNT, "gain of cuts; 0: 0.8, and 0.008 if patched"),
            Param::number(
                "t_low",
                0.0,
                ValueType::Time,
                "RTT below which the rate grows; 0: 2.5 base RTTs of the path, and at least 50 us"
            ),
            Param::number(
                "t_high",
                0.0,
                ValueType::Time,
                "above it the rate is cut; 0: 25 base RTTs of the path, and at least 500 us"
            ),
            Param::number(
                "min_rtt",
                0.0,
                ValueType::Time,
                "unit of the gradient; 0: the path's base RTT, and at least 20 us"
            ),
            Param::choice("look", &["segment", "round-trip"], "a rate update after a segment's bytes, or once an RTT"),
            Param::number("look_interval", 20e-6, ValueType::Time, "minimum time between two rate updates"),
            Param::number("segment", 16_000.0, ValueType::Bytes, "ACKed bytes between two rate updates")
                .only("look", &["segment"]),
            Param::number("delta", 0.001, AMOUNT, "additive step, as a share of the line rate"),
            Param::number("hai_after", 5.0, AMOUNT, "updates without a rising RTT before larger steps"),
            Param::flag("hai_below", false, "whether updates below t_low count among these, and may take larger steps"),
            Param::number(
                "stamp",
                0.0,
                ValueType::Bytes,
                "bytes of the timestamp in each data packet; 0 where the NIC stores it"
            ),
            Param::number("hai", 5.0, AMOUNT, "a larger step, in additive steps"),
            Param::number("min_rate", 0.001, AMOUNT, "minimum rate, as a fraction of the line rate"),
        ],
        settles: Settles::NEVER,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for Timely {
    type Data = Left;
    type Ctl = ();
    type Queue = Priority;
    type Source = TimelySource;
    type Hop = TimelyClock;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        let patched = params.flag("patched");
        let beta = match params.within("beta", 0.0, 1.0)? {
            0.0 if patched => 0.008,
            0.0 => 0.8,
            given => given,
        };
        Ok(Timely {
            patched,
            alpha: params.within("alpha", 1e-6, 1.0)?,
            beta,
            given: Times {
                low_ns: params.within("t_low", 0.0, 10.0)? * 1e9,
                high_ns: params.within("t_high", 0.0, 10.0)? * 1e9,
                unit_ns: params.within("min_rtt", 0.0, 10.0)? * 1e9,
            },
            look_ns: params.ns("look_interval"),
            by_rtt: params.word("look") == "round-trip",
            hai_below: params.flag("hai_below"),
            stamp_bytes: params.within("stamp", 0.0, 1000.0)? as u32,
            segment_bytes: params.number("segment") as u64,
            delta: params.within("delta", 0.0, 1.0)?,
            hai_after: params.whole("hai_after", 1.0, 1e6)? as u32,
            hai: params.within("hai", 1.0, 1e6)?,
            min_rate: params.within("min_rate", 1e-9, 1.0)?,
            rdma: Rdma::new(params)?,
        })
    }
    fn rules(&self) -> Rules {
        Rules { headers: Headers { data_bytes: self.stamp_bytes, ack_bytes: 0 }, ..self.rdma.rules() }
    }
    fn queue(&self, port: &Port) -> Priority {
        self.rdma.queue(port)
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let longest = around.paths.filter(|_| self.rdma.pfc.is_none());
        let of_delay = longest.and_then(|(_, path)| Doubt::of_delay(around, "t_low", self.given.on(&path).low_ns));
        of_delay.into_iter().chain(self.doubt_of_gain(around)).collect()
    }
    fn source(&self, flow: &FlowInfo) -> TimelySource {
        let subflows = flow.paths.iter().map(|path| TimelySubflow::new(self, path)).collect();
        TimelySource { scheme: *self, subflows }
    }
    fn hop(&self, _port: &Port) -> TimelyClock {
        TimelyClock
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

/// Number of base RTTs in which a rate at the minimum may take to reach the line rate without a warning. In TIMELY's setup,
/// 10 Gb/s and 20 us, it takes 4400.
const MOST_RTTS: f64 = 5000.0;

impl Timely {
    /// Warns if rates that were cut to the minimum take long to recover. A rate r grows by delta for each segment of its
    /// bytes, hence by a factor e in the time in which delta sends a segment.
    fn doubt_of_gain(&self, around: &Around) -> Option<Doubt> {
        let (least, (path, _)) = (around.flows.least?, around.paths?);
        let folds_ns = self.segment_bytes as f64 * 8e9 / (self.delta * path.line_rate_bps);
        let recovery_ns = folds_ns * libm::log(1.0 / self.min_rate).max(0.0);
        let text = format!(
            "after an overload a rate takes up to {:.0} ms from min_rate to the line rate, {:.0} base RTTs, and rates stay unequal \
             for longer: a step delta of {:.0} Mb/s is for RTTs of 20 us and more; raise params.delta or min_rate, or set patched",
            recovery_ns / 1e6,
            recovery_ns / least.rtt_ns,
            self.delta * path.line_rate_bps / 1e6
        );
        let is_slow = !self.by_rtt && recovery_ns > MOST_RTTS * least.rtt_ns;
        is_slow.then_some(Doubt { kind: "gain", text })
    }
}

impl Hop<Timely> for TimelyClock {
    #[inline]
    fn on_dequeue(&mut self, io: &mut Io<Timely>, packet: &mut Packet<Timely>, _port: &Port) {
        if packet.kind == PacketKind::Data && packet.hop == 0 {
            packet.data = Left(io.now_ns);
        }
    }
}

impl TimelySubflow {
    fn new(scheme: &Timely, path: &PathInfo) -> Self {
        TimelySubflow {
            line_bps: path.line_rate_bps,
            times: scheme.given.on(path),
            rate_bps: path.line_rate_bps,
            before_ns: None,
            difference_ns: 0.0,
            calm: 0,
            bytes: 0,
            looked_ns: 0,
            look_from: 0,
        }
    }

    /// Updates the rate for a measured RTT.
    fn look(&mut self, scheme: &Timely, rtt_ns: f64) {
        let Some(before_ns) = self.before_ns.replace(rtt_ns) else { return };
        self.difference_ns += scheme.alpha * (rtt_ns - before_ns - self.difference_ns);
        let Times { low_ns, high_ns, unit_ns } = self.times;
        let gradient = self.difference_ns / unit_ns;
        let (rate, step) = (self.rate_bps, scheme.delta * self.line_bps);
        let rate = if rtt_ns < low_ns {
            self.calm = if scheme.hai_below { self.calm + 1 } else { 0 };
            rate + step * if self.calm >= scheme.hai_after { scheme.hai } else { 1.0 }
        } else if rtt_ns > high_ns {
            self.calm = 0;
            rate * (1.0 - scheme.beta * (1.0 - high_ns / rtt_ns))
        } else if scheme.patched {
            let w = (2.0 * gradient + 0.5).clamp(0.0, 1.0);
            let error = (rtt_ns - low_ns) / low_ns;
            rate * (1.0 - scheme.beta * w * error) + step * (1.0 - w)
        } else if gradient <= 0.0 {
            self.calm += 1;
            rate + step * if self.calm >= scheme.hai_after { scheme.hai } else { 1.0 }
        } else {
            self.calm = 0;
            rate * (1.0 - scheme.beta * gradient)
        };
        self.rate_bps = rate.clamp(scheme.min_rate * self.line_bps, self.line_bps);
    }
}

impl Source<Timely> for TimelySource {
    fn on_start(&mut self, io: &mut Io<Timely>) {
        for (k, s) in self.subflows.iter_enumerated_mut() {
            s.looked_ns = io.now_ns;
            io.pace(k, Some(s.rate_bps), None);
        }
    }
    fn on_ack(&mut self, io: &mut Io<Timely>, ack: &Ack<Left>) {
        let s = &mut self.subflows[ack.subflow];
        s.bytes += ack.acked_bytes;
        let is_time = match self.scheme.by_rtt {
            true => ack.segment >= s.look_from,
            false => s.bytes >= self.scheme.segment_bytes,
        };
        if !is_time || io.now_ns < s.looked_ns + self.scheme.look_ns {
            return;
        }
        (s.bytes, s.looked_ns, s.look_from) = (0, io.now_ns, ack.next_segment);
        s.look(&self.scheme, (io.now_ns - ack.data.0) as f64);
        io.pace(ack.subflow, Some(s.rate_bps), None);
    }
    fn on_reroute(&mut self, io: &mut Io<Timely>, subflow: SubflowId, path: &PathInfo, _links: &[LinkId]) {
        let s = &mut self.subflows[subflow];
        *s = TimelySubflow { looked_ns: io.now_ns, look_from: s.look_from, ..TimelySubflow::new(&self.scheme, path) };
        io.pace(subflow, Some(s.rate_bps), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(given: serde_json::Value) -> (Timely, TimelySubflow) {
        let params = Params::resolve(&Timely::INFO, given.as_object().unwrap()).unwrap();
        let scheme = Timely::new(&params).unwrap();
        let path = PathInfo { hops: 2, line_rate_bps: 10e9, min_capacity_bps: 10e9, base_rtt_ns: 10_000 };
        (scheme, TimelySubflow { rate_bps: 5e9, ..TimelySubflow::new(&scheme, &path) })
    }

    /// Rate, Gb/s, after each of these RTTs, us.
    fn rates(given: serde_json::Value, rtts_us: &[f64]) -> Vec<f64> {
        let (scheme, mut s) = with(given);
        rtts_us.iter().map(|us| (s.look(&scheme, us * 1e3), s.rate_bps / 1e9).1).collect()
    }

    #[test]
    fn the_rate_follows_the_round_trip() {
        let near = |got: Vec<f64>, want: &[f64]| {
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-9), "{got:?}, expected {want:?}");
        };
        // Below t_low a step of 10 Mb/s whatever the gradient; above t_high a cut of 0.8 (1 - 500 / 1000).
        near(rates(serde_json::json!({}), &[20.0, 40.0, 49.0]), &[5.0, 5.01, 5.02]);
        near(rates(serde_json::json!({}), &[600.0, 1000.0]), &[5.0, 3.0]);
        // The difference is 0.875 of 4 us, over 20 us: 0.175.
        near(rates(serde_json::json!({}), &[100.0, 104.0]), &[5.0, 5.0 * (1.0 - 0.8 * 0.175)]);
        // From the fifth update without a rising RTT on, the step is five times as large.
        near(rates(serde_json::json!({}), &[100.0; 7]), &[5.0, 5.01, 5.02, 5.03, 5.04, 5.09, 5.14]);
    }

    #[test]
    fn in_the_simulator_looks_below_t_low_count_and_five_small_steps_come_first() {
        let near =
            |got: Vec<f64>, want: &[f64]| assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-9), "{got:?}");
        let simulator = serde_json::json!({"preset": "hpcc-simulator"});
        near(rates(simulator, &[20.0; 8]), &[5.0, 5.01, 5.02, 5.03, 5.04, 5.05, 5.10, 5.15]);
        near(rates(serde_json::json!({}), &[20.0; 8]), &[5.0, 5.01, 5.02, 5.03, 5.04, 5.05, 5.06, 5.07]);
    }

    #[test]
    fn at_its_fixed_point_the_patched_rate_stays() {
        // Two flows at 5 Gb/s, delta 10 Mb/s, beta 0.008: the RTT is 50 us (1 + 2 * 10 / (0.008 * 10000)) = 62.5 us.
        let stays = rates(serde_json::json!({"patched": true}), &[62.5; 50]);
        assert!(stays.iter().all(|r| (r - 5.0).abs() < 1e-9), "{stays:?}");
        // At this RTT, a flow with more than its share reduces its rate, and one with less raises it.
        for (rate_bps, sign) in [(6e9, -1.0), (4e9, 1.0)] {
            let (scheme, mut s) = with(serde_json::json!({"patched": true}));
            s.rate_bps = rate_bps;
            s.look(&scheme, 62_500.0);
            s.look(&scheme, 62_500.0);
            assert!((s.rate_bps - rate_bps) * sign > 0.0);
        }
    }
}
