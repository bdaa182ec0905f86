//! Sender shared by all optimizers with one price per link. A subflow's target rate is U'^-1 of its path's price
//! (NUMFabric, equations 3 and 7; equation 16 is the same with R^-alpha as the price). Each of several subflows has its
//! share of the flow's target (section 6.3, "Resource pooling").

use crate::over::Feedback;
use std::sync::Arc;
use subak_core::keys::ValueType;
use subak_core::scheme::{FlowInfo, Param, Params, PathInfo};
use subak_core::utility::Urgency;
use subak_core::{IdVec, InputError, Ns, SubflowId, Utility};
use subak_solve::xwi::{self, Marginal};

/// Time between two updates of a link's price: `params.price_interval`, or a number of base RTTs.
///
/// A new price changes a link's load only after an RTT, so that prices updated far more often do not converge.
#[derive(Debug, Clone, Copy)]
pub struct PriceInterval {
    /// Value of `params.price_interval`, ns; 0: a multiple of the base RTT.
    given_ns: f64,
    /// Default interval, in multiples of the network's longest base RTT.
    rtts: f64,
    /// Minimum of the default interval, ns.
    least_ns: f64,
    factor: f64,
}

impl PriceInterval {
    /// The interval that `params` set; by default `rtts` base RTTs, at least `least_s` seconds.
    pub fn new(params: &Params, rtts: f64, least_s: f64) -> Result<Self, InputError> {
        let given_s = match params.number("price_interval") {
            0.0 => 0.0,
            _ => params.within("price_interval", 1e-7, 10.0)?,
        };
        Ok(PriceInterval { given_ns: given_s * 1e9, rtts, least_ns: least_s * 1e9, factor: 1.0 })
    }

    /// This interval multiplied by `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        PriceInterval { factor: self.factor * factor, ..self }
    }

    /// The interval in a network whose longest base RTT is `rtt_ns`, ns.
    pub fn on(&self, rtt_ns: Ns) -> Ns {
        let ns = if self.given_ns > 0.0 { self.given_ns } else { (self.rtts * rtt_ns as f64).max(self.least_ns) };
        (ns * self.factor).round().max(1.0) as Ns
    }

    /// Whether `params.price_interval` is given.
    pub fn is_given(&self) -> bool {
        self.given_ns > 0.0
    }

    /// Lower bound of the interval over all networks, ns.
    pub fn least_ns(&self) -> f64 {
        self.factor * if self.given_ns > 0.0 { self.given_ns } else { self.least_ns }
    }
}

/// Bounds of a target weight, as multiples of the line rate.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Minimum, as a multiple of the line rate.
    pub least: f64,
    /// Maximum, as a multiple of the line rate; also the target at a price of zero.
    pub most: f64,
}

/// Parameter `share_time`: time constant of the average of a subflow's share in its flow's rate.
pub const SHARE_TIME: Param = Param::number(
    "share_time",
    0.0,
    ValueType::Time,
    "time constant of a subflow's average share in its flow's rate; 0: 50 base RTTs for target rates; for weights a \
     price interval over transports slower than Swift, and no average over the others",
);

/// `params.share_time`, ns; `None`: the optimizer's default.
pub fn share_ns(params: &Params) -> Result<Option<Ns>, InputError> {
    let given_s = params.within("share_time", 0.0, 10.0)?;
    Ok((given_s > 0.0).then(|| ((given_s * 1e9).round() as Ns).max(1)))
}

/// Default of `share_time` for target rates, in base RTTs. With the share of the last packet alone, a flow moves all its
/// rate to the cheaper path within an RTT, and link prices do not converge.
const SHARE_RTTS: u64 = 50;

/// Time without feedback after which a subflow counts less, in base RTTs of the flow, and in gaps between its feedback.
const PATIENCE: (Ns, Ns) = (20, 4);

/// Target weights or rates of a flow's subflows.
///
/// A subflow whose path fails receives no more feedback. Its last rate then counts inversely to the time since, so that
/// the flow's other subflows take over its share.
#[derive(Debug, Clone)]
pub struct SubflowTargets {
    marginal: Marginal,
    urgency: Urgency,
    start_ns: Ns,
    /// Time constant of the average of shares, ns; 0: no average.
    share_ns: Ns,
    rtt_ns: Ns,
    subflows: IdVec<SubflowId, PricedSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct PricedSubflow {
    /// Lower bound of the subflow's target, bit/s.
    least_bps: f64,
    /// Upper bound of the subflow's target, bit/s; also the target at a price of zero.
    most_bps: f64,
    rate_bps: Option<f64>,
    wish_bps: f64,
    /// The subflow's average share of the flow's rate, at time `seen_ns`.
    share: f64,
    /// Time of the latest feedback.
    seen_ns: Ns,
    /// Longest recent time between feedback, ns.
    gap_ns: Ns,
}

impl PricedSubflow {
    fn see(&mut self, now_ns: Ns, rate_bps: Option<f64>) {
        if self.rate_bps.is_some() {
            self.gap_ns = (now_ns - self.seen_ns).max(self.gap_ns - self.gap_ns / 8);
        }
        (self.seen_ns, self.rate_bps) = (now_ns, rate_bps);
    }

    /// The subflow's rate, bit/s, with that of a subflow without feedback reduced. `rtt_ns`: base RTT of the flow.
    fn known_bps(&self, now_ns: Ns, rtt_ns: Ns) -> Option<f64> {
        let patience_ns = (PATIENCE.0 * rtt_ns).max(PATIENCE.1.saturating_mul(self.gap_ns)).max(1);
        let silent_ns = now_ns.saturating_sub(self.seen_ns).max(patience_ns);
        Some(self.rate_bps? * (patience_ns as f64 / silent_ns as f64))
    }
}

impl SubflowTargets {
    /// Target weights of a flow that has not started. Shares of subflows are averages over `share_ns`.
    pub fn new(flow: &FlowInfo, bounds: Bounds, share_ns: Ns) -> Self {
        let wishes = Self::within(flow, |path| {
            let most_bps = bounds.most * path.line_rate_bps;
            [bounds.least * path.line_rate_bps, most_bps, most_bps]
        });
        SubflowTargets { share_ns, ..wishes }
    }

    /// Target rates of a flow that has not started. The first target is the capacity of the path's slowest link. Later
    /// targets are between `floor` times that capacity and the line rate, since links may get faster. None exceeds the
    /// rate above which the utility is constant. Shares of subflows are averages over `share_ns`.
    pub fn for_rates(flow: &FlowInfo, floor: f64, share_ns: Option<Ns>) -> Self {
        let top_bps = flow.utility.top_bps();
        let wishes = Self::within(flow, |path| {
            [floor * path.min_capacity_bps, path.line_rate_bps, path.min_capacity_bps].map(|bps| bps.min(top_bps))
        });
        SubflowTargets { share_ns: share_ns.unwrap_or(SHARE_RTTS * flow.rtt_ns), ..wishes }
    }

    fn within(flow: &FlowInfo, bounds_bps: impl Fn(&PathInfo) -> [f64; 3]) -> Self {
        let parts = flow.paths.len().max(1) as f64;
        let subflow = |path: &PathInfo| {
            let [least_bps, most_bps, first_bps] = bounds_bps(path);
            PricedSubflow {
                least_bps,
                most_bps,
                rate_bps: None,
                wish_bps: first_bps / parts,
                share: 1.0 / parts,
                seen_ns: 0,
                gap_ns: 0,
            }
        };
        SubflowTargets {
            marginal: Marginal::new(Arc::clone(&flow.utility)),
            urgency: flow.urgency,
            start_ns: 0,
            share_ns: 0,
            rtt_ns: flow.rtt_ns,
            subflows: flow.paths.iter().map(subflow).collect(),
        }
    }

    /// Sets the flow's utility from now on.
    pub fn set_utility(&mut self, utility: &Arc<Utility>) {
        self.marginal = Marginal::new(Arc::clone(utility));
    }

    /// Handles the start of the flow.
    pub fn on_start(&mut self, now_ns: Ns) {
        self.start_ns = now_ns;
    }

    /// Target rate of subflow `k`, bit/s.
    pub fn wish_bps(&self, k: SubflowId) -> f64 {
        self.subflows[k].wish_bps
    }

    /// The flow's marginal utility.
    pub fn marginal(&self) -> &Marginal {
        &self.marginal
    }

    /// The flow's rate, bit/s: the sum of the known rates of its subflows; `None` if none is known.
    pub fn rate_bps(&self, now_ns: Ns) -> Option<f64> {
        match self.subflows.raw() {
            [only] => only.rate_bps,
            _ => self.subflows.iter().filter_map(|s| s.known_bps(now_ns, self.rtt_ns)).reduce(|a, b| a + b),
        }
    }

    /// Updates the target of subflow `k` after feedback: `path_price` is the price of its path.
    pub fn on_feedback(&mut self, k: SubflowId, path_price: f64, feedback: &Feedback) {
        self.hurry(feedback);
        let since_ns = feedback.now_ns - self.subflows[k].seen_ns;
        self.subflows[k].see(feedback.now_ns, feedback.rate_bps);
        let share = self.average_share(k, feedback.now_ns, since_ns);
        let s = &mut self.subflows[k];
        s.wish_bps = xwi::weight(&self.marginal, path_price, share, s.most_bps).max(s.least_bps);
    }

    /// Average share of subflow `k`, whose previous feedback came `since_ns` ago.
    fn average_share(&mut self, k: SubflowId, now_ns: Ns, since_ns: Ns) -> f64 {
        let (share, constant_ns) = (self.share(k, now_ns), self.share_ns);
        let s = &mut self.subflows[k];
        let gain = if constant_ns == 0 { 1.0 } else { since_ns as f64 / constant_ns as f64 };
        s.share += gain.min(1.0) * (share - s.share);
        s.share
    }

    /// Subflow `k`'s share of the flow's rate.
    fn share(&self, k: SubflowId, now_ns: Ns) -> f64 {
        if let [_] = self.subflows.raw() {
            return 1.0;
        }
        match (self.subflows[k].rate_bps, self.rate_bps(now_ns)) {
            (Some(own), Some(all)) if all > 0.0 => own / all,
            _ => 1.0 / self.subflows.len() as f64,
        }
    }

    fn hurry(&mut self, feedback: &Feedback) {
        if self.urgency != Urgency::Constant {
            let age_ns = feedback.now_ns - self.start_ns;
            self.marginal.set_urgency(self.urgency.factor(feedback.remaining_bytes, age_ns));
        }
    }
}
