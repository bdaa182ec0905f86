//! Google's Swift: congestion windows by the difference between the RTT and a target, which grows with the number of
//! hops and of flows.
//!
//! Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM 2020,
//! algorithm 1. With d the network's RTT and w the window in packets:
//!
//! ```text
//! d < target:  w += ai / w per ACKed packet, or ai if w < 1
//! else:        w *= max(1 - beta (d - target) / d, 1 - max_mdf), at most once per RTT
//! target = base_target + hops hop_scale + max(0, min(a / sqrt(w) + b, fs_range)),
//! a = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)),   b = -a / sqrt(fs_max_cwnd)
//! ```
//!
//! A loss reduces the window by `max_mdf`; the fifth consecutive RTO sets it to its minimum. Windows below one packet
//! are paced. The window of the endpoint's delay (section 3.1) is omitted, since hosts take no time here.

use crate::queue::Fifo;
use crate::tcp;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{
    Ack, Around, Doubt, FlowInfo, Goal, Info, Io, Loss, LossKind, Named, Param, Params, PathInfo, Port, Recovery,
    Rules, Scheme, SchemeKind, Settles, SharesLinks, Source,
};
use subak_core::{IdVec, InputError, LinkId, Ns, SubflowId};

/// Default of `base_target`, as a multiple of the base RTT.
const BASE_RTTS: f64 = 1.25;
/// Minimum of the default of `base_target`, ns.
const BASE_NS: f64 = 25e3;

/// The scheme Swift (Google).
#[derive(Debug, Clone, Copy)]
pub struct GoogleSwift {
    ai: f64,
    beta: f64,
    max_mdf: f64,
    base_target_ns: f64,
    hop_scale_ns: f64,
    fs_range_ns: f64,
    /// Constant a of the target's term for small windows (Swift, algorithm 1), ns.
    a_ns: f64,
    /// Constant b of the target's term for small windows (Swift, algorithm 1), ns.
    b_ns: f64,
    initial: f64,
    min_cwnd: f64,
    max_cwnd: f64,
    retx_reset: u32,
    recovery: Recovery,
}

/// Congestion windows of a sender, one per subflow.
#[derive(Debug, Clone)]
pub struct GoogleSwiftSource {
    scheme: GoogleSwift,
    mss_bytes: u32,
    subflows: IdVec<SubflowId, SwiftWindow>,
}

/// A congestion window, in packets.
#[derive(Debug, Clone, Copy)]
struct SwiftWindow {
    cwnd: f64,
    /// Target RTT without the term that grows for small windows, ns.
    target_ns: f64,
    rtt_ns: Ns,
    decreased_ns: Option<Ns>,
    /// Number of consecutive timeouts.
    timeouts: u32,
}

impl Named for GoogleSwift {
    const INFO: Info = Info {
        name: "google-swift",
        about: "Google's Swift: windows by delay, with a target that grows with hops and flows; not NUMFabric's transport swift",
        paper: "Kumar et al., SIGCOMM 2020",
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        goal: Goal::Own,
        weights: false,
        params: &[
            Param::number(
                "ai",
                1.0,
                ValueType::Packets,
                "additive increase of the window an RTT, while the delay is below the target",
            ),
            Param::number("beta", 0.8, AMOUNT, "gain of cuts"),
            Param::number("max_mdf", 0.5, AMOUNT, "maximum fraction of a cut"),
            Param::number(
                "base_target",
                0.0,
                ValueType::Time,
                "target of a path without hops, for many packets in flight; 0: 1.25 base RTTs of the path, and at least 25 us",
            ),
            Param::number("hop_scale", 1e-6, ValueType::Time, "addition to the target for each link of the path"),
            Param::number(
                "fs_range",
                100e-6,
                ValueType::Time,
                "maximum addition to the target for small windows; 0: none",
            ),
            Param::number("fs_min_cwnd", 0.1, AMOUNT, "packets of the window that adds the most"),
            Param::number("fs_max_cwnd", 100.0, AMOUNT, "packets of the window from which on nothing is added"),
            Param::number("min_cwnd", 0.001, AMOUNT, "the least window, packets"),
            Param::number("max_cwnd", 1000.0, ValueType::Packets, "the largest window"),
            Param::number("retx_reset", 5.0, AMOUNT, "timeouts in a row that bring the window to its least"),
            tcp::INITIAL_WINDOW,
            tcp::RTO_MIN,
            tcp::TIMEOUT,
            tcp::PROBE,
        ],
        settles: Settles::NEVER,
        shares_links: SharesLinks::Yes,
        ..Info::DEFAULT
    };
}

impl Scheme for GoogleSwift {
    type Data = ();
    type Ctl = ();
    type Queue = Fifo;
    type Source = GoogleSwiftSource;
    type Hop = ();
    type Sink = ();

    fn new(params: &Params) -> Result<Self, InputError> {
        let fs_range_ns = params.within("fs_range", 0.0, 10.0)? * 1e9;
        let fs_min = params.within("fs_min_cwnd", 1e-6, 1e6)?;
        let fs_max = params.within("fs_max_cwnd", 1e-6, 1e6)?;
        if fs_max <= fs_min {
            let what = format!("it is {fs_max}, and fs_min_cwnd is {fs_min}");
            return Err(InputError::new("params.fs_max_cwnd", what, "give a larger one"));
        }
        let a_ns = fs_range_ns / (1.0 / fs_min.sqrt() - 1.0 / fs_max.sqrt());
        let min_cwnd = params.within("min_cwnd", 1e-6, 1.0)?;
        Ok(GoogleSwift {
            ai: params.within("ai", 0.0, 1e6)?,
            beta: params.within("beta", 0.0, 1e3)?,
            max_mdf: params.within("max_mdf", 0.0, 1.0)?,
            base_target_ns: params.within("base_target", 0.0, 10.0)? * 1e9,
            hop_scale_ns: params.within("hop_scale", 0.0, 10.0)? * 1e9,
            fs_range_ns,
            a_ns,
            b_ns: -a_ns / fs_max.sqrt(),
            initial: params.within("initial_window", 1.0, 1e6)?,
            min_cwnd,
            max_cwnd: params.within("max_cwnd", 1.0, 1e6)?,
            retx_reset: params.whole("retx_reset", 1.0, 1e6)? as u32,
            recovery: tcp::recovery(params),
        })
    }
    fn rules(&self) -> Rules {
        Rules { recovery: self.recovery, ..Rules::default() }
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let Some((_, longest)) = around.paths else { return Vec::new() };
        let (target_ns, rtt_ns) = (self.window(&longest).target_ns, longest.base_rtt_ns as f64);
        let text = format!(
            "the target of the longest path is {:.1} us but for small windows, and its base RTT is {:.1} us: windows shrink though \
             nothing waits; leave params.base_target at 0, or give more than the base RTT",
            target_ns / 1e3,
            rtt_ns / 1e3
        );
        if target_ns <= rtt_ns {
            return vec![Doubt { kind: "target", text }];
        }
        Doubt::of_delay(around, "base_target", target_ns).into_iter().collect()
    }
    fn queue(&self, port: &Port) -> Fifo {
        Fifo::new(port.buffer_bytes)
    }
    fn source(&self, flow: &FlowInfo) -> GoogleSwiftSource {
        let subflows = flow.paths.iter().map(|path| self.window(path)).collect();
        GoogleSwiftSource { scheme: *self, mss_bytes: flow.mss_bytes, subflows }
    }
    fn hop(&self, _port: &Port) {}
    fn sink(&self, _flow: &FlowInfo) {}
}

impl GoogleSwift {
    fn window(&self, path: &PathInfo) -> SwiftWindow {
        let cwnd = self.initial.min(self.max_cwnd);
        let base_ns = path.time_ns(self.base_target_ns, BASE_RTTS, BASE_NS);
        let target_ns = base_ns + f64::from(path.hops) * self.hop_scale_ns;
        SwiftWindow { cwnd, target_ns, rtt_ns: path.base_rtt_ns.max(1), decreased_ns: None, timeouts: 0 }
    }

    /// Target RTT for the present window, ns.
    fn target_ns(&self, window: &SwiftWindow) -> f64 {
        let flows_ns = (self.a_ns / window.cwnd.sqrt() + self.b_ns).clamp(0.0, self.fs_range_ns);
        window.target_ns + flows_ns
    }
}

impl SwiftWindow {
    fn may_decrease(&self, now_ns: Ns) -> bool {
        self.decreased_ns.is_none_or(|at_ns| now_ns >= at_ns + self.rtt_ns)
    }

    /// Multiplies the window by `factor`, unless it was reduced within the last RTT.
    fn cut(&mut self, scheme: &GoogleSwift, now_ns: Ns, factor: f64) {
        if self.may_decrease(now_ns) {
            self.set(scheme, now_ns, self.cwnd * factor);
        }
    }

    fn set(&mut self, scheme: &GoogleSwift, now_ns: Ns, cwnd: f64) {
        let before = self.cwnd;
        self.cwnd = cwnd.clamp(scheme.min_cwnd, scheme.max_cwnd);
        if self.cwnd < before {
            self.decreased_ns = Some(now_ns);
        }
    }

    /// Updates the window for `packets` ACKed after an RTT of `rtt_ns`.
    fn on_ack(&mut self, scheme: &GoogleSwift, now_ns: Ns, packets: f64, rtt_ns: Ns) {
        (self.timeouts, self.rtt_ns) = (0, rtt_ns.max(1));
        let (delay_ns, target_ns) = (self.rtt_ns as f64, scheme.target_ns(self));
        if delay_ns < target_ns {
            let step = if self.cwnd >= 1.0 { scheme.ai / self.cwnd } else { scheme.ai };
            self.set(scheme, now_ns, self.cwnd + step * packets);
        } else {
            let factor = (1.0 - scheme.beta * (delay_ns - target_ns) / delay_ns).max(1.0 - scheme.max_mdf);
            self.cut(scheme, now_ns, factor);
        }
    }

    fn on_loss(&mut self, scheme: &GoogleSwift, now_ns: Ns, is_timeout: bool) {
        self.timeouts = if is_timeout { self.timeouts + 1 } else { 0 };
        match self.timeouts >= scheme.retx_reset {
            true => self.set(scheme, now_ns, scheme.min_cwnd),
            false => self.cut(scheme, now_ns, 1.0 - scheme.max_mdf),
        }
    }
}

impl GoogleSwiftSource {
    /// Sets the window in packets; below one packet, a pacing rate instead.
    fn pace(&self, io: &mut Io<GoogleSwift>, subflow: SubflowId) {
        let SwiftWindow { cwnd, rtt_ns, .. } = self.subflows[subflow];
        let mss = f64::from(self.mss_bytes);
        let rate_bps = (cwnd < 1.0).then(|| 8e9 * mss * cwnd / rtt_ns as f64);
        io.pace(subflow, rate_bps, Some((cwnd.max(1.0) * mss) as u64));
    }
}

impl Source<GoogleSwift> for GoogleSwiftSource {
    fn on_start(&mut self, io: &mut Io<GoogleSwift>) {
        self.subflows.ids().for_each(|k| self.pace(io, k));
    }
    fn on_ack(&mut self, io: &mut Io<GoogleSwift>, ack: &Ack<()>) {
        let packets = ack.acked_bytes as f64 / f64::from(self.mss_bytes);
        self.subflows[ack.subflow].on_ack(&self.scheme, io.now_ns, packets, ack.rtt_ns);
        self.pace(io, ack.subflow);
    }
    fn on_loss(&mut self, io: &mut Io<GoogleSwift>, loss: &Loss) {
        let is_timeout = loss.kind == LossKind::Timeout;
        self.subflows[loss.subflow].on_loss(&self.scheme, io.now_ns, is_timeout);
        self.pace(io, loss.subflow);
    }
    fn on_reroute(&mut self, io: &mut Io<GoogleSwift>, subflow: SubflowId, path: &PathInfo, _links: &[LinkId]) {
        self.subflows[subflow] = self.scheme.window(path);
        self.pace(io, subflow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Ns = 1000;

    fn scheme(given: serde_json::Value) -> GoogleSwift {
        GoogleSwift::new(&Params::resolve(&GoogleSwift::INFO, given.as_object().unwrap()).unwrap()).unwrap()
    }

    fn window(cwnd: f64) -> SwiftWindow {
        SwiftWindow { cwnd, target_ns: 29e3, rtt_ns: 20 * US, decreased_ns: None, timeouts: 0 }
    }

    #[test]
    fn the_target_grows_with_hops_and_as_the_window_shrinks() {
        let swift = scheme(serde_json::json!({}));
        let target_us = |cwnd: f64| swift.target_ns(&window(cwnd)) / 1e3;
        // 25 us, and 1 us for each of four links; no flow term from 100 packets on.
        assert!((target_us(100.0) - 29.0).abs() < 1e-9 && (target_us(400.0) - 29.0).abs() < 1e-9);
        // The flow term is all of fs_range at 0.1 packets and below.
        assert!((target_us(0.1) - 129.0).abs() < 1e-9 && (target_us(0.01) - 129.0).abs() < 1e-9);
        // a = 100 / (sqrt(10) - 0.1) = 32.65, b = -3.265: 29.39 at one packet, 4.90 at 16.
        assert!((target_us(1.0) - 58.390).abs() < 1e-3 && (target_us(16.0) - 33.898).abs() < 1e-3);
        assert!((scheme(serde_json::json!({"fs_range": 0})).target_ns(&window(0.1)) - 29e3).abs() < 1e-9);
    }

    #[test]
    fn below_the_target_a_round_trip_adds_a_packet() {
        let (swift, mut w) = (scheme(serde_json::json!({})), window(10.0));
        w.on_ack(&swift, 100 * US, 1.0, 20 * US);
        assert!((w.cwnd - 10.1).abs() < 1e-9);
        let mut small = window(0.5);
        small.on_ack(&swift, 100 * US, 1.0, 20 * US);
        assert!((small.cwnd - 1.5).abs() < 1e-9, "below a packet, each acknowledgement adds one");
    }

    #[test]
    fn above_it_the_window_is_cut_once_a_round_trip() {
        let (swift, mut w) = (scheme(serde_json::json!({})), window(100.0));
        // 0.8 (40 - 29) / 40 = 0.22.
        w.on_ack(&swift, 100 * US, 1.0, 40 * US);
        assert!((w.cwnd - 78.0).abs() < 1e-9);
        w.on_ack(&swift, 139 * US, 1.0, 40 * US);
        assert!((w.cwnd - 78.0).abs() < 1e-9, "not again within a round trip");
        // Even a very long RTT cuts the window by half at most.
        w.on_ack(&swift, 2000 * US, 1.0, 1000 * US);
        assert!((w.cwnd - 39.0).abs() < 1e-9);
    }

    #[test]
    fn losses_halve_it_and_five_timeouts_in_a_row_bring_it_to_its_least() {
        let (swift, mut w) = (scheme(serde_json::json!({})), window(64.0));
        w.on_loss(&swift, 100 * US, false);
        w.on_loss(&swift, 110 * US, false);
        assert!((w.cwnd - 32.0).abs() < 1e-9, "once a round trip");
        for k in 1..=4 {
            w.on_loss(&swift, (1000 * k) * US, true);
        }
        assert!((w.cwnd - 2.0).abs() < 1e-9);
        w.on_loss(&swift, 5001 * US, true);
        assert!((w.cwnd - 0.001).abs() < 1e-12);
        // An ACK resets the count of timeouts.
        w.on_ack(&swift, 9000 * US, 1.0, 20 * US);
        assert_eq!(w.timeouts, 0);
    }

    #[test]
    fn bounds_that_make_no_sense_are_refused() {
        let wrong = serde_json::json!({"fs_min_cwnd": 10, "fs_max_cwnd": 1});
        let params = Params::resolve(&GoogleSwift::INFO, wrong.as_object().unwrap()).unwrap();
        assert!(GoogleSwift::new(&params).is_err());
    }
}
