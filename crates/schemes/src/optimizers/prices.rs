//! The sender's side that all optimizers of one price a link share: a subflow wishes U'^-1 of its path's price
//! (NUMFabric, equations 3 and 7; 16 is the same with R^-alpha for a price), and of a flow with several subflows each
//! wishes its share of the flow's rate of that (section 6.3, "Resource pooling").

use crate::over::Feedback;
use std::sync::Arc;
use subak_core::scheme::{FlowInfo, PathInfo};
use subak_core::utility::Urgency;
use subak_core::{IdVec, Ns, SubflowId, Utility};
use subak_solve::xwi::{self, Marginal};

/// Bounds of a wish for a weight, in line rates.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Least.
    pub least: f64,
    /// Most; also the wish at a price of zero.
    pub most: f64,
}

/// Base RTTs over which a subflow's share of its flow's rate is averaged, where rates are wished. With the share of the last
/// packet alone, a flow moves all its rate to the cheaper path within an RTT, and link prices never settle.
const SHARE_RTTS: u64 = 50;

/// The wishes of a flow's subflows.
#[derive(Debug, Clone)]
pub struct SubflowTargets {
    marginal: Marginal,
    urgency: Urgency,
    start_ns: Ns,
    /// Time constant of the average of shares; 0 for none.
    share_ns: Ns,
    subflows: IdVec<SubflowId, PricedSubflow>,
}

#[derive(Debug, Clone, Copy)]
struct PricedSubflow {
    /// Bounds of its wish; the upper one is also the wish at a price of zero.
    least_bps: f64,
    most_bps: f64,
    rate_bps: Option<f64>,
    wish_bps: f64,
    /// Its average share of the flow's rate, as of `seen_ns`.
    share: f64,
    seen_ns: Ns,
}

impl SubflowTargets {
    /// Wishes for weights, of a flow that has not started.
    pub fn new(flow: &FlowInfo, bounds: Bounds) -> Self {
        Self::within(flow, |path| {
            let most_bps = bounds.most * path.line_rate_bps;
            [bounds.least * path.line_rate_bps, most_bps, most_bps]
        })
    }

    /// Wishes for rates: at first what the slowest link of the path carries, then at least the share `floor` of it and at most
    /// the line rate: links may get faster.
    pub fn for_rates(flow: &FlowInfo, floor: f64) -> Self {
        let wishes =
            Self::within(flow, |path| [floor * path.min_capacity_bps, path.line_rate_bps, path.min_capacity_bps]);
        SubflowTargets { share_ns: SHARE_RTTS * flow.rtt_ns, ..wishes }
    }

    fn within(flow: &FlowInfo, bounds_bps: impl Fn(&PathInfo) -> [f64; 3]) -> Self {
        let parts = flow.paths.len().max(1) as f64;
        let subflow = |path: &PathInfo| {
            let [least_bps, most_bps, first_bps] = bounds_bps(path);
            PricedSubflow { least_bps, most_bps, rate_bps: None, wish_bps: first_bps / parts, share: 1.0 / parts, seen_ns: 0 }
        };
        SubflowTargets {
            marginal: Marginal::new(Arc::clone(&flow.utility)),
            urgency: flow.urgency,
            start_ns: 0,
            share_ns: 0,
            subflows: flow.paths.iter().map(subflow).collect(),
        }
    }

    /// The flow has another utility from now on.
    pub fn set_utility(&mut self, utility: &Arc<Utility>) {
        self.marginal = Marginal::new(Arc::clone(utility));
    }

    /// The flow starts.
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

    /// The flow's rate, if that of any subflow is known.
    pub fn rate_bps(&self) -> Option<f64> {
        match self.subflows.raw() {
            [only] => only.rate_bps,
            _ => self.subflows.iter().filter_map(|s| s.rate_bps).reduce(|a, b| a + b),
        }
    }

    /// Feedback for subflow `k`, whose path has the price `path_price`.
    pub fn on_feedback(&mut self, k: SubflowId, path_price: f64, feedback: &Feedback) {
        self.hurry(feedback);
        self.subflows[k].rate_bps = feedback.rate_bps;
        let share = self.average_share(k, feedback.now_ns);
        let s = &mut self.subflows[k];
        s.wish_bps = xwi::weight(&self.marginal, path_price, share, s.most_bps).max(s.least_bps);
    }

    fn average_share(&mut self, k: SubflowId, now_ns: Ns) -> f64 {
        let (share, constant_ns) = (self.share(k), self.share_ns);
        let s = &mut self.subflows[k];
        let gain = if constant_ns == 0 { 1.0 } else { (now_ns - s.seen_ns) as f64 / constant_ns as f64 };
        s.share += gain.min(1.0) * (share - s.share);
        s.seen_ns = now_ns;
        s.share
    }

    /// Subflow `k`'s share of the flow's rate.
    fn share(&self, k: SubflowId) -> f64 {
        if let [_] = self.subflows.raw() {
            return 1.0;
        }
        match (self.subflows[k].rate_bps, self.rate_bps()) {
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
