//! Utility functions of the policies: U', its inverse and U'' (NUMFabric, section 2, table 1 and equation 2).
//!
//! Every utility of a policy has the form U'(x) = F(x)^-alpha. F is the inverse of a non-decreasing function B, where B(f)
//! is the flow's rate at the *level* (fair share) f. For alpha-fair utilities B(f) = w f, so that U'(x) =
//! (w/x)^alpha. For flow completion times w^alpha = 1/size. For bandwidth functions B is the function itself.
//! Optimizers exchange levels: a price is a level to the power -alpha, and has a much larger range. The gain w^alpha
//! is stored as its logarithm, so that no weight between 1e-6 and 1e6 and no rate between 1 kb/s and 1.6 Tb/s over-
//! or underflows.

use crate::curve::Curve;
use crate::flows::{Extra, FlowUtility};
use crate::{InputError, Ns, Policy};
use std::sync::Arc;

/// The utility of one flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Utility {
    /// Alpha-fair: U'(x) = exp(ln_gain) x^-alpha with ln_gain = alpha ln w; linear for alpha = 0.
    Power {
        /// Fairness parameter, zero or more.
        alpha: f64,
        /// Logarithm of the marginal utility at 1 bit/s.
        ln_gain: f64,
    },
    /// U'(x) = F(x)^-alpha, F the inverse of a bandwidth function (NUMFabric, equation 2).
    BandwidthFunction {
        /// Exponent, positive; at about 5 the optimum is close to max-min in the fair share.
        alpha: f64,
        /// The bandwidth function B.
        function: BandwidthFunction,
    },
    /// A utility of the user's own: U'(x) = exp(ln_gain) times a curve through points.
    Curve {
        /// Logarithm of the flow's weight, which multiplies U'.
        ln_gain: f64,
        /// U' of a flow of weight 1.
        curve: Arc<Curve>,
    },
}

impl Utility {
    /// The utility of a flow under `policy`; max-min has none and is an error. A weight multiplies the
    /// utility of `fct`, `srpt` and `edf`. Places of errors are relative to the flow, except for errors of the policy.
    pub fn under(policy: Policy, weight: f64, extra: &Extra) -> Result<Self, InputError> {
        let ln_weight = libm::log(weight);
        let needs = |field: &str| {
            InputError::new(field, format!("the policy needs the flow's {field}"), format!("give a positive {field}"))
        };
        let by = |urgency: Option<f64>, field: &str, epsilon: f64| {
            let value = urgency.filter(|v| v.is_finite() && *v > 0.0).ok_or_else(|| needs(field))?;
            Ok(Utility::Power { alpha: epsilon, ln_gain: ln_weight - libm::log(value) })
        };
        let size = extra.size_bytes.map(|s| s as f64);
        match policy {
            Policy::AlphaFair { alpha } => Ok(Utility::Power { alpha, ln_gain: alpha * ln_weight }),
            Policy::Fct { epsilon } | Policy::Srpt { epsilon } => by(size, "size", epsilon),
            Policy::Edf { epsilon } => by(extra.deadline_s, "deadline", epsilon),
            Policy::BandwidthFunction { alpha } => {
                let points = extra.bandwidth_function.as_deref().ok_or_else(|| needs("bandwidth_function"))?;
                let function = BandwidthFunction::new(points)?;
                Ok(Utility::BandwidthFunction { alpha, function })
            }
            Policy::Utility => match &extra.utility {
                Some(FlowUtility::Curve(curve)) => Ok(Utility::Curve { ln_gain: ln_weight, curve: Arc::clone(curve) }),
                Some(FlowUtility::Of(policy)) => Utility::under(*policy, weight, extra),
                None => Err(needs("utility")),
            },
            Policy::MaxMin => Err(InputError::new(
                "policy.kind",
                "max-min is not the optimum of a utility",
                "use alpha-fair with a large alpha, which comes close to it",
            )),
        }
    }

    /// w log x: proportional fairness.
    pub fn log(weight: f64) -> Self {
        Utility::Power { alpha: 1.0, ln_gain: libm::log(weight) }
    }

    /// The weight w in U'(x) = w^alpha x^-alpha for an optimizer with one `alpha` for all flows; `None` for a
    /// bandwidth function or a curve.
    pub fn weight(&self, alpha: f64) -> Option<f64> {
        match self {
            Utility::Power { ln_gain, .. } => Some(libm::exp(ln_gain / alpha)),
            Utility::BandwidthFunction { .. } | Utility::Curve { .. } => None,
        }
    }

    /// Range of the exponent alpha = -d ln U' / d ln x, or that of the level for a bandwidth function.
    pub fn alphas(&self) -> (f64, f64) {
        match self {
            Utility::Power { alpha, .. } | Utility::BandwidthFunction { alpha, .. } => (*alpha, *alpha),
            Utility::Curve { curve, .. } => curve.alphas(),
        }
    }

    /// The exponent alpha where U' is `price`.
    pub fn alpha_of(&self, price: f64) -> f64 {
        match self {
            Utility::Power { alpha, .. } | Utility::BandwidthFunction { alpha, .. } => *alpha,
            Utility::Curve { ln_gain, curve } => curve.alpha_of(libm::log(price) - ln_gain),
        }
    }

    /// ln U'(x); infinite at x = 0 if U' is.
    pub fn ln_marginal(&self, x: f64) -> f64 {
        match self {
            Utility::Power { alpha: 0.0, ln_gain } => *ln_gain,
            Utility::Power { alpha, ln_gain } => ln_gain - alpha * libm::log(x),
            Utility::BandwidthFunction { alpha, function } => -alpha * libm::log(function.fair_share(x)),
            Utility::Curve { ln_gain, curve } => ln_gain + curve.ln_marginal(libm::log(x)),
        }
    }

    /// U'(x).
    pub fn marginal(&self, x: f64) -> f64 {
        libm::exp(self.ln_marginal(x))
    }

    /// |ln(U'(x) / price)|. Where U' jumps at `x`: 0 if the price lies within the jump, otherwise the price's
    /// distance from the jump.
    pub fn miss(&self, x: f64, price: f64) -> f64 {
        let (below, price) = (self.ln_marginal(x), libm::log(price));
        let above = match self {
            Utility::Power { .. } | Utility::Curve { .. } => below,
            Utility::BandwidthFunction { alpha, function } => -alpha * libm::log(function.last_fair_share(x)),
        };
        (price - below).max(above - price).max(0.0)
    }

    /// Rate above which the utility does not grow, bit/s.
    pub fn top_bps(&self) -> f64 {
        match self {
            Utility::BandwidthFunction { function, .. } => function.top_bps(),
            Utility::Power { .. } | Utility::Curve { .. } => f64::INFINITY,
        }
    }

    /// The largest x with U'(x) >= `price`, bit/s: the demand at that price. The rate is infinite at price 0, except
    /// for a bandwidth function.
    pub fn rate_at(&self, price: f64) -> f64 {
        match self {
            Utility::Power { alpha: 0.0, ln_gain } if libm::log(price) > *ln_gain => 0.0,
            Utility::Power { alpha: 0.0, .. } => f64::INFINITY,
            Utility::Power { alpha, ln_gain } => libm::exp((ln_gain - libm::log(price)) / alpha),
            Utility::BandwidthFunction { alpha, function } => function.rate(libm::exp(-libm::log(price) / alpha)),
            Utility::Curve { ln_gain, curve } => libm::exp(curve.ln_rate(libm::log(price) - ln_gain)),
        }
    }

    /// U''(x), negative; where U' jumps, its limit from the left.
    pub fn curvature(&self, x: f64) -> f64 {
        match self {
            Utility::Power { alpha, .. } => -alpha * self.marginal(x) / x,
            Utility::BandwidthFunction { alpha, function } => {
                let share = function.fair_share(x);
                -alpha * self.marginal(x) / share / function.slope_below(share)
            }
            Utility::Curve { curve, .. } => -curve.alpha_at(libm::log(x)) * self.marginal(x) / x,
        }
    }

    /// U(to) - U(from), without cancellation.
    pub fn gain(&self, from: f64, to: f64) -> f64 {
        match self {
            Utility::Power { alpha, .. } if from > 0.0 && to > 0.0 => {
                let ln_ratio = libm::log(to / from);
                let over_worth = match 1.0 - alpha {
                    0.0 => ln_ratio,
                    rest => libm::expm1(rest * ln_ratio) / rest,
                };
                from * self.marginal(from) * over_worth
            }
            Utility::Curve { ln_gain, curve } => libm::exp(*ln_gain) * curve.integral(from, to),
            _ => self.value(to) - self.value(from),
        }
    }

    /// U(x), up to an additive constant per flow.
    pub fn value(&self, x: f64) -> f64 {
        match self {
            Utility::Power { alpha: 1.0, ln_gain } => libm::exp(*ln_gain) * libm::log(x),
            Utility::Power { alpha, ln_gain } => libm::exp(ln_gain + (1.0 - alpha) * libm::log(x)) / (1.0 - alpha),
            Utility::BandwidthFunction { alpha, function } => function.integral(x, *alpha),
            Utility::Curve { ln_gain, curve } => libm::exp(*ln_gain) * curve.integral(curve.first_bps(), x),
        }
    }
}

/// Urgency of a running flow: a factor on its utility that grows over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Factor 1 at all times.
    #[default]
    Constant,
    /// Size over remaining bytes (`srpt`).
    Remaining {
        /// Size of the flow, bytes.
        size_bytes: u64,
    },
    /// Deadline over the time left to it (`edf`).
    Deadline {
        /// Deadline from the flow's start, ns.
        after_ns: Ns,
    },
}

/// Largest urgency factor, reached when a thousandth of the size or of the time to the deadline is left.
const MOST_URGENT: f64 = 1000.0;

impl Urgency {
    /// The urgency of a flow under `policy`.
    pub fn under(policy: Policy, extra: &Extra) -> Self {
        match (extra.policy(policy), extra.size_bytes, extra.deadline_s) {
            (Policy::Srpt { .. }, Some(size_bytes), _) => Urgency::Remaining { size_bytes },
            (Policy::Edf { .. }, _, Some(deadline_s)) => Urgency::Deadline { after_ns: (deadline_s * 1e9) as Ns },
            _ => Urgency::Constant,
        }
    }

    /// The factor `age_ns` after the start with `remaining_bytes` left: 1 to 1000.
    pub fn factor(self, remaining_bytes: u64, age_ns: Ns) -> f64 {
        let left = match self {
            Urgency::Constant => return 1.0,
            Urgency::Remaining { size_bytes } => remaining_bytes as f64 / size_bytes.max(1) as f64,
            Urgency::Deadline { after_ns } => 1.0 - age_ns as f64 / after_ns.max(1) as f64,
        };
        1.0 / left.clamp(1.0 / MOST_URGENT, 1.0)
    }
}

/// A bandwidth function B: rate over fair share, piecewise linear from (0, 0), non-decreasing, constant after the
/// last point.
#[derive(Debug, Clone, PartialEq)]
pub struct BandwidthFunction {
    /// Points (fair share, bit/s) with increasing shares.
    points: Vec<(f64, f64)>,
}

impl BandwidthFunction {
    /// The function through `points`. Places of errors are relative to the flow.
    pub fn new(points: &[(f64, f64)]) -> Result<Self, InputError> {
        let fault = |k: usize, what: &str, hint: &str| {
            Err(InputError::new(format!("bandwidth_function[{k}]"), what.to_string(), hint.to_string()))
        };
        if points.len() < 2 {
            return fault(0, "the bandwidth function has fewer than two points", "start at [0, 0] and add points");
        }
        if points[0] != (0.0, 0.0) {
            return fault(0, "the bandwidth function does not start at [0, 0]", "make [0, 0] its first point");
        }
        for (k, (a, b)) in points.iter().zip(&points[1..]).enumerate() {
            if !(b.0.is_finite() && b.1.is_finite()) {
                return fault(k + 1, "the point is not finite", "give finite numbers");
            }
            if b.0 <= a.0 {
                return fault(k + 1, "the fair share does not increase", "give the points in the order of fair share");
            }
            if b.1 < a.1 {
                return fault(
                    k + 1,
                    "the bandwidth function decreases",
                    "let the rate stay or rise with the fair share",
                );
            }
        }
        if points[points.len() - 1].1 == 0.0 {
            return fault(points.len() - 1, "the bandwidth function is zero everywhere", "let it rise above zero");
        }
        Ok(BandwidthFunction { points: points.to_vec() })
    }

    /// Points (fair share, bit/s) of the function.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Largest rate, bit/s.
    pub fn top_bps(&self) -> f64 {
        self.points[self.points.len() - 1].1
    }

    /// B(share), bit/s.
    pub fn rate(&self, share: f64) -> f64 {
        let k = self.points.partition_point(|p| p.0 <= share);
        if k == self.points.len() {
            return self.top_bps();
        }
        let (a, b) = (self.points[k - 1], self.points[k]);
        a.1 + (b.1 - a.1) * ((share - a.0) / (b.0 - a.0))
    }

    /// B'(share), limit from the right.
    pub fn slope(&self, share: f64) -> f64 {
        self.slope_of(self.points.partition_point(|p| p.0 <= share))
    }

    /// B'(share), limit from the left.
    pub fn slope_below(&self, share: f64) -> f64 {
        self.slope_of(self.points.partition_point(|p| p.0 < share).max(1))
    }

    fn slope_of(&self, k: usize) -> f64 {
        match (self.points.get(k - 1), self.points.get(k)) {
            (Some(a), Some(b)) => (b.1 - a.1) / (b.0 - a.0),
            _ => 0.0,
        }
    }

    /// F(rate): the smallest fair share with B(share) >= rate. Infinite above the largest rate; at rate 0 the largest
    /// share with B = 0.
    pub fn fair_share(&self, rate: f64) -> f64 {
        if rate <= 0.0 {
            let k = self.points.partition_point(|p| p.1 <= 0.0);
            return self.points[k - 1].0;
        }
        let k = self.points.partition_point(|p| p.1 < rate);
        if k == self.points.len() {
            return f64::INFINITY;
        }
        let (a, b) = (self.points[k - 1], self.points[k]);
        a.0 + (b.0 - a.0) * ((rate - a.1) / (b.1 - a.1))
    }

    /// The largest fair share with B(share) <= rate; infinite from the largest rate on.
    pub fn last_fair_share(&self, rate: f64) -> f64 {
        let k = self.points.partition_point(|p| p.1 <= rate);
        if k == self.points.len() {
            return f64::INFINITY;
        }
        let (a, b) = (self.points[k - 1], self.points[k]);
        a.0 + (b.0 - a.0) * ((rate - a.1) / (b.1 - a.1))
    }

    /// Integral of F^-alpha from 0 to `rate`. For a piece that starts at share 0 with alpha >= 1 the integral
    /// diverges; the integral then starts at the piece's end, which shifts the utility by a constant.
    fn integral(&self, rate: f64, alpha: f64) -> f64 {
        // On a piece of slope m, dx = m df: the integrand is m f^-alpha.
        let antiderivative = |f: f64| match alpha {
            1.0 => libm::log(f),
            _ => libm::pow(f, 1.0 - alpha) / (1.0 - alpha),
        };
        let mut sum = 0.0;
        for (a, b) in self.points.iter().zip(&self.points[1..]) {
            let slope = (b.1 - a.1) / (b.0 - a.0);
            let end = if rate < b.1 { a.0 + (rate - a.1) / slope } else { b.0 };
            if slope > 0.0 && end >= a.0 {
                let from = if a.0 > 0.0 || alpha < 1.0 { a.0 } else { b.0 };
                sum += slope * (antiderivative(end) - antiderivative(from));
            }
            if rate < b.1 {
                break;
            }
        }
        sum
    }
}
