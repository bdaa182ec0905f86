//! Explicit weight inference, xWI (NUMFabric, section 4.2, equations 7 to 11): the weights with which a weighted
//! max-min transport gives every flow the rate that maximizes the sum of utilities.
//!
//! The equations are implemented once, here. [`XwiIteration`] runs them over an ideal transport (exact weighted
//! max-min); the packet schemes run them over real transports.
//!
//! Additions to the paper:
//! - a path price of zero gives no finite weight: weights are at most [`MOST`] line rates, a bound that the optimum
//!   never reaches;
//! - a link that gets no residual from a flow uses zero, so that its price decays by the eta term alone;
//! - a flow at its demand sends no residual, for its marginal utility is above the prices at the optimum too.

use crate::max_min::{MaxMin, PathRows};
use crate::utility::Utility;
use std::ops::Deref;
use std::sync::Arc;
use subak_core::{Case, IdVec, InputError, LinkId};

/// The largest weight, in line rates.
pub const MOST: f64 = 1.5;
/// Smallest weight of the ideal transport, in line rates: water-filling requires positive weights.
const LEAST: f64 = 1e-9;

/// Marginal utility of a flow and its inverse, fast enough for every packet.
#[derive(Debug, Clone)]
pub struct Marginal {
    utility: Arc<Utility>,
    /// U'(x) x of a logarithmic utility, which is constant; `None` for other utilities.
    log_gain: Option<f64>,
    urgency: f64,
}

impl Marginal {
    /// The marginal utility of `utility`.
    pub fn new(utility: Arc<Utility>) -> Self {
        let log_gain = match *utility {
            Utility::Power { alpha: 1.0, ln_gain } => Some(libm::exp(ln_gain)),
            _ => None,
        };
        Marginal { utility, log_gain, urgency: 1.0 }
    }

    /// Sets the urgency, a factor on the utility that grows as the remaining bytes shrink.
    pub fn set_urgency(&mut self, urgency: f64) {
        self.urgency = urgency;
    }

    /// Marginal utility U' at `rate_bps`.
    #[inline]
    pub fn at(&self, rate_bps: f64) -> f64 {
        match self.log_gain {
            Some(gain) => self.urgency * gain / rate_bps,
            None => self.urgency * self.utility.marginal(rate_bps),
        }
    }

    /// Exponent alpha of U' where it is `price`: minus the relative change of the price per relative change of the rate.
    #[inline]
    pub fn alpha_of(&self, price: f64) -> f64 {
        self.utility.alpha_of(price / self.urgency)
    }

    /// The rate at which U' is `price`, bit/s; infinite at price 0.
    #[inline]
    pub fn inverse(&self, price: f64) -> f64 {
        match self.log_gain {
            Some(gain) => self.urgency * gain / price,
            None => self.utility.rate_at(price / self.urgency),
        }
    }

    /// Rate above which the utility is constant, bit/s.
    pub fn top_bps(&self) -> f64 {
        self.utility.top_bps()
    }
}

/// Equation 7: the weight, bit/s, of a flow over a path of `path_price`. With several paths: that of the path with
/// the fraction `share` of the flow's rate (section 6.3, "Resource pooling").
#[inline]
pub fn weight(marginal: &Marginal, path_price: f64, share: f64, most_bps: f64) -> f64 {
    if path_price > 0.0 { (marginal.inverse(path_price) * share).min(most_bps) } else { most_bps }
}

/// Normalized residual of equation 9: the price increase of each of the path's `hops` links with which the path price
/// would equal the marginal utility.
#[inline]
pub fn normalized_residual(marginal: &Marginal, rate_bps: f64, path_price: f64, hops: f64) -> f64 {
    (marginal.at(rate_bps) - path_price) / hops
}

/// Price update of a link (equations 9 to 11).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct XwiPriceLaw {
    /// Factor of the idle fraction of the link (equation 10).
    pub eta: f64,
    /// Weight of the old price in the average (equation 11).
    pub beta: f64,
}

impl Default for XwiPriceLaw {
    fn default() -> Self {
        XwiPriceLaw { eta: 5.0, beta: 0.5 }
    }
}

impl XwiPriceLaw {
    /// The next price, given the smallest normalized residual of the link's flows (infinite if none) and the link's
    /// utilization.
    #[inline]
    pub fn next(&self, price: f64, min_residual: f64, utilization: f64) -> f64 {
        let residual = if min_residual < f64::INFINITY { min_residual } else { 0.0 };
        let unused = (1.0 - utilization).max(0.0);
        let new = (price + residual - self.eta * unused * price).max(0.0);
        self.beta * price + (1.0 - self.beta) * new
    }
}

/// Parameters of an [`XwiIteration`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct XwiSettings {
    /// Parameters eta and beta.
    pub law: XwiPriceLaw,
    /// Time constant t0, steps: after t steps the weight of the new price is (1 - beta) / (1 + t / t0). Infinite, as
    /// in the paper, for a constant weight.
    pub diminish_after: f64,
    /// Number of groups of links, of which one updates in each step; 1, as in the paper, for all links in each step.
    pub groups: u32,
}

impl Default for XwiSettings {
    fn default() -> Self {
        XwiSettings { law: XwiPriceLaw::default(), diminish_after: f64::INFINITY, groups: 1 }
    }
}

/// xWI over an ideal transport, step by step. A flow's paths are pooled as in section 6.3: a path's weight is that of
/// the whole flow at the path's price, times the path's fraction of the flow's rate. `C` is a reference to the case.
#[derive(Debug, Clone)]
pub struct XwiIteration<C> {
    case: C,
    settings: XwiSettings,
    marginal: Vec<Marginal>,
    capacity_bps: IdVec<LinkId, f64>,
    /// Capacity of the first link of each path, bit/s.
    line_rate_bps: Vec<f64>,
    demand_bps: Vec<f64>,
    transport: MaxMin,
    price: IdVec<LinkId, f64>,
    min_residual: IdVec<LinkId, f64>,
    load_bps: IdVec<LinkId, f64>,
    weight: Vec<f64>,
    rate_bps: Vec<f64>,
    steps: u64,
}

impl<C: Deref<Target = Case>> XwiIteration<C> {
    /// Starts with prices of 0; `utilities` has one utility function per flow.
    pub fn new(case: C, utilities: Vec<Arc<Utility>>, settings: XwiSettings) -> Result<Self, InputError> {
        let flows = &case.flows;
        if utilities.len() != flows.len() {
            let what = format!("{} utilities for {} flows", utilities.len(), flows.len());
            return Err(InputError::new("utilities", what, "give one a flow"));
        }
        let capacity_bps: IdVec<LinkId, f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
        let line_rate = |p: usize| capacity_bps[flows.links_of(p)[0]];
        let line_rate_bps: Vec<f64> = (0..flows.path_count()).map(line_rate).collect();
        let mut demand_bps = vec![f64::INFINITY; flows.path_count()];
        for (f, utility) in utilities.iter().enumerate() {
            demand_bps[flows.paths_of(f)].fill(flows.demand_bps()[f].min(utility.top_bps()));
        }
        let (links, paths) = (capacity_bps.len(), flows.path_count());
        let mut iteration = XwiIteration {
            case,
            settings,
            marginal: utilities.into_iter().map(Marginal::new).collect(),
            capacity_bps,
            weight: line_rate_bps.iter().map(|r| MOST * r).collect(),
            rate_bps: vec![0.0; paths],
            line_rate_bps,
            demand_bps,
            transport: MaxMin::new(),
            price: IdVec::filled(0.0, links),
            min_residual: IdVec::filled(f64::INFINITY, links),
            load_bps: IdVec::filled(0.0, links),
            steps: 0,
        };
        iteration.allocate();
        Ok(iteration)
    }

    /// Rate of each path, bit/s.
    pub fn path_rates_bps(&self) -> &[f64] {
        &self.rate_bps
    }

    /// Rate of each flow, bit/s.
    pub fn rates_bps(&self) -> Vec<f64> {
        (0..self.case.flows.len()).map(|f| self.rate_of(f)).collect()
    }

    /// Price of each link, in utility per bit/s.
    pub fn prices(&self) -> &IdVec<LinkId, f64> {
        &self.price
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn rate_of(&self, f: usize) -> f64 {
        self.rate_bps[self.case.flows.paths_of(f)].iter().sum()
    }

    fn path_price(&self, p: usize) -> f64 {
        self.case.flows.links_of(p).iter().map(|&l| self.price[l]).sum()
    }

    /// One step: prices from rates, weights from prices, rates from weights.
    pub fn step(&mut self) {
        self.tell();
        let t = self.steps as f64;
        let keep = 1.0 - (1.0 - self.settings.law.beta) / (1.0 + t / self.settings.diminish_after);
        let law = XwiPriceLaw { beta: keep, ..self.settings.law };
        let groups = u64::from(self.settings.groups.max(1));
        for l in self.price.ids().filter(|&l| u64::from(l.0) % groups == self.steps % groups) {
            self.price[l] = law.next(self.price[l], self.min_residual[l], self.load_bps[l] / self.capacity_bps[l]);
        }
        self.weigh();
        self.allocate();
        self.steps += 1;
    }

    /// Sets the smallest residual (equation 9) of each link's flows.
    fn tell(&mut self) {
        let flows = &self.case.flows;
        self.min_residual.fill(f64::INFINITY);
        for f in 0..flows.len() {
            let rate = self.rate_of(f);
            if rate >= self.demand_bps[flows.paths_of(f).start] {
                continue;
            }
            for p in flows.paths_of(f) {
                let links = flows.links_of(p);
                let residual = normalized_residual(&self.marginal[f], rate, self.path_price(p), links.len() as f64);
                for &l in links {
                    let least = &mut self.min_residual[l];
                    *least = least.min(residual);
                }
            }
        }
    }

    fn weigh(&mut self) {
        for f in 0..self.case.flows.len() {
            let rate = self.rate_of(f);
            for p in self.case.flows.paths_of(f) {
                let line_rate = self.line_rate_bps[p];
                let share = if rate > 0.0 { self.rate_bps[p] / rate } else { 1.0 };
                let weight = weight(&self.marginal[f], self.path_price(p), share, MOST * line_rate);
                self.weight[p] = weight.max(LEAST * line_rate);
            }
        }
    }

    /// Equation 8: exact weighted max-min.
    fn allocate(&mut self) {
        let flows = &self.case.flows;
        let rows = PathRows {
            capacity_bps: &self.capacity_bps,
            link_ptr: flows.link_ptr(),
            links: flows.links(),
            weight: &self.weight,
            demand_bps: &self.demand_bps,
            active: None,
        };
        self.transport.solve(&rows, &mut self.rate_bps, &mut []);
        self.load_bps.fill(0.0);
        for (p, rate) in self.rate_bps.iter().enumerate() {
            for &l in flows.links_of(p) {
                self.load_bps[l] += rate;
            }
        }
    }
}
