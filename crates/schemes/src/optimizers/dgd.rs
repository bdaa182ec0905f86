//! DGD: rates straight from link prices, moved by dual gradient descent (NUMFabric, section 3 and equation 14; Low and
//! Lapsley, IEEE/ACM Transactions on Networking 1999).
//!
//! The gains of table 2 are for the logarithm of a rate in Mb/s. A flow's rate x responds to a price p by x / (alpha p), and p
//! is (w/x)^alpha, so the gains suit one alpha alone. A source therefore multiplies prices by alpha X^(1-alpha), X = 1000
//! Mb/s: at X the response is that of the logarithm under every alpha. Prices stay between 0 and 1, and y is the arrival
//! rate in Mb/s.
//!
//! A target rate is at least the share `floor` of the slowest link of the path. The paper's simulations have 1.2% (120 Mb/s at
//! 10 Gb/s, where all links of hosts are alike). A share of the line rate could exceed the capacity of a slow link further on.

use super::prices::{PriceInterval, SHARE_TIME, SubflowTargets, share_ns};
use crate::over::{Feedback, HANDSHAKE, Optimizer, OptimizerSource, Part, Price, Rate};
use std::sync::Arc;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{Around, Doubt, FlowInfo, Goal, Param, Params, Port, Settles, Utilities};
use subak_core::{InputError, NodeKind, Ns, SubflowId, Utility};

/// Parameter `price_interval`: time between two updates of a link's price.
const PRICE_INTERVAL: Param = Param::number(
    "price_interval",
    0.0,
    ValueType::Time,
    "time between two updates of a link's price; 0: the network's longest base RTT, at least 16us",
);
/// Gain a of DGD in NUMFabric, table 2: price per Mb/s beyond the capacity.
const A: f64 = 4e-9;
/// Gain b of DGD in NUMFabric, table 2: price per byte of queue length.
const B: f64 = 1.2e-10;
/// Line rate of NUMFabric's hosts, for which its gains are tuned, bit/s.
const GAIN_BPS: f64 = 10e9;
/// Price interval of NUMFabric, table 2, for which its gains are tuned, s.
const INTERVAL_S: f64 = 16e-6;

/// Parameter `floor`: minimum target rate, as a fraction of the path's slowest link.
pub(super) const FLOOR: Param =
    Param::number("floor", 0.012, AMOUNT, "minimum target rate, as a fraction of the slowest link of the path");

/// The optimizer DGD: rates from link prices by dual gradient descent.
#[derive(Debug, Clone, Copy)]
pub struct GradientDescent {
    a: f64,
    b: f64,
    interval: PriceInterval,
    floor: f64,
    /// Time constant of the average of a subflow's share, ns; `None`: the default.
    share_ns: Option<Ns>,
    handshake: bool,
}

impl Optimizer for GradientDescent {
    const PART: Part = Part {
        name: "dgd",
        about: "rates that maximize utility, from link prices moved by dual gradient descent (DGD)",
        paper: "NUMFabric, section 3 and equation 14",
        params: &[
            Param::number("a", A, AMOUNT, "price for each Mb/s that arrives beyond the capacity"),
            Param::number("b", B, AMOUNT, "price for each byte of queue length"),
            PRICE_INTERVAL,
            FLOOR,
            SHARE_TIME,
            HANDSHAKE,
        ],
        goal: Goal::Utility(Utilities::ALPHA_FAIR),
        settles: Settles { within: 0.05, rtts: 500.0 },
    };
    type Wish = Rate;
    type Note = ();
    type Source = PriceTaker;
    type Price = DgdPrice;

    /// Excludes the transport soze-virtual: over its integrators, prices oscillate after a link failure.
    fn serves_over(transport: &str, all: Utilities) -> Utilities {
        match transport {
            "soze-virtual" => Utilities::NONE,
            // Steps of prices are constant, and prices of equal rates differ by powers of alpha.
            _ => Utilities { sound_alpha: (0.5, 1.0), ..all },
        }
    }
    fn interval_ns(&self, rtt_ns: Ns) -> Option<Ns> {
        Some(self.interval.on(rtt_ns))
    }
    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(GradientDescent {
            a: params.within("a", 0.0, 1.0)?,
            b: params.within("b", 0.0, 1.0)?,
            interval: PriceInterval::new(params, 1.0, INTERVAL_S)?,
            floor: params.within("floor", 1e-9, 1.0)?,
            share_ns: share_ns(params)?,
            handshake: params.flag("handshake"),
        })
    }
    fn has_handshake(&self) -> bool {
        self.handshake
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let interval_ns = around.ports.first().map_or(0, |port| self.interval.on(port.rtt_ns));
        let slow = "steps of prices are constant, so that rates are up to half off after tens of milliseconds";
        let of_weights = Doubt::of_weights(around, (0.1, 30.0), slow);
        let [often, rarely] = [Doubt::of_price_interval(around, interval_ns), doubt_of_rare_steps(around, interval_ns)];
        let doubts = [often, rarely, self.doubt_of_gain(around), of_weights];
        doubts.into_iter().flatten().collect()
    }
    fn source(&self, flow: &FlowInfo) -> PriceTaker {
        PriceTaker {
            wishes: SubflowTargets::for_rates(flow, self.floor, self.share_ns),
            price_unit: price_unit(&flow.utility),
        }
    }
    fn price(&self, port: &Port) -> DgdPrice {
        DgdPrice { dgd: *self, interval_ns: self.interval.on(port.rtt_ns), price: 0.0, arrived_bytes: 0 }
    }
}

impl GradientDescent {
    /// Warns if the line rate of some host is far from 10 Gb/s. The gain is a price per rate, and prices are inverse to
    /// rates, so that NUMFabric's gain suits only line rates near its own.
    fn doubt_of_gain(&self, around: &Around) -> Option<Doubt> {
        let far = |ratio: f64| !(0.4..=2.5).contains(&ratio);
        let line_bps = around.paths?.1.line_rate_bps;
        let of_host = |port: &&Port| {
            let nodes = [port.from, port.to].into_iter().flatten();
            nodes.into_iter().any(|node| around.network.nodes()[node].kind == NodeKind::Host)
        };
        let rates = around.ports.iter().filter(of_host).map(|port| port.capacity_bps);
        let (least_bps, most_bps) = rates.fold((line_bps, line_bps), |(low, high), bps| (bps.min(low), bps.max(high)));
        let [line, least, most] = [line_bps, least_bps, most_bps].map(|bps| bps / GAIN_BPS);
        let text = if far(line) {
            format!(
                "params.a = {A:e} suits line rates near 10 Gb/s, and the line rate is {} Gb/s: prices {}; take a = {:.1e} and \
                 b = {:.1e}",
                line_bps / 1e9,
                if line > 1.0 { "may oscillate" } else { "take much longer to converge" },
                A / (line * line),
                B / (line * line)
            )
        } else {
            format!(
                "params.a = {A:e} suits line rates near 10 Gb/s, and the hosts' go from {} to {} Gb/s: prices of some links may \
                 oscillate, or take much longer to converge; no gain suits all, and the optimizer ned needs none",
                least_bps / 1e9,
                most_bps / 1e9,
            )
        };
        (self.a == A && [line, least, most].into_iter().any(far)).then_some(Doubt { kind: "gain", text })
    }
}

/// Warns if a step of prices takes several RTTs: convergence counts steps.
fn doubt_of_rare_steps(around: &Around, interval_ns: Ns) -> Option<Doubt> {
    let rtt_ns = around.ports.first()?.rtt_ns;
    let text = format!(
        "params.price_interval comes to {:.1} us, and the longest base RTT is {:.1} us: rates converge after some 500 \
         intervals, {:.0} RTTs",
        interval_ns as f64 / 1e3,
        rtt_ns as f64 / 1e3,
        500.0 * interval_ns as f64 / rtt_ns as f64
    );
    (interval_ns > 2 * rtt_ns).then_some(Doubt { kind: "price-interval", text })
}

/// Rate X, Mb/s, at which a flow's rate responds alike to a price change under every alpha.
const ALIKE_MBPS: f64 = 1e3;

/// Marginal utility per bit/s that a link price of 1 equals.
fn price_unit(utility: &Utility) -> f64 {
    match *utility {
        Utility::Power { alpha, .. } => alpha * libm::pow(ALIKE_MBPS, 1.0 - alpha) * libm::pow(1e6, -alpha),
        Utility::BandwidthFunction { .. } | Utility::Curve { .. } => 1.0,
    }
}

/// Sender of DGD: target rates by NUMFabric, equation 3.
#[derive(Debug, Clone)]
pub struct PriceTaker {
    wishes: SubflowTargets,
    price_unit: f64,
}

impl OptimizerSource<GradientDescent> for PriceTaker {
    fn on_start(&mut self, now_ns: Ns) {
        self.wishes.on_start(now_ns);
    }
    fn wish(&self, k: SubflowId) -> Rate {
        Rate(self.wishes.wish_bps(k))
    }
    fn on_weight(&mut self, _weight: f64, utility: &Arc<Utility>) {
        self.wishes.set_utility(utility);
        self.price_unit = price_unit(utility);
    }
    fn on_feedback(&mut self, k: SubflowId, feedback: &Feedback) {
        self.wishes.on_feedback(k, feedback.path_price * self.price_unit, feedback);
    }
}

/// Price of a link by NUMFabric, equation 14.
#[derive(Debug, Clone)]
pub struct DgdPrice {
    dgd: GradientDescent,
    interval_ns: Ns,
    price: f64,
    arrived_bytes: u64,
}

impl Price<()> for DgdPrice {
    fn first_update_ns(&self) -> Option<Ns> {
        Some(self.interval_ns)
    }
    #[inline]
    fn now(&self) -> f64 {
        self.price
    }
    #[inline]
    fn on_enqueue(&mut self, _now_ns: Ns, bytes: u32, _note: Option<&()>) {
        self.arrived_bytes += u64::from(bytes);
    }
    fn update(&mut self, now_ns: Ns, port: &Port) -> Ns {
        let y = self.arrived_bytes as f64 * 8e9 / self.interval_ns as f64;
        let step = self.dgd.a * (y - port.capacity_bps) * 1e-6 + self.dgd.b * port.queued_bytes as f64;
        self.price = (self.price + step).clamp(0.0, 1.0);
        self.arrived_bytes = 0;
        now_ns + self.interval_ns
    }
}
