//! HPCC: switches add telemetry (INT) to packets, and senders keep the bytes in flight at a fraction eta of the path's BDP.
//!
//! Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019, section 3 and algorithm 1. Each switch writes
//! its queue length, bytes sent, time and rate into every data packet. The receiver returns them. From two successive
//! ACKs the sender computes for each link the bytes in flight relative to the BDP (equation 2):
//!
//! ```text
//! u = min(queue now, queue before) / (B T) + rate / B,   U = the largest u, averaged over T
//! ```
//!
//! The window follows from a reference window W_c that changes once per RTT, so that a load is reacted to once. W =
//! W_c eta / U + W_AI if U is at least eta or `max_stage` consecutive additive steps were made, otherwise W = W_c +
//! W_AI. The pacing rate is W / T. T is one time for all flows, the largest base RTT.
//!
//! The sender's own link adds no telemetry: its flows are served round robin there. Packets also carry an identity of
//! their path, as in the paper (section 4.1), so that telemetry of a path that the flow has left is ignored.

use crate::headers;
use crate::lossless::{self, Rdma};
use crate::queue::Priority;
use crate::telemetry::{self, IntHeader, Stamper, identity};
use subak_core::keys::{AMOUNT, ParamValue, ValueType};
use subak_core::scheme::{
    Ack, Around, Doubt, FlowInfo, Goal, Headers, Info, Io, Named, Param, Params, PathInfo, Port, Preset, Rules, Scheme,
    SchemeKind, Settles, SharesLinks, Source,
};
use subak_core::{IdVec, InputError, LinkId, Ns, SubflowId};

/// Number of flows whose additive steps W_AI together fill the gap from eta to 1. At HPCC's 100 Gb/s and 13 us, W_AI is
/// then 80 bytes.
const FLOWS: f64 = 100.0;
/// Ratio of T to the smallest base RTT above which a warning says that one T does not suit all flows.
const MOST_TIMES: f64 = 10.0;

/// Packets of a flow in T below which a warning says that rates may stay unequal.
const LEAST_PACKETS: f64 = 5.0;

/// Values of run.py in HPCC's released simulator; rates are fractions of its line rate, 100 Gb/s.
const PRESETS: &[Preset] = &[(
    "hpcc-simulator",
    &[
        ("max_stage", ParamValue::Number(0.0)),
        ("ai", ParamValue::Number(0.0004)),
        ("min_rate", ParamValue::Number(0.01)),
        ("ack_priority", ParamValue::Word("first-at-nic")),
        ("pfc_reserve", ParamValue::Number(4096.0)),
        ("clock", ParamValue::Word("whole-ns")),
        ("nic_timer", ParamValue::Word("one")),
        ("in_flight", ParamValue::Word("payload")),
    ],
)];

/// Window control by telemetry (INT), with the parameters of HPCC.
#[derive(Debug, Clone, Copy)]
pub struct Hpcc {
    headers: Headers,
    ai: f64,
    min_rate: f64,
    eta: f64,
    max_stage: u32,
    w_ai_bytes: f64,
    /// Whether only payload counts against the window.
    payload_counts: bool,
    t_ns: Ns,
    rdma: Rdma,
}

/// Sender of a flow.
#[derive(Debug)]
pub struct HpccSource {
    scheme: Hpcc,
    /// Ratio of payload to bytes on the wire.
    payload_share: f64,
    mss_bytes: u32,
    subflows: IdVec<SubflowId, HpccSubflow>,
}

#[derive(Debug, Clone)]
struct HpccSubflow {
    t_ns: f64,
    /// Largest window, line rate times T: like all windows here, in bytes on the wire.
    most: f64,
    w_ai: f64,
    /// Reference window W_c, bytes.
    reference: f64,
    stage: u32,
    /// U: largest ratio of bytes in flight to BDP of the path's links, averaged over T.
    in_flight: f64,
    /// Number of the first segment whose ACK updates the reference window again.
    update_from: u32,
    /// Hash of the subflow's path.
    path: u32,
    before: IntHeader,
}

impl Named for Hpcc {
    const INFO: Info = Info {
        name: "hpcc",
        about: "HPCC: switches stamp their load into packets, windows keep each link at a share of its capacity",
        paper: "Li et al., SIGCOMM 2019",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: lossless::params![
            Param::choice("preset", &["paper", "hpcc-simulator"], "source of the other parameters' defaults")
                .presetting(PRESETS),
            telemetry::HEADER,
            telemetry::ACK_HEADER,
            Param::number("ai", 0.0, AMOUNT, "additive step in place of w_ai, as a fraction of the initial window")
                .unless("w_ai"),
            Param::number("min_rate", 0.0, AMOUNT, "minimum window, as a fraction of the initial window"),
            Param::number("eta", 0.95, AMOUNT, "target utilization of a link"),
            Param::number("max_stage", 5.0, AMOUNT, "additive steps in a row before the next multiplicative one",),
            Param::number(
                "w_ai",
                0.0,
                ValueType::Bytes,
                "additive step; 0: (1 - eta) / 100 of the initial window, the paper's 80 bytes at 100 Gb/s and 13 us",
            ),
            Param::choice("in_flight", &["wire", "payload"], "bytes in flight that count against the window"),
            Param::number("t", 0.0, ValueType::Time, "base RTT T of all flows; 0: the network's largest"),
        ],
        settles: Settles::NEVER,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for Hpcc {
    type Data = IntHeader;
    type Ctl = ();
    type Queue = Priority;
    type Source = HpccSource;
    type Hop = Stamper;
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Hpcc {
            headers: headers::read(params)?,
            ai: params.within("ai", 0.0, 1.0)?,
            min_rate: params.within("min_rate", 0.0, 1.0)?,
            eta: params.within("eta", 0.01, 1.0)?,
            max_stage: params.whole("max_stage", 0.0, 1e6)? as u32,
            w_ai_bytes: params.number("w_ai"),
            payload_counts: params.word("in_flight") == "payload",
            t_ns: params.ns("t"),
            rdma: Rdma::new(params)?,
        })
    }
    fn rules(&self) -> Rules {
        Rules { one_path: true, headers: self.headers, per_hop: 1.4, ..self.rdma.rules() }
    }
    fn queue(&self, port: &Port) -> Priority {
        self.rdma.queue(port)
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let Some((shortest, longest)) = around.paths.map(|(a, b)| (a.base_rtt_ns as f64, b.base_rtt_ns as f64)) else {
            return Vec::new();
        };
        let t_ns = if self.t_ns > 0 { self.t_ns as f64 } else { longest };
        let text = format!(
            "one T of {:.1} us counts for all flows, and base RTTs go from {:.1} to {:.1} us: windows are of T, so that flows with \
             short ones fill queues for up to {:.1} us; give params.t, or compare flows of like distances",
            t_ns / 1e3,
            shortest / 1e3,
            longest / 1e3,
            (t_ns - shortest) / 1e3
        );
        let unlike = (t_ns > MOST_TIMES * shortest).then_some(Doubt { kind: "base-rtt", text });
        let few = "rates may stay unequal for the whole run";
        unlike.into_iter().chain(Doubt::of_window(around, 0.0, LEAST_PACKETS, few)).collect()
    }
    fn source(&self, flow: &FlowInfo) -> HpccSource {
        let t_ns = if self.t_ns > 0 { self.t_ns } else { flow.rtt_ns };
        HpccSource {
            scheme: *self,
            payload_share: if self.payload_counts {
                1.0
            } else {
                f64::from(flow.mss_bytes) / f64::from(flow.mtu_bytes)
            },
            mss_bytes: flow.mss_bytes,
            subflows: flow.paths.iter().zip(&flow.links).map(|(path, links)| self.subflow(t_ns, path, links)).collect(),
        }
    }
    fn hop(&self, port: &Port) -> Stamper {
        Stamper::new(port)
    }
    fn sink(&self, _flow: &FlowInfo) {}
}

impl Hpcc {
    fn subflow(&self, t_ns: Ns, path: &PathInfo, links: &[LinkId]) -> HpccSubflow {
        // A window of T would not fill a path whose base RTT exceeds T.
        let t_ns = if self.t_ns > 0 { t_ns } else { t_ns.max(path.base_rtt_ns) } as f64;
        let most = path.line_rate_bps / 8e9 * t_ns;
        let w_ai = match self.w_ai_bytes > 0.0 {
            true => self.w_ai_bytes,
            false if self.ai > 0.0 => most * self.ai,
            false => most * (1.0 - self.eta) / FLOWS,
        };
        HpccSubflow {
            t_ns,
            most,
            w_ai,
            reference: most,
            stage: 0,
            in_flight: 1.0,
            update_from: 0,
            path: identity(links),
            before: IntHeader::default(),
        }
    }
}

impl HpccSubflow {
    /// Computes U from the telemetry of this ACK and of the previous one (HPCC, algorithm 1, MeasureInflight).
    fn measure(&mut self, now: &IntHeader) {
        let (mut u, mut tau) = (0.0, self.t_ns);
        for (now, before) in now.links.iter().zip(&self.before.links).take(usize::from(now.hops)) {
            let Some((passed_ns, sent)) = now.since(before) else { continue };
            let rate = f64::from(now.bytes_per_ns);
            let queue = f64::from(now.queued_bytes.min(before.queued_bytes));
            let of_link = (queue / self.t_ns + sent / passed_ns) / rate;
            if of_link > u {
                (u, tau) = (of_link, passed_ns);
            }
        }
        let weight = tau.min(self.t_ns) / self.t_ns;
        self.in_flight += weight * (u - self.in_flight);
    }

    /// The window in bytes (HPCC, algorithm 1, ComputeWind). With `updates`, also sets the reference window to it.
    fn window(&mut self, scheme: &Hpcc, updates: bool) -> f64 {
        let overloaded = self.in_flight >= scheme.eta || self.stage >= scheme.max_stage;
        let window = match overloaded {
            true => self.reference * scheme.eta / self.in_flight.max(1e-9) + self.w_ai,
            false => self.reference + self.w_ai,
        };
        let window = window.clamp(scheme.min_rate * self.most, self.most);
        if updates {
            self.stage = if overloaded { 0 } else { self.stage + 1 };
            self.reference = window;
        }
        window
    }

    /// The congestion window after an ACK, bytes. `None` if the ACK is of another path, or if there is no earlier
    /// telemetry to compare with.
    fn on_ack(&mut self, scheme: &Hpcc, ack: &Ack<IntHeader>) -> Option<f64> {
        if ack.data.path != self.path {
            return None;
        }
        let comparable = self.before.hops > 0 && self.before.hops == ack.data.hops;
        if !comparable {
            self.before = ack.data;
            self.update_from = ack.next_segment;
            return None;
        }
        self.measure(&ack.data);
        let updates = ack.segment >= self.update_from;
        if updates {
            self.update_from = ack.next_segment;
        }
        self.before = ack.data;
        Some(self.window(scheme, updates))
    }
}

impl HpccSource {
    /// Sets window and pacing rate. A packet is sent while less than the window is in flight, so that a window below
    /// one packet still sends.
    fn pace(&self, io: &mut Io<Hpcc>, k: SubflowId, window: f64) {
        let rate_bps = window * 8e9 / self.subflows[k].t_ns;
        let payload = (window * self.payload_share) as u64 + u64::from(self.mss_bytes) - 1;
        io.pace(k, Some(rate_bps), Some(payload));
    }
}

impl Source<Hpcc> for HpccSource {
    fn on_start(&mut self, io: &mut Io<Hpcc>) {
        for k in self.subflows.ids() {
            self.pace(io, k, self.subflows[k].most);
        }
    }
    fn on_ack(&mut self, io: &mut Io<Hpcc>, ack: &Ack<IntHeader>) {
        if let Some(window) = self.subflows[ack.subflow].on_ack(&self.scheme, ack) {
            self.pace(io, ack.subflow, window);
        }
    }
    fn on_reroute(&mut self, io: &mut Io<Hpcc>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        let s = &mut self.subflows[subflow];
        let t_ns = s.t_ns as Ns;
        *s = HpccSubflow { update_from: s.update_from, ..self.scheme.subflow(t_ns, path, links) };
        let most = s.most;
        self.pace(io, subflow, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Record;

    /// A subflow at 100 Gb/s with T of 13 us: its window is 162,500 bytes and its step 81.25 bytes.
    fn subflow(given: serde_json::Value) -> (Hpcc, HpccSubflow) {
        let scheme = Hpcc::new(&Params::resolve(&Hpcc::INFO, given.as_object().unwrap()).unwrap()).unwrap();
        let path = PathInfo { hops: 3, line_rate_bps: 100e9, min_capacity_bps: 100e9, base_rtt_ns: 12_000 };
        let subflow = scheme.subflow(13_000, &path, &[LinkId(0)]);
        (scheme, subflow)
    }

    fn seen(at_ns: u32, sent_bytes: u32, queued_bytes: u32) -> IntHeader {
        let mut telemetry = IntHeader { hops: 1, ..IntHeader::default() };
        telemetry.links[0] = Record { at_ns, sent_bytes, queued_bytes, bytes_per_ns: 12.5 };
        telemetry
    }

    fn ack(segment: u32, next_segment: u32, data: IntHeader) -> Ack<IntHeader> {
        Ack {
            subflow: SubflowId(0),
            acked_bytes: 1000,
            rtt_ns: 13_000,
            ecn: false,
            in_flight_bytes: 0,
            remaining_bytes: 1,
            segment,
            next_segment,
            data,
        }
    }

    #[test]
    fn the_additive_step_is_the_papers_at_its_sizes() {
        let (_, s) = subflow(serde_json::json!({}));
        assert!((s.most - 162_500.0).abs() < 1e-6 && (s.w_ai - 81.25).abs() < 1e-6, "{s:?}");
    }

    #[test]
    fn telemetry_has_bytes_and_the_simulator_a_least_rate() {
        let (scheme, mut s) = subflow(serde_json::json!({"preset": "hpcc-simulator"}));
        assert_eq!(scheme.rules().headers, Headers { data_bytes: 42, ack_bytes: 28 });
        assert!((s.w_ai - 65.0).abs() < 1e-6, "40 Mb/s at 100 Gb/s over 13 us: {}", s.w_ai);
        s.in_flight = 1e6;
        assert!((s.window(&scheme, true) - 1625.0).abs() < 1e-6, "{}", s.reference);
    }

    #[test]
    fn in_flight_is_queue_and_rate_over_a_whole_round_trip() {
        let (scheme, mut s) = subflow(serde_json::json!({}));
        assert_eq!(s.on_ack(&scheme, &ack(0, 10, seen(u32::MAX - 5000, 4_294_900_000, 65_000))), None);
        // The link sent at its rate for T, across both wraps, and its queue was at least 40% of B T: U is 1.4.
        let sent = 4_294_900_000u32.wrapping_add(162_500);
        let window = s.on_ack(&scheme, &ack(10, 20, seen(7999, sent, 70_000))).unwrap();
        assert!((s.in_flight - 1.4).abs() < 1e-6, "{}", s.in_flight);
        assert!((window - (162_500.0 * 0.95 / 1.4 + 81.25)).abs() < 0.01, "{window}");
        assert_eq!(s.reference, window);
    }

    #[test]
    fn within_a_round_trip_the_reference_stays() {
        let (scheme, mut s) = subflow(serde_json::json!({}));
        s.on_ack(&scheme, &ack(0, 10, seen(0, 0, 65_000)));
        let first = s.on_ack(&scheme, &ack(10, 20, seen(13_000, 162_500, 65_000))).unwrap();
        let reference = s.reference;
        let again = s.on_ack(&scheme, &ack(11, 20, seen(26_000, 325_000, 65_000))).unwrap();
        assert_eq!(s.reference, reference);
        assert!(again < first, "the same load again gives the reference times eta over U: {again} after {first}");
        s.on_ack(&scheme, &ack(20, 30, seen(39_000, 487_500, 65_000)));
        assert!(s.reference < reference);
    }

    #[test]
    fn after_max_stage_additive_steps_comes_a_multiplicative_one() {
        for (max_stage, steps) in [(5.0, 5), (0.0, 0)] {
            let (scheme, mut s) = subflow(serde_json::json!({"max_stage": max_stage}));
            (s.reference, s.in_flight) = (10_000.0, 0.5);
            for _ in 0..steps {
                let before = s.reference;
                assert!((s.window(&scheme, true) - before - s.w_ai).abs() < 1e-6);
            }
            let before = s.reference;
            assert!((s.window(&scheme, true) - before * 1.9 - s.w_ai).abs() < 1e-6);
            assert_eq!(s.stage, 0);
        }
    }
}
