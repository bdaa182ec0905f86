//! Explicit weight inference in packets: the optimizer of NUMFabric (section 4.2; the link's side is figure 3).
//!
//! The equations are those of [`subak_solve::xwi`]. A data packet carries its flow's normalized residual. A link takes
//! the minimum over an interval and updates its price at the interval's end. Prices start at zero.
//!
//! Additions to the paper: for a guard time after each update a link ignores packets, because they still carry the old
//! prices. A source sends no residual before it knows its rate and its path's price. A link counts one packet more than
//! it sent, for the packets cut off at both ends of the interval, so that a busy link counts as fully used. Where an
//! interval has fewer than `PACKETS`, such as at a slow NIC, the utilization is a moving average over about so many:
//! one packet more would hide that the link is half idle. Over a transport that takes many RTTs, a subflow's share in
//! its flow is an average over an interval by default. Weights over soze-virtual and s-PERC converge without it too.

use super::prices::{Bounds, PriceInterval, SHARE_TIME, SubflowTargets, share_ns};
use crate::over::{Feedback, HANDSHAKE, Optimizer, OptimizerSource, Part, Price, Weight};
use std::sync::Arc;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::rng::mix;
use subak_core::scheme::{Doubtful, FlowInfo, Follows, Goal, Param, Params, Port, Settles, Utilities};
use subak_core::{IdVec, InputError, Ns, SubflowId, Utility};
use subak_solve::xwi::{MOST, XwiPriceLaw, normalized_residual};

/// Parameter `price_interval`: time between two updates of a link's price.
const PRICE_INTERVAL: Param = Param::number(
    "price_interval",
    0.0,
    ValueType::Time,
    "time between two updates of a link's price; 0: 1.4 of the network's longest base RTTs, at least 30us",
);
/// Parameter `guard`: time after a price update during which the link ignores packets.
const GUARD: Param =
    Param::number("guard", 3e-6, ValueType::Time, "time after an update during which packets are ignored");
/// Parameter `eta`: gain with which the price of a link falls while the link is not saturated.
const ETA: Param = Param::number("eta", 5.0, AMOUNT, "gain of the decay of the price of a link that is not saturated");
/// Parameter `beta`: weight of the old price in the average of old and new price.
const BETA: Param = Param::number("beta", 0.5, AMOUNT, "weight of the old price in the average");
/// Parameter `synchronized`: whether all links update their prices at the same times.
const SYNCHRONIZED: Param = Param::flag("synchronized", true, "all links update their prices at the same times");
/// Parameter `least_weight`: minimum target weight, as a multiple of the line rate.
const LEAST_WEIGHT: Param = Param::number(
    "least_weight",
    1e-4,
    AMOUNT,
    "smallest weight, in line rates: keeps a few packets of every flow going",
);
/// Parameter `most_weight`: maximum target weight, as a multiple of the line rate.
const MOST_WEIGHT: Param = Param::number(
    "most_weight",
    MOST,
    AMOUNT,
    "largest weight, in line rates; also the weight at a price of zero; under fct, srpt and edf the default is 1e6",
)
.following(Follows::Urgency);

/// Parameter `time_scale`: factor of `price_interval`.
const TIME_SCALE: Param = Param::number(
    "time_scale",
    1.0,
    AMOUNT,
    "multiplies price_interval: 2 for alpha below 0.5 or above 2 (NUMFabric, section 6.2)",
);

/// Minimum number of full packets in the average of a link's utilization.
const PACKETS: f64 = 20.0;

/// The optimizer xwi: weights from link prices.
#[derive(Debug, Clone, Copy)]
pub struct Xwi {
    interval: PriceInterval,
    guard_ns: Ns,
    law: XwiPriceLaw,
    synchronized: bool,
    bounds: Bounds,
    /// Whether the transport converges slower than Swift.
    is_slowed: bool,
    /// Time constant of the average of a subflow's share, ns; `None`: by the transport.
    share_ns: Option<Ns>,
    handshake: bool,
}

/// Normalized residual of a flow (NUMFabric, section 4.2); infinite: none.
#[derive(Debug, Clone, Copy)]
pub struct Residual(pub f64);

impl Default for Residual {
    fn default() -> Self {
        Residual(f64::INFINITY)
    }
}

impl Optimizer for Xwi {
    const PER_HOP: f64 = 0.3;
    const PART: Part = Part {
        name: "xwi",
        about: "weights that maximize utility, inferred from link prices (xWI)",
        paper: "Nagaraj et al., NUMFabric, SIGCOMM 2016, section 4.2",
        params: &[
            TIME_SCALE,
            PRICE_INTERVAL,
            GUARD,
            ETA,
            BETA,
            SYNCHRONIZED,
            LEAST_WEIGHT,
            MOST_WEIGHT,
            SHARE_TIME,
            HANDSHAKE,
        ],
        goal: Goal::Utility(Utilities { curves: true, ..Utilities::ALL }),
        settles: Settles { within: 0.1, rtts: 100.0 },
    };
    const WEIGHTS_OF_RATES: bool = true;
    type Wish = Weight;
    type Note = Residual;
    type Source = XwiSource;
    type Price = XwiPrice;

    /// Excludes policies that put some flows before others, such as SRPT, over some transports: weights then span many
    /// orders of magnitude, and change faster than these transports converge. Over levels, only alpha-fair utilities
    /// with an alpha of at most 2 remain.
    fn serves_over(transport: &str, all: Utilities) -> Utilities {
        let sound_alpha = (0.5, f64::INFINITY);
        let pooled = Doubtful { pooled: true, ..Doubtful::NONE };
        let by_rank = Doubtful { ranks: true, bandwidth_functions: true, ..Doubtful::NONE };
        match transport {
            "s-perc" => Utilities { ranks: false, sound_alpha, ..all },
            "soze-virtual" => Utilities { ranks: false, sound_alpha, doubtful: pooled, ..all },
            "levels" => Utilities { most_alpha: 2.0, sound_alpha: (1.0, f64::INFINITY), ..Utilities::ALPHA_FAIR },
            "swift" => Utilities { doubtful: by_rank, ..all },
            _ => all,
        }
    }
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        Some(self.interval.on(rtt_ns))
    }
    fn new(params: &Params) -> Result<Self, InputError> {
        let time_scale = params.within("time_scale", 0.01, 1000.0)?;
        let interval = PriceInterval::new(params, 1.4, 30e-6)?.times(time_scale);
        let guard = params.within("guard", 0.0, interval.least_ns() * 0.9e-9)?;
        Ok(Xwi {
            interval,
            guard_ns: (guard * 1e9).round() as Ns,
            law: XwiPriceLaw { eta: params.within("eta", 0.0, 1e3)?, beta: params.within("beta", 0.0, 0.999_999)? },
            synchronized: params.flag("synchronized"),
            bounds: Bounds {
                least: params.within("least_weight", 1e-9, 1.0)?,
                most: params.within("most_weight", 1.0, 1e9)?,
            },
            is_slowed: false,
            share_ns: share_ns(params)?,
            handshake: params.flag("handshake"),
        })
    }
    fn has_handshake(&self) -> bool {
        self.handshake
    }
    fn slowed(self, by: f64) -> Self {
        Xwi { interval: self.interval.times(by), is_slowed: self.is_slowed || by > 1.0, ..self }
    }
    fn source(&self, flow: &FlowInfo) -> XwiSource {
        let usual_ns = if self.is_slowed { self.interval.on(flow.rtt_ns) } else { 0 };
        XwiSource {
            wishes: SubflowTargets::new(flow, self.bounds, self.share_ns.unwrap_or(usual_ns)),
            residuals: IdVec::filled(Residual::default(), flow.paths.len()),
        }
    }
    fn price(&self, port: &Port) -> XwiPrice {
        let interval_ns = self.interval.on(port.rtt_ns);
        let phase_ns = if self.synchronized { 0 } else { mix(u64::from(port.link.0)) % interval_ns };
        XwiPrice {
            xwi: *self,
            interval_ns,
            price: 0.0,
            min_residual: f64::INFINITY,
            served_bytes: 0,
            mean_served_bytes: 0.0,
            heed_ns: 0,
            first_ns: interval_ns + phase_ns,
        }
    }
}

/// Sender of xWI: target weights and residuals of the subflows.
#[derive(Debug, Clone)]
pub struct XwiSource {
    wishes: SubflowTargets,
    residuals: IdVec<SubflowId, Residual>,
}

impl OptimizerSource<Xwi> for XwiSource {
    fn on_start(&mut self, now_ns: Ns) {
        self.wishes.on_start(now_ns);
    }
    #[inline]
    fn wish(&self, k: SubflowId) -> Weight {
        Weight::of_rate(self.wishes.wish_bps(k))
    }
    fn on_weight(&mut self, _weight: f64, utility: &Arc<Utility>) {
        self.wishes.set_utility(utility);
    }
    #[inline]
    fn note(&self, k: SubflowId) -> Residual {
        self.residuals[k]
    }
    #[inline]
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        self.wishes.on_feedback(k, feedback.path_price, feedback);
        let Some(rate) = self.wishes.rate_bps(feedback.now_ns) else { return };
        let marginal = self.wishes.marginal();
        // At the top of a bandwidth function U' drops to zero, so that a residual would not depend on prices.
        let residual = if rate < marginal.top_bps() {
            normalized_residual(marginal, rate, feedback.path_price, f64::from(feedback.path_len.max(1)))
        } else {
            f64::INFINITY
        };
        self.residuals[k] = Residual(residual);
    }
}

/// Price of a link by NUMFabric, figure 3.
#[derive(Debug, Clone)]
pub struct XwiPrice {
    xwi: Xwi,
    interval_ns: Ns,
    price: f64,
    /// Minimum residual since the guard time ended.
    min_residual: f64,
    served_bytes: u64,
    /// Average of the bytes that an interval served.
    mean_served_bytes: f64,
    /// End of the guard time, ns.
    heed_ns: Ns,
    first_ns: Ns,
}

impl Price<Residual> for XwiPrice {
    fn first_update_ns(&self) -> Option<Ns> {
        Some(self.first_ns)
    }
    #[inline]
    fn now(&self) -> f64 {
        self.price
    }
    #[inline]
    fn on_enqueue(&mut self, now_ns: Ns, _bytes: u32, note: Option<&Residual>) {
        if let Some(&Residual(residual)) = note
            && now_ns >= self.heed_ns
        {
            self.min_residual = self.min_residual.min(residual);
        }
    }
    #[inline]
    fn on_dequeue(&mut self, now_ns: Ns, bytes: u32) {
        if now_ns >= self.heed_ns {
            self.served_bytes += u64::from(bytes);
        }
    }
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let could = (self.interval_ns - self.xwi.guard_ns) as f64 * port.capacity_bps / 8e9;
        let mtu_bytes = f64::from(port.mtu_bytes);
        let gain = (could / (PACKETS * mtu_bytes)).min(1.0);
        self.mean_served_bytes += gain * (self.served_bytes as f64 - self.mean_served_bytes);
        let utilization =
            if self.mean_served_bytes == 0.0 { 0.0 } else { (self.mean_served_bytes + gain * mtu_bytes) / could };
        self.price = self.xwi.law.next(self.price, self.min_residual, utilization);
        self.min_residual = f64::INFINITY;
        self.served_bytes = 0;
        self.heed_ns = now_ns + self.xwi.guard_ns;
        now_ns + self.interval_ns
    }
}
