//! RCP*: links advertise fair-share rates, which flows combine by alpha-fairness (NUMFabric, equations 15 and 16;
//! Kelly, Raina and Voice, SIGCOMM CCR 2008).
//!
//! A flow's rate is U'^-1 of the sum of R^-alpha: with the alpha-fair utility of weight w that is equation 16 times w.
//! So R^-alpha is a link's price, and the sender is DGD's. `alpha` must be the policy's.
//!
//! With the gains of NUMFabric's table 2, a = 3.6 and b = 1.8, equation 15 does not converge. With one RTT of delay the
//! loop is stable only below a = pi / 2. Packet simulations agree: rates oscillate at 3.6 and 1.8, and converge at 0.9.
//! The defaults are a quarter of the published gains.
//!
//! R starts at the capacity C and stays between `floor` times C and 2 C 4^(1/alpha). d is the running average of the RTTs
//! that packets carry, at least the largest base RTT.

use super::dgd::FLOOR;
use super::prices::{PriceInterval, SHARE_TIME, SubflowTargets, share_ns};
use crate::over::{Feedback, HANDSHAKE, NumberNote, Optimizer, OptimizerSource, Part, Price, Rate};
use std::sync::Arc;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{Around, Doubt, Doubtful, FlowInfo, Follows, Goal, Param, Params, Port, Settles, Utilities};
use subak_core::{IdVec, InputError, Ns, SubflowId, Utility};

/// Minimum number of packets per update interval, unless `price_interval` is set.
const PACKETS: f64 = 10.0;
/// Time that a transport of weights takes in addition to an RTT, ns: Swift averages rates over 20 us, and its queues add
/// some. Without it, rates oscillate where the RTT is shorter.
const TRANSPORT_NS: f64 = 30_000.0;
/// Gain of the moving average of RTTs.
const RTT_GAIN: f64 = 0.5;

/// Parameter `price_interval`: time between two updates of a link's price.
const PRICE_INTERVAL: Param = Param::number(
    "price_interval",
    0.0,
    ValueType::Time,
    "time between two updates of a link's price; 0: half of the network's longest base RTT, and at least 10 packets",
);

/// The optimizer rcp-star: rates from the links' fair shares.
#[derive(Debug, Clone, Copy)]
pub struct FairShare {
    a: f64,
    b: f64,
    alpha: f64,
    interval: PriceInterval,
    floor: f64,
    /// Time constant of the average of a subflow's share, ns; `None`: the default.
    share_ns: Option<Ns>,
    handshake: bool,
    /// Time from a target rate to the rate, in addition to an RTT, ns.
    extra_ns: f64,
}

/// Latest RTT that the source measured, ns; 0: none yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip(pub u32);

impl NumberNote for RoundTrip {
    fn of(number: f64) -> Self {
        RoundTrip(number as u32)
    }
    fn number(self) -> f64 {
        f64::from(self.0)
    }
}

impl Optimizer for FairShare {
    const PART: Part = Part {
        name: "rcp-star",
        about: "alpha-fair rates from the fair-share rates that links advertise (RCP*)",
        paper: "NUMFabric, equations 15 and 16",
        params: &[
            Param::number("a", 0.9, AMOUNT, "gain of spare capacity"),
            Param::number("b", 0.45, AMOUNT, "gain of the queue length"),
            Param::number("alpha", 1.0, AMOUNT, "the policy's alpha").following(Follows::Alpha),
            PRICE_INTERVAL,
            FLOOR,
            SHARE_TIME,
            HANDSHAKE,
        ],
        goal: Goal::Utility(Utilities::ALPHA_FAIR),
        settles: Settles { within: 0.1, rtts: 500.0 },
    };
    type Wish = Rate;
    type Note = RoundTrip;
    type Source = RcpStarSource;
    type Price = RcpStarShare;

    fn serves_over(transport: &str, all: Utilities) -> Utilities {
        match transport {
            "soze-virtual" => Utilities::NONE,
            // A link that is not full still advertises a price, which counts the more the smaller alpha is, and makes a
            // path of more links dearer.
            _ => Utilities {
                sound_alpha: (1.0, f64::INFINITY),
                doubtful: Doubtful { pooled: true, ..Doubtful::NONE },
                ..all
            },
        }
    }
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        Some(self.interval.on(rtt_ns))
    }
    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(FairShare {
            a: params.within("a", 0.0, 1e3)?,
            b: params.within("b", 0.0, 1e3)?,
            alpha: params.within("alpha", 0.01, 100.0)?,
            interval: PriceInterval::new(params, 0.5, 1e-7)?,
            floor: params.within("floor", 1e-9, 1.0)?,
            share_ns: share_ns(params)?,
            handshake: params.flag("handshake"),
            extra_ns: 0.0,
        })
    }
    fn behind_weights(self) -> Self {
        FairShare { extra_ns: TRANSPORT_NS, ..self }
    }
    fn has_handshake(&self) -> bool {
        self.handshake
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let rtt_ns = around.ports.first().map_or(0, |port| port.rtt_ns);
        let floor = "the rate of an idle link limits a flow of a small weight, and large weights get equal rates";
        let doubts =
            [Doubt::of_price_interval(around, self.interval.on(rtt_ns)), Doubt::of_weights(around, (0.5, 20.0), floor)];
        doubts.into_iter().flatten().collect()
    }
    fn source(&self, flow: &FlowInfo) -> RcpStarSource {
        RcpStarSource {
            wishes: SubflowTargets::for_rates(flow, self.floor, self.share_ns),
            rtt: IdVec::filled(RoundTrip::default(), flow.paths.len()),
        }
    }
    fn price(&self, port: &Port) -> RcpStarShare {
        let mut share = RcpStarShare {
            rcp: *self,
            interval_ns: FairShare::interval_ns(self, port),
            rate_bps: port.capacity_bps,
            price: 0.0,
            base_ns: port.rtt_ns as f64,
            rtt_ns: port.rtt_ns as f64,
            arrived_bytes: 0,
        };
        share.set_price();
        share
    }
}

impl FairShare {
    /// Time until the next update at `port`, ns. The interval has at least a few packets, because the load of fewer is
    /// noisy and lowers the rate on average.
    fn interval_ns(&self, port: &Port) -> Ns {
        let packets_ns = PACKETS * 8e9 * f64::from(port.mtu_bytes) / port.capacity_bps;
        let least_ns = if self.interval.is_given() { 0 } else { packets_ns as Ns };
        self.interval.on(port.rtt_ns).max(least_ns)
    }
}

/// Sender of RCP*: target rates by NUMFabric, equation 16.
#[derive(Debug, Clone)]
pub struct RcpStarSource {
    wishes: SubflowTargets,
    rtt: IdVec<SubflowId, RoundTrip>,
}

impl OptimizerSource<FairShare> for RcpStarSource {
    fn on_start(&mut self, now_ns: Ns) {
        self.wishes.on_start(now_ns);
    }
    fn wish(&self, k: SubflowId) -> Rate {
        Rate(self.wishes.wish_bps(k))
    }
    fn on_weight(&mut self, _weight: f64, utility: &Arc<Utility>) {
        self.wishes.set_utility(utility);
    }
    fn note(&self, k: SubflowId) -> RoundTrip {
        self.rtt[k]
    }
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        self.wishes.on_feedback(k, feedback.path_price, feedback);
        self.rtt[k] = RoundTrip(feedback.rtt_ns.min(u64::from(u32::MAX)) as u32);
    }
}

/// Fair share of a link by NUMFabric, equation 15.
#[derive(Debug, Clone)]
pub struct RcpStarShare {
    rcp: FairShare,
    interval_ns: Ns,
    /// R, the fair share, bit/s.
    rate_bps: f64,
    /// R^-alpha, the link's price.
    price: f64,
    base_ns: f64,
    /// d, the average RTT of packets, ns.
    rtt_ns: f64,
    arrived_bytes: u64,
}

impl RcpStarShare {
    fn set_price(&mut self) {
        self.price = libm::exp(-self.rcp.alpha * libm::log(self.rate_bps));
    }
}

impl Price<RoundTrip> for RcpStarShare {
    fn first_update_ns(&self) -> Option<Ns> {
        Some(self.interval_ns)
    }
    #[inline]
    fn now(&self) -> f64 {
        self.price
    }
    #[inline]
    fn on_enqueue(&mut self, _now_ns: Ns, bytes: u32, note: Option<&RoundTrip>) {
        self.arrived_bytes += u64::from(bytes);
        if let Some(&RoundTrip(rtt_ns)) = note
            && f64::from(rtt_ns) >= self.base_ns
        {
            self.rtt_ns += RTT_GAIN * (f64::from(rtt_ns) - self.rtt_ns);
        }
    }
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let (capacity, interval) = (port.capacity_bps, self.interval_ns as f64);
        // d is at least the interval, so that one update changes the rate by at most the step of one RTT.
        self.rtt_ns = self.rtt_ns.max(interval);
        let y = self.arrived_bytes as f64 * 8e9 / interval;
        let drain = port.queued_bytes as f64 * 8e9 / self.rtt_ns;
        let free = self.rcp.a * (capacity - y) - self.rcp.b * drain;
        let most = 2.0 * capacity * libm::pow(4.0, 1.0 / self.rcp.alpha);
        let next = self.rate_bps * (1.0 + interval / (self.rtt_ns + self.rcp.extra_ns) * free / capacity);
        self.rate_bps = next.clamp(self.rcp.floor * capacity, most);
        self.set_price();
        self.arrived_bytes = 0;
        self.interval_ns = self.rcp.interval_ns(port);
        now_ns + self.interval_ns
    }
}
