//! Optimality certificates, from the answer and the case alone: no solver code is used here.

use crate::answer::{Answer, Certificate, LevelDual, LinkRows};
use crate::utility::Utility;
use std::sync::Arc;
use subak_core::{Case, IdVec, LinkId, Offsets, Policy};

/// Idle fraction of a link's capacity below which the link counts as saturated, for the lists of bottlenecks.
const FULL: f64 = 1e-7;

/// Certifies `answer` for `case`. Numbers that are not finite, or lists of wrong length, give an infinite
/// certificate.
pub fn certify(case: &Case, answer: &Answer) -> Certificate {
    certify_as(case, None, answer)
}

/// Certifies `answer` as the maximum of the sum of `utilities`, one per flow, regardless of the case's policy.
pub fn certify_maximum(case: &Case, utilities: &[Utility], answer: &Answer) -> Certificate {
    certify_as(case, Some(utilities), answer)
}

fn certify_as(case: &Case, utilities: Option<&[Utility]>, answer: &Answer) -> Certificate {
    let Some(loads) = Loads::of(case, answer) else { return NOTHING };
    prove(case, answer, utilities, &loads, &bottlenecks(case, answer, &loads, FULL))
}

/// Certificate of `answer`, whose loads and bottlenecks are known: as the maximum of the sum of `utilities` if they are
/// given, otherwise by the case's policy.
pub(crate) fn prove(
    case: &Case,
    answer: &Answer,
    utilities: Option<&[Utility]>,
    loads: &Loads,
    bottlenecks: &LinkRows,
) -> Certificate {
    let Optimality { gap, flow_gap, stationarity } = match (case.policy, utilities) {
        (_, Some(utilities)) => maximum(case, answer, loads, |f| utilities.get(f).cloned()),
        (Policy::MaxMin | Policy::BandwidthFunction { .. }, None) if case.flows.single_path() => {
            max_min(case, answer, loads, bottlenecks)
        }
        (Policy::MaxMin | Policy::BandwidthFunction { .. }, None) => pooled_max_min(case, answer, loads),
        (_, None) => maximum(case, answer, loads, |f| Utility::of(case, f).ok()),
    };
    Certificate { infeasibility: infeasibility(case, answer, loads), gap, flow_gap, stationarity }
}

/// Certificate of an invalid answer.
pub(crate) const NOTHING: Certificate = Certificate {
    infeasibility: f64::INFINITY,
    gap: f64::INFINITY,
    flow_gap: f64::INFINITY,
    stationarity: f64::INFINITY,
};

/// The numbers of a [`Certificate`] that measure optimality; all of them except the infeasibility.
#[derive(Default)]
struct Optimality {
    gap: f64,
    flow_gap: f64,
    stationarity: f64,
}

/// Optimality numbers of an answer about which nothing is proved.
const NONE: Optimality = Optimality { gap: f64::INFINITY, flow_gap: f64::INFINITY, stationarity: f64::INFINITY };

/// Link loads, idle capacities and water levels of an answer, from which its certificate is computed.
pub(crate) struct Loads {
    /// Load of each link, bit/s.
    pub load: IdVec<LinkId, f64>,
    /// Capacity of each link, bit/s, in a compact table.
    capacity: IdVec<LinkId, f64>,
    /// Idle fraction of each link, and the largest water level of its flows.
    link: IdVec<LinkId, (f64, f64)>,
    /// Interval of water levels at which each flow has its rate.
    range: Vec<(f64, f64)>,
}

/// A rate whose relative distance from a corner of a bandwidth function is at most this may belong to either side of
/// the corner.
const CORNER: f64 = 1e-9;

/// Water levels at which flow `f` has `rate`: its rate per weight, or the fair shares at which its bandwidth function
/// has that rate.
fn levels(case: &Case, f: usize, rate: f64) -> (f64, f64) {
    if case.policy.is_by_functions() {
        let Ok(Utility::BandwidthFunction { function, .. }) = Utility::of(case, f) else { return (f64::INFINITY, 0.0) };
        let near = CORNER * rate + 1e-12 * function.top_bps();
        let low = if rate > near { function.fair_share(rate - near) } else { 0.0 };
        return (low, function.last_fair_share(rate + near));
    }
    let level = rate / case.flows.weight()[f];
    (level, level)
}

/// A flow counts as at its demand if its rate is below the demand by at most this fraction.
const SATED: f64 = 1e-8;

impl Loads {
    /// Computes the loads of `answer`; `None` if a number is negative or not finite, or a list has the wrong length.
    pub fn of(case: &Case, answer: &Answer) -> Option<Self> {
        let links = case.network.links();
        let shaped = answer.rates_bps.len() == case.flows.len()
            && answer.path_rates_bps.len() == case.flows.path_count()
            && answer.link_price.len() == links.len();
        let mut numbers = answer.rates_bps.iter().chain(&answer.path_rates_bps).chain(&answer.link_price);
        if !shaped || numbers.any(|x| !x.is_finite() || *x < 0.0) {
            return None;
        }
        let range: Vec<_> = answer.rates_bps.iter().enumerate().map(|(f, &rate)| levels(case, f, rate)).collect();
        // Load, and the largest water level.
        let mut sums = IdVec::<LinkId, (f64, f64)>::filled((0.0, 0.0), links.len());
        for (f, &(level, _)) in range.iter().enumerate() {
            for p in case.flows.paths_of(f) {
                let rate = answer.path_rates_bps[p];
                for &l in case.flows.links_of(p) {
                    let (load, largest) = &mut sums[l];
                    *load += rate;
                    *largest = largest.max(level);
                }
            }
        }
        let capacity: IdVec<LinkId, f64> = links.iter().map(|l| l.capacity_bps).collect();
        let idle = |(&(load, level), capacity): (&(f64, f64), &f64)| ((1.0 - load / capacity).max(0.0), level);
        let link = sums.iter().zip(&capacity).map(idle).collect();
        Some(Loads { load: sums.iter().map(|sum| sum.0).collect(), capacity, link, range })
    }

    fn idle_bps(&self, l: LinkId) -> f64 {
        (self.capacity[l] - self.load[l]).max(0.0)
    }

    /// Idle fraction of link `l`.
    fn idle(&self, l: LinkId) -> f64 {
        self.link[l].0
    }

    /// Shortfall of flow `f` below the highest water level on link `l`, as a fraction of that level.
    fn shortfall(&self, f: usize, l: LinkId) -> f64 {
        let largest = self.link[l].1;
        if largest > 0.0 { (1.0 - self.range[f].1 / largest).max(0.0) } else { 0.0 }
    }

    /// Whether flow `f` is at its demand, or at the largest rate of its bandwidth function.
    fn sated(&self, case: &Case, f: usize, rate: f64) -> bool {
        rate >= case.flows.demand_bps()[f] * (1.0 - SATED) || self.range[f].1 == f64::INFINITY
    }
}

/// Infeasibility: overloads of links, rates above demands, and flow rates that differ from the sum over their paths.
fn infeasibility(case: &Case, answer: &Answer, loads: &Loads) -> f64 {
    let mut worst: f64 = 0.0;
    for (load, capacity) in loads.load.iter().zip(&loads.capacity) {
        worst = worst.max(load / capacity - 1.0);
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

/// Tests the bottleneck condition: each flow below its demand crosses a saturated link on which no flow has a higher
/// water level. Returns the largest idle capacity (as a fraction of the link's and of the flow's rate) and the largest
/// shortfall, each at the flow's best link. If a flow has listed bottlenecks, only these are examined, since other
/// links are worse.
fn max_min(case: &Case, answer: &Answer, loads: &Loads, bottlenecks: &LinkRows) -> Optimality {
    let mut worst = Optimality::default();
    for (f, &rate) in answer.rates_bps.iter().enumerate() {
        if loads.sated(case, f, rate) {
            continue;
        }
        let named = bottlenecks.row(f);
        let links = if named.is_empty() { case.flows.links_of_all(case.flows.paths_of(f)) } else { named };
        let miss = |l: LinkId| loads.idle(l).max(loads.shortfall(f, l));
        if let Some(best) = links.iter().copied().min_by(|&a, &b| miss(a).total_cmp(&miss(b))) {
            worst.gap = worst.gap.max(loads.idle(best));
            worst.flow_gap = worst.flow_gap.max(share(loads.idle_bps(best), rate));
            worst.stationarity = worst.stationarity.max(loads.shortfall(f, best));
        }
    }
    worst
}

/// Relative difference between a flow's water level and that of a dual solution within which they count as equal.
const LEVEL: f64 = 1e-8;

/// Tests multipath (pooled) max-min by the dual solution of each water level. At the prices of a level, the value of
/// the capacity is the sum of price times capacity, and a flow pays its rate times the price of its cheapest path; a
/// flow above the level pays as if it were at the level. The excess of the value over the payments bounds how much more
/// the flows at the level could pay, and so get, unless a lower flow gets less. Returns two maxima. The first is of the
/// excess, relative to the payments at the level, and relative to each flow's payment for its widest path. The second
/// is of the relative distance of a flow below its demand from the level that limits it best.
fn pooled_max_min(case: &Case, answer: &Answer, loads: &Loads) -> Optimality {
    let mut worst = Optimality::default();
    // For each flow, by the level that limits it best: possible gain relative to the rate of its widest path, possible
    // gain relative to its rate, and distance from the level.
    let mut held: Vec<Optimality> = Vec::new();
    held.resize_with(case.flows.len(), || Optimality { gap: 1.0, flow_gap: 1.0, stationarity: 1.0 });
    for dual in &answer.levels {
        if !dual.is_sound(case) {
            return NONE;
        }
        let of_path = dual.prices_of_paths(case);
        let price = LevelDual::prices_of(case, &of_path);
        let worth: f64 = dual.prices.iter().map(|(l, p)| p * case.network.links()[*l].capacity_bps).sum();
        // Value of the capacity minus payments, summed by parts that are not negative, so that large sums do not
        // cancel.
        let mut excess: f64 = dual.prices.iter().map(|&(l, p)| p * loads.idle_bps(l)).sum();
        let (mut paid_here, mut parts_here) = (0.0, 0.0);
        for (f, &rate) in answer.rates_bps.iter().enumerate() {
            let (low, high) = loads.range[f];
            excess += case.flows.paths_of(f).map(|p| (of_path[p] - price[f]) * answer.path_rates_bps[p]).sum::<f64>();
            let above = low > dual.level * (1.0 + LEVEL);
            if above {
                excess += price[f] * (rate - rate_at(case, f, dual.level)).max(0.0);
            } else if high >= dual.level * (1.0 - LEVEL) && price[f] > 0.0 && !loads.sated(case, f, rate) {
                let most = narrowest(case, f);
                // A rate below the rounding error of the flow's largest possible rate counts as 0.
                paid_here += if rate > 4.0 * f64::EPSILON * most { price[f] * rate } else { 0.0 };
                parts_here += price[f] * most;
            }
        }
        // At a level of 0, where bandwidth functions begin to rise, nothing is paid: the excess is compared with
        // possible payments. A level at which all flows have their demand limits no flow.
        if parts_here > 0.0 {
            worst.gap = worst.gap.max(share(excess, if paid_here > 0.0 { paid_here } else { parts_here }));
        }
        for (f, &rate) in answer.rates_bps.iter().enumerate() {
            let (low, high) = loads.range[f];
            let part = price[f] * narrowest(case, f);
            if part > 0.0 && part >= LEAST_PART * worth {
                let away = (1.0 - high / dual.level).max(1.0 - dual.level / low).max(0.0);
                let gap = share(excess, part);
                if away.max(gap) < held[f].stationarity.max(held[f].gap) {
                    held[f] = Optimality { gap, flow_gap: share(excess, price[f] * rate), stationarity: away };
                }
            }
        }
    }
    for held in
        held.iter().enumerate().filter(|(f, _)| !loads.sated(case, *f, answer.rates_bps[*f])).map(|(_, held)| held)
    {
        worst.gap = worst.gap.max(held.gap);
        worst.flow_gap = worst.flow_gap.max(held.flow_gap);
        worst.stationarity = worst.stationarity.max(held.stationarity);
    }
    worst
}

/// `excess` over `payments`: 0 for an excess of at most 0, infinite without payments or if a number is NaN.
fn share(excess: f64, payments: f64) -> f64 {
    match excess / payments {
        _ if excess <= 0.0 => 0.0,
        part if part.is_nan() => f64::INFINITY,
        part => part,
    }
}

/// A level limits a flow only if the flow's price times its largest possible rate is at least this fraction of the
/// value of the capacity at the level's prices.
const LEAST_PART: f64 = 1e-6;

/// Capacity of the narrowest link of path `p`, bit/s.
pub(crate) fn narrowest_link(case: &Case, p: usize) -> f64 {
    let capacity = |&l: &LinkId| case.network.links()[l].capacity_bps;
    case.flows.links_of(p).iter().map(capacity).fold(f64::INFINITY, f64::min)
}

/// Capacity of the narrowest link on the widest path of flow `f`, bit/s.
pub(crate) fn narrowest(case: &Case, f: usize) -> f64 {
    case.flows.paths_of(f).map(|p| narrowest_link(case, p)).fold(0.0, f64::max)
}

/// Rate of flow `f` at the water level `level`, bit/s.
fn rate_at(case: &Case, f: usize, level: f64) -> f64 {
    match (case.policy, Utility::of(case, f)) {
        (Policy::BandwidthFunction { .. }, Ok(Utility::BandwidthFunction { function, .. })) => function.rate(level),
        _ => case.flows.weight()[f] * level,
    }
}

/// Duality gap and stationarity of a utility maximization. The gap is relative to the sum of x U'(x) (x: a flow's rate,
/// U': its marginal utility), which makes it independent of the units of rates and weights. It is the sum of three
/// parts that are not negative: prices times idle capacity, the loss of each flow against its best rate at its price,
/// and the excess cost of paths dearer than the cheapest. The gap of a flow is its part of the three over its own x
/// U'(x).
fn maximum(case: &Case, answer: &Answer, loads: &Loads, utility: impl Fn(usize) -> Option<Utility>) -> Optimality {
    let Some(units) = Units::of(case, answer, &utility) else { return NONE };
    let prices = units.prices(answer);
    let (mut worth, mut gap) = (0.0, 0.0);
    let mut worst = Optimality::default();
    for (l, price) in prices.iter_enumerated() {
        gap += price * units.rate(loads.idle_bps(l));
    }
    for (f, &rate_bps) in answer.rates_bps.iter().enumerate() {
        let Some(utility) = utility(f) else { return NONE };
        let (utility, rate) = (units.utility(utility), units.rate(rate_bps));
        let most = units.rate(case.flows.demand_bps()[f]).min(utility.top_bps());
        if most == 0.0 {
            continue;
        }
        let price_of = |p| case.flows.links_of(p).iter().map(|&l| prices[l]).sum::<f64>();
        let price = case.flows.paths_of(f).map(price_of).fold(f64::INFINITY, f64::min);
        let path_rate = |p: usize| units.rate(answer.path_rates_bps[p]);
        let own_worth = if rate > 0.0 { rate * utility.marginal(rate) } else { 0.0 };
        let best = utility.rate_at(price).min(most);
        let mut lost = match best.is_finite() {
            true => (utility.gain(rate, best) - price * (best - rate)).max(0.0),
            false => f64::INFINITY,
        };
        lost += case.flows.paths_of(f).map(|p| (price_of(p) - price) * path_rate(p)).sum::<f64>();
        worth += own_worth;
        gap += lost;
        let idle = |&l: &LinkId| prices[l] * loads.idle(l);
        let idle_of = |p| case.flows.links_of(p).iter().map(idle).sum::<f64>() * path_rate(p);
        let own = lost + case.flows.paths_of(f).map(idle_of).sum::<f64>();
        if own > 0.0 {
            worst.flow_gap = worst.flow_gap.max(share(own, own_worth.max(best * utility.marginal(best))));
        }
        if rate > 0.0 && rate < most * (1.0 - SATED) && price > 0.0 {
            worst.stationarity = worst.stationarity.max(utility.miss(rate, price));
        }
    }
    let gap = if gap > 0.0 { gap / worth } else { gap };
    Optimality { gap: if gap.is_nan() || worth.is_infinite() { f64::INFINITY } else { gap }, ..worst }
}

/// Logarithm of the largest marginal utility in the certificate's units. The limit leaves room for marginal utilities
/// that are smaller by a factor of e^1000.
const LN_LARGEST: f64 = 350.0;

/// Units that keep a case's utilities and prices within the range of doubles: rates up to about 1, marginal utilities
/// up to e^[`LN_LARGEST`].
struct Units {
    /// Unit of rates, bit/s: a power of two, so that scaling is exact.
    rate_bps: f64,
    /// Logarithm of the price unit, in the case's units.
    ln_price: f64,
}

impl Units {
    /// Computes the units; `None` if a flow has no utility function.
    fn of(case: &Case, answer: &Answer, utility: impl Fn(usize) -> Option<Utility>) -> Option<Self> {
        let price = answer.link_price.iter().copied().fold(0.0, f64::max);
        let mut ln_top = libm::log(price) + answer.ln_price_unit;
        for (f, &rate) in answer.rates_bps.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            match utility(f)? {
                // The marginal utility of a bandwidth function has the unit of the fair share. A linear one equals
                // the price exactly, which scaling would round.
                Utility::BandwidthFunction { .. } | Utility::Power { alpha: 0.0, .. } => {
                    return Some(Units { rate_bps: 1.0, ln_price: 0.0 });
                }
                power => ln_top = ln_top.max(power.ln_marginal(rate)),
            }
        }
        let largest = case.network.links().iter().map(|l| l.capacity_bps).fold(f64::MIN_POSITIVE, f64::max);
        let rate_bps = libm::ldexp(1.0, libm::frexp(largest).1);
        let ln_price = if ln_top.is_finite() { ln_top - LN_LARGEST } else { 0.0 };
        Some(Units { rate_bps, ln_price })
    }

    fn rate(&self, bps: f64) -> f64 {
        bps / self.rate_bps
    }

    fn prices(&self, answer: &Answer) -> IdVec<LinkId, f64> {
        let ln_unit = answer.ln_price_unit - self.ln_price;
        let scaled = |&price: &f64| if ln_unit == 0.0 { price } else { libm::exp(libm::log(price) + ln_unit) };
        answer.link_price.iter().map(scaled).collect()
    }

    fn utility(&self, utility: Utility) -> Utility {
        match utility {
            Utility::Power { alpha, ln_gain } => {
                Utility::Power { alpha, ln_gain: ln_gain - alpha * libm::log(self.rate_bps) - self.ln_price }
            }
            Utility::Curve { ln_gain, curve } => {
                let curve = Arc::new(curve.scaled(libm::log(self.rate_bps), 0.0));
                Utility::Curve { ln_gain: ln_gain - self.ln_price, curve }
            }
            function => function,
        }
    }
}

/// Bottlenecks of each flow. Max-min: saturated links on which no flow has a higher water level; with several paths,
/// links with a price at a level of the flow. Utilities: saturated links with a price. A link counts as saturated if
/// its idle fraction is at most [`FULL`], or `tolerance` if that is larger.
pub(crate) fn bottlenecks(case: &Case, answer: &Answer, loads: &Loads, tolerance: f64) -> LinkRows {
    let full = tolerance.max(FULL);
    let by_level = matches!(case.policy, Policy::MaxMin | Policy::BandwidthFunction { .. }) && case.flows.single_path();
    // Lowest water level of the flows limited by a link.
    let least = |(&(idle, level), price): (&(f64, f64), &f64)| match idle <= full && (by_level || *price > 0.0) {
        true if by_level => level * (1.0 - full),
        true => 0.0,
        false => f64::INFINITY,
    };
    let least: IdVec<LinkId, f64> = loads.link.iter().zip(&answer.link_price).map(least).collect();
    let (mut offsets, mut links, mut end) = (Offsets::default(), Vec::new(), 0);
    offsets.reserve(case.flows.len());
    // The last flow for which each link was listed, which prevents duplicates. No path crosses a link twice.
    let mut named = IdVec::<LinkId, usize>::filled(usize::MAX, loads.load.len());
    for (f, &rate) in answer.rates_bps.iter().enumerate() {
        let paths = case.flows.paths_of(f);
        let (several, level) = (paths.len() > 1, loads.range[f].1);
        let crossed = if loads.sated(case, f, rate) { &[] } else { case.flows.links_of_all(paths) };
        if links.len() < end + crossed.len() {
            links.resize(2 * (end + crossed.len()), LinkId::NONE);
        }
        // Branch-free, since which link limits the flow is unpredictable.
        for &l in crossed {
            let is_new = !several || std::mem::replace(&mut named[l], f) != f;
            links[end] = l;
            end += usize::from(is_new & (level >= least[l]));
        }
        offsets.push(end);
    }
    links.truncate(end);
    LinkRows::of(offsets, links)
}
