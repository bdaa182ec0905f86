//! A solver's answer, and its JSON form.

use serde_json::{Value, json};
use subak_core::{Case, IdVec, Link, LinkId, Offsets, Stranded};

/// The status of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Certified to the tolerance.
    Optimal,
    /// Solved, but the certificate exceeds the tolerance.
    Inaccurate,
    /// Stopped at the largest number of iterations; the certificate shows the accuracy.
    IterationLimit,
    /// Stopped because floating-point arithmetic allows no further progress; the certificate shows the accuracy.
    Stalled,
}

impl Status {
    /// Name of the status in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Optimal => "optimal",
            Status::Inaccurate => "inaccurate",
            Status::IterationLimit => "iteration-limit",
            Status::Stalled => "stalled",
        }
    }
}

/// Lists of links in compressed rows (CSR).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkRows {
    offsets: Offsets,
    links: Vec<LinkId>,
}

impl LinkRows {
    /// `rows` rows without links.
    pub(crate) fn of_nothing(rows: usize) -> Self {
        let mut all = LinkRows::default();
        (0..rows).for_each(|_| all.push([]));
        all
    }

    /// Rows of `links`; row `i` ends at `offsets[i + 1]`.
    pub(crate) fn of(offsets: Offsets, links: Vec<LinkId>) -> Self {
        LinkRows { offsets, links }
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[LinkId] {
        &self.links[self.offsets.row(i)]
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = LinkId>) {
        self.links.extend(row);
        self.offsets.push(self.links.len());
    }
}

/// Optimality certificate, computed from the answer and the case alone. All numbers are relative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Certificate {
    /// Largest relative overload of a link, or excess of a flow over its demand.
    pub infeasibility: f64,
    /// Utility policies: (dual objective - primal objective) / sum of x U'(x), with x a flow's rate and U' its marginal
    /// utility. Max-min: largest idle fraction of a flow's bottleneck.
    pub gap: f64,
    /// Largest relative increase of a flow's rate that an optimum could have. Utility policies: a flow's part of the
    /// gap, relative to its rate times its marginal utility.
    pub flow_gap: f64,
    /// Utility policies: largest |ln(marginal utility / path price)| of a flow, except for flows at their demand or
    /// over paths without a price. Max-min: largest shortfall of a flow's rate/weight below the highest at its
    /// bottleneck.
    pub stationarity: f64,
}

impl Certificate {
    /// Largest of the numbers that decide optimality: all except `flow_gap`.
    pub fn worst(&self) -> f64 {
        self.infeasibility.max(self.gap).max(self.stationarity)
    }
}

/// Dual solution at a water level of multipath (pooled) max-min: link prices which prove that no flow can exceed the
/// level. At these prices, capacity times price summed over the links equals the payments (rate times path price) of
/// the flows at and below the level.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelDual {
    /// Water level: rate per weight, or the fair share.
    pub level: f64,
    /// Links with a price.
    pub prices: Vec<(LinkId, f64)>,
}

impl LevelDual {
    /// Whether all numbers are finite and not negative, and all links exist in the network.
    pub(crate) fn is_sound(&self, case: &Case) -> bool {
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        sound(self.level) && self.prices.iter().all(|&(l, p)| sound(p) && case.network.links().get(l).is_some())
    }

    /// Price of each path of the case: the sum over its links.
    pub(crate) fn prices_of_paths(&self, case: &Case) -> Vec<f64> {
        let mut price = IdVec::filled(0.0, case.network.links().len());
        self.prices.iter().for_each(|&(l, p)| price[l] = p);
        (0..case.flows.path_count()).map(|p| case.flows.links_of(p).iter().map(|&l| price[l]).sum()).collect()
    }

    /// Price of each flow's cheapest path; `paths` has the price of every path.
    pub(crate) fn prices_of(case: &Case, paths: &[f64]) -> Vec<f64> {
        let cheapest = |f: usize| paths[case.flows.paths_of(f)].iter().copied().fold(f64::INFINITY, f64::min);
        (0..case.flows.len()).map(cheapest).collect()
    }
}

/// The solution of a case. Flows, paths and links are in the case's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: Status,
    /// Rate of each flow over all its paths, bit/s.
    pub rates_bps: Vec<f64>,
    /// Rate of each path, bit/s.
    pub path_rates_bps: Vec<f64>,
    /// Bottlenecks of each flow; empty for a flow at its demand.
    pub bottlenecks: LinkRows,
    /// Load of each link, bit/s.
    pub link_load_bps: IdVec<LinkId, f64>,
    /// Price of each link: increase of the objective per bit/s of capacity. For max-min, increase of the water level
    /// of the link's bottlenecked flows.
    pub link_price: IdVec<LinkId, f64>,
    /// Logarithm of the price unit, in utility per bit/s: 0 unless prices in that unit exceed the range of doubles.
    pub ln_price_unit: f64,
    /// Dual solution of each water level, for multipath (pooled) max-min.
    pub levels: Vec<LevelDual>,
    /// Optimality certificate.
    pub certificate: Certificate,
    /// Name of the method.
    pub solver: &'static str,
    /// Number of iterations; their cost depends on the method.
    pub iterations: u64,
    /// Wall time of the solve, certificate included, s.
    pub seconds: f64,
}

/// A link of an answer.
#[derive(Debug, Clone, Copy)]
pub struct LinkRow<'a> {
    /// The link.
    pub link: &'a Link,
    /// Load, bit/s.
    pub load_bps: f64,
    /// Price; `None` for a link of capacity 0.
    pub price: Option<f64>,
}

impl LinkRow<'_> {
    /// Load over capacity; 0 for a link of capacity 0.
    pub fn utilization(&self) -> f64 {
        if self.link.capacity_bps > 0.0 { self.load_bps / self.link.capacity_bps } else { 0.0 }
    }
}

impl Answer {
    /// The links in the case's order, then those of capacity 0.
    pub fn links<'a>(&self, case: &'a Case) -> Vec<LinkRow<'a>> {
        let links = case.network.links().iter_enumerated();
        let row = |(l, link)| LinkRow { link, load_bps: self.link_load_bps[l], price: Some(self.link_price[l]) };
        links.map(row).chain(case.network.down().map(|link| LinkRow { link, load_bps: 0.0, price: None })).collect()
    }

    /// The answer as `subak solve --json` prints it.
    pub fn to_json(&self, case: &Case) -> Value {
        let link_id = |&l: &LinkId| case.network.links()[l].id.as_str();
        let flow = |f: usize| {
            json!({
                "status": null,
                "id": case.flows.id(f),
                "rate": self.rates_bps[f],
                "paths": &self.path_rates_bps[case.flows.paths_of(f)],
                "links": case.flows.paths_of(f).map(|p| case.flows.links_of(p).iter().map(link_id).collect::<Vec<_>>()).collect::<Vec<_>>(),
                "bottlenecks": self.bottlenecks.row(f).iter().map(link_id).collect::<Vec<_>>(),
            })
        };
        let stranded = |flow: &Stranded| {
            let none: [f64; 0] = [];
            json!({"status": flow.why.name(), "id": flow.id, "rate": 0.0, "paths": none, "links": none, "bottlenecks": none})
        };
        let flows = case.flows.in_order().map(|given| given.map_or_else(stranded, flow));
        let link = |row: LinkRow| json!({"id": row.link.id, "load": row.load_bps, "utilization": row.utilization(), "price": row.price});
        json!({
            "schema": 1,
            "status": self.status.name(),
            "flows": flows.collect::<Vec<_>>(),
            "warnings": case.notes(),
            "links": self.links(case).into_iter().map(link).collect::<Vec<_>>(),
            "certificate": {
                "infeasibility": self.certificate.infeasibility,
                "gap": self.certificate.gap,
                "flow_gap": self.certificate.flow_gap,
                "stationarity": self.certificate.stationarity,
            },
            "ln_price_unit": self.ln_price_unit,
            "solver": self.solver,
            "iterations": self.iterations,
            "seconds": self.seconds,
        })
    }
}
