//! A utility maximization in scaled units, with capacities and prices near 1. The program has only flows with a
//! positive demand, and only links that these flows cross.

use super::order::{self, ProgramIndex};
use crate::certificate::narrowest_link;
use crate::max_min::{self, MaxMin};
use crate::utility::{BandwidthFunction, Utility};
use std::f64::consts::LN_10;
use std::ops::Range;
use subak_core::curve::Curve;
use subak_core::{Case, FlowId, IdVec, InputError, LinkId, Offsets};

subak_core::id! {
    /// Index of a path in the case.
    pub(crate) struct PathId(u32);
}

/// Rate B(level) of each flow. The marginal utility at that rate is level^-alpha (see `Utility`); with curves alpha is 1.
#[derive(Debug)]
pub(crate) enum Shape {
    /// B(level) = gain * level: power utilities.
    Linear(Vec<f64>),
    /// Bandwidth functions in scaled units.
    Functions(Vec<BandwidthFunction>),
    /// Utilities of different alphas or of the user's own, in scaled units.
    Curves(Vec<Curve>),
}

/// Unknowns of the program besides link prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Rates of flows with several paths; other rates follow from the prices.
    Prices,
    /// The rates of all flows.
    Rates,
    /// [`Form::Rates`] with each demand as an extra link of its flow, whose capacity is the demand. Rates then stay
    /// below demands in every iteration. This form is less accurate if a demand equals the rate that the flow would
    /// have without it.
    Within,
}

/// The problem: maximize the sum of utilities with U'(x) = level(x)^-alpha over links of unit-scaled capacity, where
/// level(x) is the inverse of [`Shape`].
#[derive(Debug)]
pub(crate) struct Program {
    pub alpha: f64,
    /// Range of -d ln U' / d ln x over all flows.
    pub alphas: (f64, f64),
    pub form: Form,
    pub shape: Shape,
    /// Index in the case of each flow.
    pub flows: Vec<FlowId>,
    /// Flow `f` has the paths `path_ptr[f]..path_ptr[f + 1]`.
    path_ptr: Offsets,
    pub paths: Vec<PathId>,
    link_ptr: Offsets,
    path_links: Vec<LinkId>,
    /// Ranges of consecutive paths with the same number of links.
    runs: Vec<Range<usize>>,
    /// Index in the case of each link, or [`LinkId::NONE`] for a demand.
    pub links: IdVec<LinkId, LinkId>,
    pub capacity: IdVec<LinkId, f64>,
    pub demand: Vec<f64>,
    /// Unit of rates, bit/s.
    pub rate_unit_bps: f64,
    /// Logarithm of the unit of levels, in the case's units.
    pub ln_level_unit: f64,
    /// Flow whose weight is farthest from the median, and the logarithm of the ratio of the largest to the smallest weight.
    odd_weight: Option<(FlowId, f64)>,
    /// Whether prices in utility per bit/s are within the range of doubles.
    has_small_prices: bool,
    /// Initial prices.
    pub price: Vec<f64>,
    /// Initial revenue of each link (load times price): its weight in the barrier.
    pub link_revenue: Vec<f64>,
    /// Initial rate of each path, for pooled flows.
    pub start_rate: Vec<f64>,
    /// Initial marginal utility of each pooled flow.
    pub start_marginal: Vec<f64>,
    /// Weight of each path in the barrier.
    pub barrier: Vec<f64>,
}

/// Largest difference between logarithms of marginal utilities: more would exceed the range of doubles.
const LN_SPAN: f64 = 600.0;

/// Logarithm of the largest price of an answer, in utility per bit/s.
const LN_LARGEST: f64 = 690.0;

impl Program {
    pub fn path(&self, p: usize) -> &[LinkId] {
        &self.path_links[self.link_ptr.row(p)]
    }

    /// The sum of `values`, one for each link, along a path.
    #[inline]
    pub fn sum(&self, p: usize, values: &[f64]) -> f64 {
        sum(self.path(p), values)
    }

    /// Adds `amount` to the value of each link of a path.
    #[inline]
    pub fn add(&self, p: usize, amount: f64, values: &mut [f64]) {
        self.path(p).iter().for_each(|&l| values[l.index()] += amount);
    }

    /// For every path in order: sums `values` over its links, calls `answer` with the sum, and calls `add` with the
    /// result for each link. Specialized by path length, which halves the time.
    #[inline(always)]
    pub fn through_paths<T: Copy>(
        &self,
        values: &[f64],
        mut answer: impl FnMut(usize, f64) -> T,
        mut add: impl FnMut(LinkId, T),
    ) {
        for run in &self.runs {
            let links = &self.path_links[self.link_ptr.rows(run.clone())];
            let (first, answer, add) = (run.start, &mut answer, &mut add);
            match links.len() / run.len() {
                1 => through::<1, T>(links.as_chunks().0, first, values, answer, add),
                2 => through::<2, T>(links.as_chunks().0, first, values, answer, add),
                3 => through::<3, T>(links.as_chunks().0, first, values, answer, add),
                4 => through::<4, T>(links.as_chunks().0, first, values, answer, add),
                5 => through::<5, T>(links.as_chunks().0, first, values, answer, add),
                6 => through::<6, T>(links.as_chunks().0, first, values, answer, add),
                _ => {
                    for p in run.clone() {
                        let told = answer(p, self.sum(p, values));
                        self.path(p).iter().for_each(|&l| add(l, told));
                    }
                }
            }
        }
    }

    pub fn paths_of(&self, f: usize) -> Range<usize> {
        self.path_ptr.row(f)
    }

    /// Whether the rates of all flows are unknowns.
    #[inline]
    pub fn seeks_rates(&self) -> bool {
        self.form != Form::Prices
    }

    /// Whether the rates of some flows are unknowns.
    pub fn pooled(&self) -> bool {
        self.seeks_rates() || self.flows.len() < self.paths.len()
    }

    /// Whether the rates of flow `f` are unknowns: if it has several paths, or if all are.
    #[inline]
    pub fn has_own_rates(&self, f: usize) -> bool {
        self.seeks_rates() || self.paths_of(f).len() > 1
    }

    /// Rate of flow `f` at the marginal utility `marginal`, and minus its derivative. If rates are unknowns, the
    /// logarithm of the marginal utility is linearized at `rate`: at small alpha the exact rate is far off, and its
    /// derivative nearly 0.
    pub fn wish(&self, f: usize, rate: f64, marginal: f64) -> (f64, f64) {
        match &self.shape {
            Shape::Linear(gain) if self.seeks_rates() => {
                // The derivative is 0 beyond the demand here too.
                if marginal <= self.level_to_price(self.demand[f] / gain[f]) {
                    return (self.demand[f], 0.0);
                }
                let off = libm::log(marginal) + self.alpha * libm::log(rate / gain[f]);
                (rate * (1.0 - off / self.alpha), rate / (self.alpha * marginal))
            }
            Shape::Curves(curves) if self.seeks_rates() => {
                if marginal <= libm::exp(curves[f].ln_marginal(libm::log(self.demand[f]))) {
                    return (self.demand[f], 0.0);
                }
                let ln_rate = libm::log(rate);
                let alpha = curves[f].alpha_at(ln_rate);
                let off = libm::log(marginal) - curves[f].ln_marginal(ln_rate);
                (rate * (1.0 - off / alpha), rate / (alpha * marginal))
            }
            _ => self.respond(f, marginal),
        }
    }

    /// Rate of flow `f` at `price`, and minus its derivative, which is 0 once the rate is at the demand.
    #[inline(always)]
    pub fn respond(&self, f: usize, price: f64) -> (f64, f64) {
        if price <= 0.0 {
            return (self.demand[f], 0.0);
        }
        let level = self.level(price);
        let (rate, slope) = match &self.shape {
            Shape::Linear(gain) => (gain[f] * level, gain[f]),
            Shape::Functions(functions) => (functions[f].rate(level), functions[f].slope(level)),
            Shape::Curves(curves) => {
                let ln_marginal = libm::log(price);
                let rate = libm::exp(curves[f].ln_rate(ln_marginal));
                (rate, rate / (curves[f].alpha_of(ln_marginal) * level))
            }
        };
        if rate >= self.demand[f] { (self.demand[f], 0.0) } else { (rate, slope * level / (self.alpha * price)) }
    }

    /// Level at which the marginal utility, level^-alpha, equals `price`.
    #[inline(always)]
    pub fn level(&self, price: f64) -> f64 {
        if self.alpha == 1.0 {
            1.0 / price
        } else if self.alpha == 2.0 {
            1.0 / price.sqrt()
        } else {
            libm::exp(-libm::log(price) / self.alpha)
        }
    }

    /// `case` in scaled units, with initial prices from max-min.
    pub fn new(case: &Case, utilities: &[Utility], form: Form) -> Result<Self, InputError> {
        let all = &case.flows;
        let top = |f: usize| match &utilities[f] {
            Utility::BandwidthFunction { function, .. } => function.top_bps(),
            Utility::Power { .. } | Utility::Curve { .. } => f64::INFINITY,
        };
        // A demand that equals the largest rate the links allow is dropped: with both, prices would not be unique.
        let widest = |f: usize| all.paths_of(f).map(|p| narrowest_link(case, p)).sum::<f64>();
        let demand_bps = |f: usize| {
            let demand = all.demand_bps()[f].min(top(f));
            let is_idle = demand < f64::INFINITY && top(f) == f64::INFINITY && demand >= widest(f);
            if is_idle { f64::INFINITY } else { demand }
        };
        let flows: Vec<FlowId> = FlowId::first(all.len()).filter(|f| demand_bps(f.index()) > 0.0).collect();
        let alphas = span(utilities);
        let mut program = Program {
            alpha: if alphas.0 == alphas.1 { alphas.0 } else { 1.0 },
            alphas,
            form,
            shape: Shape::Linear(Vec::new()),
            demand: flows.iter().map(|&f| demand_bps(f.index())).collect(),
            flows,
            path_ptr: Offsets::default(),
            paths: Vec::new(),
            link_ptr: Offsets::default(),
            path_links: Vec::new(),
            runs: Vec::new(),
            links: IdVec::new(),
            capacity: IdVec::new(),
            rate_unit_bps: 1.0,
            ln_level_unit: 0.0,
            odd_weight: None,
            has_small_prices: true,
            price: Vec::new(),
            link_revenue: Vec::new(),
            start_rate: Vec::new(),
            start_marginal: Vec::new(),
            barrier: Vec::new(),
        };
        program.take_links(case);
        program.drop_dominated();
        program.order();
        program.find_runs();
        program.take_shapes(utilities);
        program.start()?;
        Ok(program)
    }

    fn take_links(&mut self, case: &Case) {
        let mut number = IdVec::filled(LinkId::NONE, case.network.links().len());
        let capacity_bps = |l: LinkId| case.network.links()[l].capacity_bps;
        self.link_ptr.reserve(case.flows.link_ptr().len());
        self.path_links.reserve(case.flows.links().len());
        for (&f, demand) in self.flows.iter().zip(&mut self.demand) {
            let own = (self.form == Form::Within && *demand < f64::INFINITY).then(|| {
                self.capacity.resize(self.links.len(), 0.0);
                self.capacity.push(std::mem::replace(demand, f64::INFINITY));
                self.links.push(LinkId::NONE)
            });
            for p in case.flows.paths_of(f.index()) {
                self.path_links.extend(own);
                for &l in case.flows.links_of(p) {
                    let number = &mut number[l];
                    if *number == LinkId::NONE {
                        *number = self.links.push(l);
                    }
                    self.path_links.push(*number);
                }
                self.paths.push(PathId::from_index(p));
                self.link_ptr.push(self.path_links.len());
            }
            self.path_ptr.push(self.paths.len());
        }
        self.capacity.resize(self.links.len(), 0.0);
        for (&l, capacity) in self.links.iter().zip(&mut self.capacity).filter(|(l, _)| **l != LinkId::NONE) {
            *capacity = capacity_bps(l);
        }
        self.rate_unit_bps = self.capacity.iter().fold(0.0, |a: f64, &b| a.max(b)).max(f64::MIN_POSITIVE);
        let unit = self.rate_unit_bps;
        self.capacity.iter_mut().chain(&mut self.demand).for_each(|c| *c /= unit);
    }

    /// Drops redundant links: those that carry a single path which also crosses a link of at most the same capacity.
    /// With few flows most links are redundant.
    fn drop_dominated(&mut self) {
        let mut carries = IdVec::<LinkId, u32>::filled(0, self.capacity.len());
        self.path_links.iter().for_each(|&l| carries[l] += 1);
        let narrower = |l: LinkId, m: LinkId| {
            let key = |l: LinkId| (self.capacity[l], std::cmp::Reverse(carries[l]), l);
            let ((a, b, c), (d, e, f)) = (key(m), key(l));
            (a < d) || (a == d && (b, c) < (e, f))
        };
        let mut kept = IdVec::filled(true, self.capacity.len());
        for p in 0..self.paths.len() {
            let path = self.path(p);
            for &l in path {
                kept[l] = carries[l] > 1 || !path.iter().any(|&m| narrower(l, m));
            }
        }
        let mut number = IdVec::filled(LinkId::NONE, kept.len());
        let (mut links, mut capacity) = (IdVec::new(), IdVec::new());
        for l in kept.ids().filter(|&l| kept[l]) {
            number[l] = links.push(self.links[l]);
            capacity.push(self.capacity[l]);
        }
        (self.links, self.capacity) = (links, capacity);
        let mut link_ptr = Offsets::default();
        let mut end = 0;
        for p in 0..self.paths.len() {
            for i in self.link_ptr.row(p) {
                let l = number[self.path_links[i]];
                if l != LinkId::NONE {
                    self.path_links[end] = l;
                    end += 1;
                }
            }
            link_ptr.push(end);
        }
        self.link_ptr = link_ptr;
        self.path_links.truncate(end);
    }

    /// Orders single-path flows by path length and first link, so that flows that share links are adjacent.
    fn order(&mut self) {
        if self.pooled() {
            return;
        }
        let all = ProgramIndex::first(self.flows.len()).collect();
        let by_link = order::counting_sort(all, |f| self.path(f).first().map_or(0, |l| l.index()));
        let order = order::counting_sort(by_link, |f| self.path(f).len());
        self.flows = order.iter().map(|f| self.flows[f.index()]).collect();
        self.paths = order.iter().map(|f| self.paths[f.index()]).collect();
        self.demand = order.iter().map(|f| self.demand[f.index()]).collect();
        let mut path_links = Vec::with_capacity(self.path_links.len());
        let mut link_ptr = Offsets::default();
        link_ptr.reserve(self.link_ptr.len());
        for f in order {
            path_links.extend_from_slice(self.path(f.index()));
            link_ptr.push(path_links.len());
        }
        (self.path_links, self.link_ptr) = (path_links, link_ptr);
    }

    fn find_runs(&mut self) {
        let length = |p: usize| self.link_ptr.row(p).len();
        for p in 0..self.paths.len() {
            match self.runs.last_mut() {
                Some(run) if length(run.start) == length(p) => run.end = p + 1,
                _ => self.runs.push(p..p + 1),
            }
        }
    }

    /// Sets the shape. Gains and the unit of levels are divided by the largest gain.
    fn take_shapes(&mut self, utilities: &[Utility]) {
        let of = |f: &FlowId| &utilities[f.index()];
        let is_curve = |u: &Utility| matches!(u, Utility::Curve { .. });
        if self.alphas.0 != self.alphas.1 || utilities.iter().any(is_curve) {
            self.alpha = 1.0;
            self.take_curves(utilities);
            return;
        }
        if let Some(Utility::BandwidthFunction { .. }) = self.flows.first().map(of) {
            let scale = |u: &Utility| match u {
                Utility::BandwidthFunction { function, .. } => {
                    let points: Vec<_> = function.points().iter().map(|p| (p.0, p.1 / self.rate_unit_bps)).collect();
                    BandwidthFunction::new(&points).expect("scaling keeps its shape")
                }
                Utility::Power { .. } | Utility::Curve { .. } => unreachable!("one policy gives one kind of utility"),
            };
            self.shape = Shape::Functions(self.flows.iter().map(of).map(scale).collect());
            return;
        }
        let ln_level_gain = |u: &Utility| match u {
            Utility::Power { alpha, ln_gain } => ln_gain / alpha,
            Utility::BandwidthFunction { .. } | Utility::Curve { .. } => unreachable!("handled above"),
        };
        let mut gain: Vec<f64> = self.flows.iter().map(of).map(ln_level_gain).collect();
        let most = gain.iter().fold(f64::NEG_INFINITY, |a: f64, &b| a.max(b));
        self.find_odd_weight(&gain, most);
        gain.iter_mut().for_each(|g| *g = libm::exp(*g - most).max(1e-280));
        self.ln_level_unit = libm::log(self.rate_unit_bps) - most;
        self.shape = Shape::Linear(gain);
    }

    /// Sets curves as the shape. The unit of levels is the smallest level that a flow alone has at the rate unit.
    fn take_curves(&mut self, utilities: &[Utility]) {
        let ln_unit = libm::log(self.rate_unit_bps);
        let scaled = |f: &FlowId| match &utilities[f.index()] {
            Utility::Power { alpha, ln_gain } => Curve::power(*alpha, *ln_gain).scaled(ln_unit, 0.0),
            Utility::Curve { ln_gain, curve } => curve.scaled(ln_unit, *ln_gain),
            Utility::BandwidthFunction { .. } => unreachable!("no policy has them beside other utilities"),
        };
        let curves: Vec<Curve> = self.flows.iter().map(scaled).collect();
        let most = curves.iter().map(|c| c.ln_marginal(0.0)).fold(f64::NEG_INFINITY, f64::max);
        if most.is_finite() {
            self.ln_level_unit = -most;
        }
        self.shape = Shape::Curves(curves.iter().map(|c| c.scaled(0.0, self.ln_level_unit)).collect());
    }

    /// Level of flow `f` at the rate `rate`, if its weight in the initial max-min is `weight`.
    fn level_at(&self, f: usize, rate: f64, weight: f64) -> f64 {
        match &self.shape {
            Shape::Curves(curves) => libm::exp(-curves[f].ln_marginal(libm::log(rate))),
            _ => rate / weight,
        }
    }

    /// Initial levels and prices: max-min with the gains as weights, and each path as a flow. Max-min is the optimum
    /// for alpha to infinity, and for any alpha if no flow has two bottlenecks.
    fn start(&mut self) -> Result<(), InputError> {
        let paths = self.paths.len();
        let owner = || (0..self.flows.len()).flat_map(|f| self.paths_of(f).map(move |_| f));
        let split = |f: usize| 1.0 / self.paths_of(f).len() as f64;
        // Bandwidth functions start from their mean slope.
        let slope = |f: usize| match &self.shape {
            Shape::Linear(gain) => gain[f],
            Shape::Functions(functions) => {
                let end = functions[f].points()[functions[f].points().len() - 1];
                end.1 / end.0
            }
            // The rate at the level that is 1 for the flow of the largest marginal utility.
            Shape::Curves(curves) => libm::exp(curves[f].ln_rate(0.0).clamp(-20.0, 0.0)),
        };
        let mut weight: Vec<f64> = owner().map(|f| slope(f) * split(f)).collect();
        let demand: Vec<f64> = owner().map(|f| self.demand[f]).collect();
        let mut rate = vec![0.0; paths];
        let mut frozen_by = vec![max_min::NO_LINK; paths];
        let mut solver = MaxMin::new();
        // Pooled flows shift weight to the paths with higher rates (NUMFabric, section 6.3): after a few rounds a
        // flow's paths have nearly the same level.
        let rounds = if self.pooled() { 20 } else { 1 };
        for round in 0..rounds {
            let rows = max_min::PathRows {
                capacity_bps: &self.capacity,
                link_ptr: self.link_ptr.raw(),
                links: &self.path_links,
                weight: &weight,
                demand_bps: &demand,
                active: None,
            };
            solver.solve(&rows, &mut rate, &mut frozen_by);
            if round + 1 < rounds {
                for f in 0..self.flows.len() {
                    let total: f64 = rate[self.paths_of(f)].iter().sum();
                    let least = 1e-3 * slope(f) * split(f);
                    self.paths_of(f).for_each(|p| weight[p] = (slope(f) * rate[p] / total).max(least));
                }
            }
        }
        let mut top_level = IdVec::<LinkId, f64>::filled(0.0, self.capacity.len());
        let mut bottleneck = IdVec::filled(false, self.capacity.len());
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        let owners: Vec<usize> = owner().collect();
        for p in 0..paths {
            // Beside flows of much larger gain, the remaining capacity may round to 0.
            let narrowest = self.path(p).iter().map(|&l| self.capacity[l]).fold(f64::INFINITY, f64::min);
            rate[p] = rate[p].max(1e-16 * narrowest.min(demand[p]));
            let level = self.level_at(owners[p], rate[p], weight[p]);
            (low, high) = (low.min(level), high.max(level));
            for &l in self.path(p) {
                top_level[l] = top_level[l].max(level);
            }
            if frozen_by[p] != max_min::NO_LINK {
                bottleneck[frozen_by[p]] = true;
            }
        }
        self.check_span(low, high)?;
        let ln_price = |level: f64| -self.alpha * (libm::log(level) + self.ln_level_unit);
        self.has_small_prices = paths == 0 || ln_price(low).max(-ln_price(high)) < LN_LARGEST;
        let unit = if high > 0.0 { (low * high).sqrt() } else { 1.0 };
        let price = |(l, level): (LinkId, &f64)| {
            let at_level = self.level_to_price(level / unit);
            if bottleneck[l] { at_level } else { at_level * 0.1 }
        };
        self.price = top_level.iter_enumerated().map(price).collect();
        let mut load = vec![0.0; self.capacity.len()];
        for (p, rate) in rate.iter().enumerate() {
            self.add(p, *rate, &mut load);
        }
        self.link_revenue = load.iter().zip(&self.price).map(|(load, price)| load * price).collect();
        if self.pooled() {
            let total = |f: usize| rate[self.paths_of(f)].iter().sum::<f64>();
            let marginal = |f: usize| self.level_to_price(self.level_at(f, total(f), slope(f)) / unit);
            let marginal: Vec<f64> = (0..self.flows.len()).map(marginal).collect();
            let share = |f: usize| total(f) * marginal[f] / self.paths_of(f).len() as f64;
            let share = &share;
            let barrier = (0..self.flows.len()).flat_map(|f| self.paths_of(f).map(move |_| share(f))).collect();
            (self.barrier, self.start_rate, self.start_marginal) = (barrier, rate, marginal);
        }
        self.set_level_unit(unit);
        Ok(())
    }

    /// An error if marginal utilities between the levels `low` and `high` exceed the range of doubles in any unit.
    fn check_span(&self, low: f64, high: f64) -> Result<(), InputError> {
        let ln_span = libm::log(high / low);
        if self.paths.is_empty() || self.alpha * ln_span <= LN_SPAN {
            return Ok(());
        }
        match self.odd_weight {
            Some((odd, ln_weights)) if 2.0 * ln_weights >= ln_span => Err(InputError::new(
                format!("flows[{}].weight", odd.index()),
                format!(
                    "weights are 10^{:.0} apart: marginal utilities leave the range of numbers",
                    ln_weights / LN_10
                ),
                "set a weight nearer to those of the other flows",
            )),
            _ => Err(self.too_steep()),
        }
    }

    /// Finds the most extreme weight. `ln_gain` has the logarithm of each flow's weight, `most` is the largest of
    /// these.
    fn find_odd_weight(&mut self, ln_gain: &[f64], most: f64) {
        let mut sorted: Vec<f64> = ln_gain.to_vec();
        let middle = sorted.len() / 2;
        if sorted.is_empty() {
            return;
        }
        let median = *sorted.select_nth_unstable_by(middle, f64::total_cmp).1;
        let away = |f: &usize| (ln_gain[*f] - median).abs();
        let odd = (0..ln_gain.len()).max_by(|f, g| away(f).total_cmp(&away(g)));
        let least = ln_gain.iter().copied().fold(f64::INFINITY, f64::min);
        self.odd_weight = odd.map(|f| (self.flows[f], most - least));
    }

    fn too_steep(&self) -> InputError {
        InputError::new(
            "policy.alpha",
            format!("at alpha = {} the marginal utilities leave the range of numbers", self.alpha),
            "use a smaller alpha, or max-min, which it comes close to",
        )
    }

    /// Logarithm of the unit of the case's prices: 0, for utility per bit/s, if the prices are within the range of
    /// doubles.
    pub fn ln_price_unit(&self) -> f64 {
        if self.has_small_prices { 0.0 } else { -self.alpha * self.ln_level_unit }
    }

    /// Prices of the case's links in scaled units. They have a positive lower bound, since Newton steps multiply
    /// prices.
    pub fn scaled_prices(&self, prices: &[f64]) -> Vec<f64> {
        let ln_unit = self.alpha * self.ln_level_unit;
        let scaled = |(&l, start): (&LinkId, &f64)| match prices.get(l.index()) {
            // Prices of an earlier answer may have another unit; they are only a start.
            Some(&price) if price > 0.0 => libm::exp(libm::log(price) + ln_unit).clamp(1e-6 * start, f64::MAX),
            _ => 1e-6 * start,
        };
        self.links.iter().zip(&self.price).map(scaled).collect()
    }

    /// Sets the barrier weight of each path of a pooled flow to the flow's payment (rate times price) divided by its
    /// number of paths.
    pub fn reweigh(&mut self, prices: &[f64], rate: &[f64]) {
        if !self.pooled() {
            return;
        }
        for f in 0..self.flows.len() {
            let paths = self.paths_of(f);
            let revenue: f64 = paths.clone().map(|p| rate[p] * self.sum(p, prices)).sum();
            if self.has_own_rates(f) && revenue > 0.0 {
                let share = revenue / paths.len() as f64;
                self.barrier[paths].fill(share);
            }
        }
    }

    /// Reduces barrier weights near the optimum. A path dearer than its flow's marginal utility then carries at most
    /// the fraction mu of its narrowest link's capacity, and at most the fraction mu of a link with a price is idle.
    /// Weights by revenue alone would disadvantage flows of low value.
    pub fn sharpen(&mut self, prices: &[f64], dearness: &[f64], links: &mut [f64]) {
        for (p, dearness) in dearness.iter().enumerate() {
            let narrowest = self.path(p).iter().map(|&l| self.capacity[l]).fold(f64::INFINITY, f64::min);
            self.barrier[p] = (narrowest * dearness).min(self.barrier[p]).max(f64::MIN_POSITIVE);
        }
        for ((weight, capacity), price) in links.iter_mut().zip(&self.capacity).zip(prices) {
            *weight = (capacity * price).min(*weight).max(f64::MIN_POSITIVE);
        }
    }

    fn set_level_unit(&mut self, unit: f64) {
        self.ln_level_unit += libm::log(unit);
        match &mut self.shape {
            Shape::Linear(gain) => gain.iter_mut().for_each(|g| *g *= unit),
            Shape::Functions(functions) => {
                for function in functions {
                    let points: Vec<_> = function.points().iter().map(|p| (p.0 / unit, p.1)).collect();
                    *function = BandwidthFunction::new(&points).expect("scaling keeps its shape");
                }
            }
            Shape::Curves(curves) => curves.iter_mut().for_each(|c| *c = c.scaled(0.0, libm::log(unit))),
        }
    }

    /// Price at a level: level^-alpha.
    pub fn level_to_price(&self, level: f64) -> f64 {
        libm::exp(-self.alpha * libm::log(level))
    }
}

/// Range of the alphas of `utilities`; 1 if there are none.
fn span(utilities: &[Utility]) -> (f64, f64) {
    let wider = |(least, most): (f64, f64), of: (f64, f64)| (least.min(of.0), most.max(of.1));
    utilities.iter().map(Utility::alphas).reduce(wider).unwrap_or((1.0, 1.0))
}

#[inline(always)]
fn through<const N: usize, T: Copy>(
    paths: &[[LinkId; N]],
    first: usize,
    values: &[f64],
    answer: &mut impl FnMut(usize, f64) -> T,
    add: &mut impl FnMut(LinkId, T),
) {
    for (p, path) in paths.iter().enumerate() {
        let told = answer(first + p, sum(path, values));
        path.iter().for_each(|&l| add(l, told));
    }
}

/// The sum of `values`, one for each link, over `path`.
#[inline(always)]
pub(super) fn sum(path: &[LinkId], values: &[f64]) -> f64 {
    path.iter().map(|&l| values[l.index()]).sum()
}
