//! How good an answer is, from the answer and the case alone: nothing of a solver is used here.

use crate::answer::{Answer, Certificate, Rows};
use crate::utility::Utility;
use subak_core::{Case, LinkId, Policy};

/// A link with less than this share of its capacity idle is full when bottlenecks are named.
const FULL: f64 = 1e-7;

/// Certifies `answer` for `case`. Numbers that are not finite, or lists of the wrong length, give infinities.
pub fn certify(case: &Case, answer: &Answer) -> Certificate {
    certify_by(case, answer, |loads| match case.policy {
        Policy::MaxMin | Policy::BandwidthFunction => max_min(case, answer, loads),
        _ => maximum(case, answer, loads, |f| Utility::of(case, f).ok()),
    })
}

/// Certifies `answer` as the maximum of the sum of `utilities`, one a flow, whatever the case's policy.
pub fn certify_maximum(case: &Case, utilities: &[Utility], answer: &Answer) -> Certificate {
    certify_by(case, answer, |loads| maximum(case, answer, loads, |f| utilities.get(f).cloned()))
}

fn certify_by(case: &Case, answer: &Answer, optimality: impl FnOnce(&Loads) -> (f64, f64)) -> Certificate {
    let hopeless = Certificate { infeasibility: f64::INFINITY, gap: f64::INFINITY, stationarity: f64::INFINITY };
    let shaped = answer.rates_bps.len() == case.flows.len()
        && answer.path_rates_bps.len() == case.flows.path_count()
        && answer.link_price.len() == case.network.links().len();
    let rates = || answer.rates_bps.iter().chain(&answer.path_rates_bps).chain(&answer.link_price);
    if !shaped || rates().any(|x| !x.is_finite() || *x < 0.0) {
        return hopeless;
    }
    let loads = Loads::of(case, answer);
    let (gap, stationarity) = optimality(&loads);
    Certificate { infeasibility: infeasibility(case, answer, &loads), gap, stationarity }
}

/// Loads and the largest rate per weight on each link.
struct Loads {
    load: Vec<f64>,
    level: Vec<f64>,
}

impl Loads {
    fn of(case: &Case, answer: &Answer) -> Self {
        let links = case.network.links().len();
        let mut loads = Loads { load: vec![0.0; links], level: vec![0.0; links] };
        for (f, rate) in answer.rates_bps.iter().enumerate() {
            let level = rate / case.flows.weight()[f];
            for p in case.flows.paths_of(f) {
                for &l in case.flows.links_of(p) {
                    loads.load[l as usize] += answer.path_rates_bps[p];
                    loads.level[l as usize] = loads.level[l as usize].max(level);
                }
            }
        }
        loads
    }

    fn idle(&self, case: &Case, l: LinkId) -> f64 {
        (1.0 - self.load[l as usize] / case.network.links()[l as usize].capacity_bps).max(0.0)
    }
}

/// Overloads of links, rates above demands, and rates that are not the sum of their paths'.
fn infeasibility(case: &Case, answer: &Answer, loads: &Loads) -> f64 {
    let mut worst: f64 = 0.0;
    for (link, load) in case.network.links().iter().zip(&loads.load) {
        worst = worst.max(load / link.capacity_bps - 1.0);
    }
    for (f, &rate) in answer.rates_bps.iter().enumerate() {
        let demand = case.flows.demand_bps()[f];
        if rate > demand {
            worst = worst.max(rate / demand - 1.0);
        }
        let sum: f64 = answer.path_rates_bps[case.flows.paths_of(f)].iter().sum();
        if sum != rate {
            worst = worst.max((sum - rate).abs() / rate.max(sum));
        }
    }
    worst
}

/// The bottleneck condition: each flow below its demand crosses a full link on which no flow has more per weight.
/// Returns the worst idle share and the worst shortfall over each flow's best link.
fn max_min(case: &Case, answer: &Answer, loads: &Loads) -> (f64, f64) {
    let (mut gap, mut stationarity): (f64, f64) = (0.0, 0.0);
    for (f, &rate) in answer.rates_bps.iter().enumerate() {
        if rate >= case.flows.demand_bps()[f] * (1.0 - 1e-12) {
            continue;
        }
        let level = rate / case.flows.weight()[f];
        let of = |&l: &LinkId| {
            let largest = loads.level[l as usize];
            (loads.idle(case, l), if largest > 0.0 { 1.0 - level / largest } else { 0.0 })
        };
        let worse = |a: &(f64, f64)| a.0.max(a.1);
        let links = case.flows.paths_of(f).flat_map(|p| case.flows.links_of(p));
        if let Some((idle, shortfall)) = links.map(of).min_by(|a, b| worse(a).total_cmp(&worse(b))) {
            gap = gap.max(idle);
            stationarity = stationarity.max(shortfall);
        }
    }
    (gap, stationarity)
}

/// Duality gap over 1 + |primal|, and stationarity. The gap is summed from its three parts, none of them negative:
/// prices times idle capacity, what each flow loses against its best rate at its price, and paths dearer than the best.
fn maximum(case: &Case, answer: &Answer, loads: &Loads, utility: impl Fn(usize) -> Option<Utility>) -> (f64, f64) {
    let (mut primal, mut gap, mut stationarity): (f64, f64, f64) = (0.0, 0.0, 0.0);
    for (l, (price, link)) in answer.link_price.iter().zip(case.network.links()).enumerate() {
        gap += price * (link.capacity_bps - loads.load[l]).max(0.0);
    }
    for (f, &rate) in answer.rates_bps.iter().enumerate() {
        let Some(utility) = utility(f) else { return (f64::INFINITY, f64::INFINITY) };
        let most = case.flows.demand_bps()[f].min(utility.top_bps());
        if most == 0.0 {
            continue;
        }
        let price_of = |p| case.flows.links_of(p).iter().map(|&l| answer.link_price[l as usize]).sum::<f64>();
        let price = case.flows.paths_of(f).map(price_of).fold(f64::INFINITY, f64::min);
        gap += case.flows.paths_of(f).map(|p| (price_of(p) - price) * answer.path_rates_bps[p]).sum::<f64>();
        let value = utility.value(rate);
        primal += value;
        let best = utility.rate_at(price).min(most);
        gap += match best.is_finite() {
            true => (utility.value(best) - value - price * (best - rate)).max(0.0),
            false => f64::INFINITY,
        };
        if rate > 0.0 && rate < most * (1.0 - 1e-9) && price > 0.0 {
            stationarity = stationarity.max(utility.miss(rate, price));
        }
    }
    let gap = gap / (1.0 + primal.abs());
    (if gap.is_nan() { f64::INFINITY } else { gap }, stationarity)
}

/// The links that hold each flow back: full, and no flow on them has more per weight.
pub(crate) fn bottlenecks(case: &Case, answer: &Answer) -> Rows {
    let loads = Loads::of(case, answer);
    let mut rows = Rows::default();
    for (f, &rate) in answer.rates_bps.iter().enumerate() {
        let level = rate / case.flows.weight()[f];
        let below_demand = rate < case.flows.demand_bps()[f] * (1.0 - 1e-12);
        let holds = |l: &LinkId| loads.idle(case, *l) < FULL && level >= loads.level[*l as usize] * (1.0 - FULL);
        let links = case.flows.paths_of(f).flat_map(|p| case.flows.links_of(p)).copied();
        rows.push(links.filter(|l| below_demand && holds(l)));
    }
    rows
}
