//! Linear utilities (alpha = 0, the throughput optimum) as a linear program for Clarabel, whose interior solution is
//! then moved to the nearest face.

use crate::answer::{Answer, Status};
use crate::certificate::{certify_maximum, narrowest, narrowest_link};
use crate::conic::{Program, Solution};
use crate::options::SolveOptions;
use crate::utility::Utility;
use subak_core::{Case, IdVec, LinkId};

struct Model<'a> {
    case: &'a Case,
    /// Utility per unit of rate of each flow, scaled to at most 1.
    gain: Vec<f64>,
    /// Unit of rates, bit/s.
    unit_bps: f64,
    linear: Program,
    /// Index of each link's row.
    link_row: IdVec<LinkId, Option<usize>>,
    /// Index of the variable of each path's rate.
    rate: Vec<Option<usize>>,
}

/// Maximizes the sum of `utilities`, all linear. If the interior solution is not certified, the program is solved at
/// a vertex.
pub(crate) fn solve(case: &Case, utilities: &[Utility], options: &SolveOptions) -> Answer {
    // The marginal utility of a linear utility is constant: its gain.
    let ln_gain_unit = utilities.iter().map(|u| u.ln_marginal(1.0)).fold(f64::NEG_INFINITY, f64::max);
    let mut model = Model::new(case, utilities, ln_gain_unit);
    model.add_rates();
    let price_unit = if utilities.is_empty() { 0.0 } else { libm::exp(ln_gain_unit) };
    let found = model.linear.solve((options.tolerance * 1e-2).max(1e-12));
    let mut answer = model.answer(&found, price_unit, "clarabel");
    drop_unpaid(case, utilities, &mut answer);
    cover(case, utilities, &mut answer);
    repair(case, &mut answer);
    if certify_maximum(case, utilities, &answer).worst() > options.tolerance {
        let found = model.linear.solve_exactly();
        if found.solved {
            answer = model.answer(&found, price_unit, "simplex");
            cover(case, utilities, &mut answer);
            repair(case, &mut answer);
        }
    }
    answer
}

impl<'a> Model<'a> {
    fn new(case: &'a Case, utilities: &[Utility], ln_gain_unit: f64) -> Self {
        Model {
            case,
            gain: utilities.iter().map(|u| libm::exp(u.ln_marginal(1.0) - ln_gain_unit)).collect(),
            unit_bps: (0..case.flows.len())
                .map(|f| narrowest(case, f).min(case.flows.demand_bps()[f]))
                .fold(f64::MIN_POSITIVE, f64::max),
            linear: Program::default(),
            link_row: IdVec::filled(None, case.network.links().len()),
            rate: vec![None; case.flows.path_count()],
        }
    }

    /// Adds the rates of the paths: not negative, within the links' capacities and the flows' demands.
    fn add_rates(&mut self) {
        let flows = &self.case.flows;
        let mut crossing = IdVec::<LinkId, _>::filled(Vec::new(), self.link_row.len());
        for f in 0..flows.len() {
            let demand = flows.demand_bps()[f] / self.unit_bps;
            if demand == 0.0 {
                continue;
            }
            for p in flows.paths_of(f) {
                let rate = self.linear.variable(-self.gain[f]);
                self.rate[p] = Some(rate);
                let room = narrowest_link(self.case, p) / self.unit_bps;
                self.linear.at_most(vec![(rate, -1.0)], 0.0, room.min(demand));
                flows.links_of(p).iter().for_each(|&l| crossing[l].push((rate, 1.0)));
            }
            if demand.is_finite() {
                self.linear.at_most(self.total(f), demand, demand);
            }
        }
        for ((row, link), place) in crossing.into_iter().zip(self.case.network.links()).zip(&mut self.link_row) {
            if !row.is_empty() {
                let capacity = link.capacity_bps / self.unit_bps;
                *place = Some(self.linear.at_most(row, capacity, capacity));
            }
        }
    }

    fn answer(&self, found: &Solution, price_unit: f64, solver: &'static str) -> Answer {
        let price = |row: &Option<usize>| row.map_or(0.0, |r| (found.dual[r] * price_unit).max(0.0));
        let rate = |rate: &Option<usize>| rate.map_or(0.0, |v| found.x[v].max(0.0)) * self.unit_bps;
        Answer {
            status: if found.solved { Status::Optimal } else { Status::Stalled },
            path_rates_bps: self.rate.iter().map(rate).collect(),
            link_price: self.link_row.iter().map(price).collect(),
            iterations: found.iterations,
            ..Answer::empty(solver)
        }
    }

    /// Total rate of flow `f` as terms of a row: variables of its paths, each with factor 1.
    fn total(&self, f: usize) -> Vec<(usize, f64)> {
        self.case.flows.paths_of(f).filter_map(|p| Some((self.rate[p]?, 1.0))).collect()
    }
}

/// Removes inaccuracies of an interior-point solution: small prices of links with idle capacity, and small rates of
/// flows whose price exceeds their marginal utility.
fn drop_unpaid(case: &Case, utilities: &[Utility], answer: &mut Answer) {
    let mut load = IdVec::filled(0.0, case.network.links().len());
    for (p, rate) in answer.path_rates_bps.iter().enumerate() {
        case.flows.links_of(p).iter().for_each(|&l| load[l] += rate);
    }
    let most = utilities.iter().map(|u| u.marginal(1.0)).fold(0.0, f64::max);
    for (price, (load, link)) in answer.link_price.iter_mut().zip(load.iter().zip(case.network.links())) {
        if *price / most < 1.0 - load / link.capacity_bps {
            *price = 0.0;
        }
    }
    for (f, utility) in utilities.iter().enumerate() {
        let worth = utility.marginal(1.0);
        for p in case.flows.paths_of(f) {
            let links = case.flows.links_of(p);
            let price: f64 = links.iter().map(|&l| answer.link_price[l]).sum();
            if answer.path_rates_bps[p] / narrowest_link(case, p) < price / worth - 1.0 {
                answer.path_rates_bps[p] = 0.0;
            }
        }
    }
}

/// Raises prices so that no flow below its demand has a price below its marginal utility.
fn cover(case: &Case, utilities: &[Utility], answer: &mut Answer) {
    let mut lack: f64 = 1.0;
    let total = |f: usize| answer.path_rates_bps[case.flows.paths_of(f)].iter().sum::<f64>();
    for f in (0..case.flows.len()).filter(|&f| total(f) < case.flows.demand_bps()[f] * (1.0 - 1e-9)) {
        let price = |p: usize| case.flows.links_of(p).iter().map(|&l| answer.link_price[l]).sum::<f64>();
        let lowest = case.flows.paths_of(f).map(price).fold(f64::INFINITY, f64::min);
        lack = lack.max(utilities[f].marginal(1.0) / lowest * (1.0 + 4.0 * f64::EPSILON));
    }
    if lack.is_finite() {
        answer.link_price.iter_mut().for_each(|p| *p *= lack);
    }
}

/// Divides each path's rate by the largest load ratio on the path (Flowtune's F-NORM) and by the ratio of its flow's
/// rate to the demand, where these exceed 1. Then sums the rates of each flow's paths.
pub(crate) fn repair(case: &Case, answer: &mut Answer) {
    let mut load = IdVec::filled(0.0, case.network.links().len());
    for (p, rate) in answer.path_rates_bps.iter().enumerate() {
        case.flows.links_of(p).iter().for_each(|&l| load[l] += rate);
    }
    answer.rates_bps = vec![0.0; case.flows.len()];
    for f in 0..case.flows.len() {
        let sum: f64 = answer.path_rates_bps[case.flows.paths_of(f)].iter().sum();
        let demand = case.flows.demand_bps()[f];
        let above = if sum > demand { sum / demand } else { 1.0 };
        for p in case.flows.paths_of(f) {
            let over = |&l: &LinkId| load[l] / case.network.links()[l].capacity_bps;
            answer.path_rates_bps[p] /= case.flows.links_of(p).iter().map(over).fold(above, f64::max);
            answer.rates_bps[f] += answer.path_rates_bps[p];
        }
    }
}
