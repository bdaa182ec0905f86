//! A utility maximization in the solver's own units: only flows that want something, only links they cross, capacities
//! near 1 and prices near 1.

use crate::max_min::{self, MaxMin};
use crate::utility::{BandwidthFunction, Utility};
use std::ops::Range;
use subak_core::{Case, Fault, LinkId};

/// Rate of each flow over its level (see [`crate::utility`]).
#[derive(Debug)]
pub(crate) enum Shape {
    /// B(level) = gain * level.
    Linear(Vec<f64>),
    /// Bandwidth functions in scaled units.
    Functions(Vec<BandwidthFunction>),
}

/// The problem: maximize the sum of utilities with U'(x) = level(x)^-alpha over links of unit-scaled capacity.
#[derive(Debug)]
pub(crate) struct Program {
    pub alpha: f64,
    pub shape: Shape,
    /// Flow `f` here is flow `flows[f]` of the case.
    pub flows: Vec<u32>,
    /// Its paths are `path_ptr[f]..path_ptr[f + 1]`, which are paths `paths[..]` of the case.
    pub path_ptr: Vec<u32>,
    pub paths: Vec<u32>,
    pub link_ptr: Vec<u32>,
    pub path_links: Vec<u32>,
    /// Paths of one length that follow each other.
    runs: Vec<Range<usize>>,
    /// Link `l` here is link `links[l]` of the case.
    pub links: Vec<LinkId>,
    pub capacity: Vec<f64>,
    pub demand: Vec<f64>,
    /// One here is so many bit/s.
    pub rate_unit_bps: f64,
    /// Logarithm of what a level of one here is in the case's units.
    pub ln_level_unit: f64,
    /// Where Newton starts.
    pub price: Vec<f64>,
    /// Each link's revenue at the start, load times price: its share of the barrier.
    pub link_revenue: Vec<f64>,
    /// Where flows are pooled: rates of the paths and marginal utilities of the flows at the start.
    pub start_rate: Vec<f64>,
    pub start_marginal: Vec<f64>,
    /// And each flow's revenue, rate times price: its paths' share of the barrier.
    pub revenue: Vec<f64>,
}

impl Program {
    pub fn path(&self, p: usize) -> &[u32] {
        &self.path_links[self.link_ptr[p] as usize..self.link_ptr[p + 1] as usize]
    }

    /// For every path in order: sums `values` over its links, asks `answer`, and gives what it says to each of the links by
    /// `add`. Compiled for each of the usual lengths, which takes half the time.
    #[inline(always)]
    pub fn through_paths<T: Copy>(
        &self,
        values: &[f64],
        mut answer: impl FnMut(usize, f64) -> T,
        mut add: impl FnMut(usize, T),
    ) {
        for run in &self.runs {
            let links = &self.path_links[self.link_ptr[run.start] as usize..self.link_ptr[run.end] as usize];
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
                        let told = answer(p, self.path(p).iter().map(|&l| values[l as usize]).sum());
                        self.path(p).iter().for_each(|&l| add(l as usize, told));
                    }
                }
            }
        }
    }

    pub fn paths_of(&self, f: usize) -> Range<usize> {
        self.path_ptr[f] as usize..self.path_ptr[f + 1] as usize
    }

    /// Whether some flow has several paths.
    pub fn pooled(&self) -> bool {
        self.flows.len() < self.paths.len()
    }

    /// Rate of flow `f` at `price`, and minus its slope there. The demand is a kink: beyond it the slope is zero.
    #[inline(always)]
    pub fn respond(&self, f: usize, price: f64) -> (f64, f64) {
        if price <= 0.0 {
            return (self.demand[f], 0.0);
        }
        let level = self.level(price);
        let (rate, slope) = match &self.shape {
            Shape::Linear(gain) => (gain[f] * level, gain[f]),
            Shape::Functions(functions) => (functions[f].rate(level), functions[f].slope(level)),
        };
        if rate >= self.demand[f] { (self.demand[f], 0.0) } else { (rate, slope * level / (self.alpha * price)) }
    }

    /// The level at a price.
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

    /// `case` in these units, with a start from max-min.
    pub fn new(case: &Case, utilities: &[Utility]) -> Result<Self, Fault> {
        let all = &case.flows;
        let top = |f: usize| match &utilities[f] {
            Utility::BandwidthFunction { function, .. } => function.top_bps(),
            Utility::Power { .. } => f64::INFINITY,
        };
        let demand_bps = |f: usize| all.demand_bps()[f].min(top(f));
        let flows: Vec<u32> = (0..all.len()).filter(|&f| demand_bps(f) > 0.0).map(|f| f as u32).collect();
        let mut program = Program {
            alpha: utilities.first().map_or(1.0, Utility::alpha),
            shape: Shape::Linear(Vec::new()),
            demand: flows.iter().map(|&f| demand_bps(f as usize)).collect(),
            flows,
            path_ptr: vec![0],
            paths: Vec::new(),
            link_ptr: vec![0],
            path_links: Vec::new(),
            runs: Vec::new(),
            links: Vec::new(),
            capacity: Vec::new(),
            rate_unit_bps: 1.0,
            ln_level_unit: 0.0,
            price: Vec::new(),
            link_revenue: Vec::new(),
            start_rate: Vec::new(),
            start_marginal: Vec::new(),
            revenue: Vec::new(),
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
        let mut number = vec![u32::MAX; case.network.links().len()];
        self.link_ptr.reserve(case.flows.link_ptr().len());
        self.path_links.reserve(case.flows.links().len());
        for &f in &self.flows {
            for p in case.flows.paths_of(f as usize) {
                for &l in case.flows.links_of(p) {
                    let number = &mut number[l as usize];
                    if *number == u32::MAX {
                        *number = self.links.len() as u32;
                        self.links.push(l);
                    }
                    self.path_links.push(*number);
                }
                self.paths.push(p as u32);
                self.link_ptr.push(self.path_links.len() as u32);
            }
            self.path_ptr.push(self.paths.len() as u32);
        }
        self.capacity = self.links.iter().map(|&l| case.network.links()[l as usize].capacity_bps).collect();
        self.rate_unit_bps = self.capacity.iter().fold(0.0, |a: f64, &b| a.max(b)).max(f64::MIN_POSITIVE);
        let unit = self.rate_unit_bps;
        self.capacity.iter_mut().chain(&mut self.demand).for_each(|c| *c /= unit);
    }

    /// Drops links that carry one path only where another link of that path is no wider: they bind nothing of their own.
    /// With few flows these are most links.
    fn drop_dominated(&mut self) {
        let mut carries = vec![0u32; self.capacity.len()];
        self.path_links.iter().for_each(|&l| carries[l as usize] += 1);
        let narrower = |l: u32, m: u32| {
            let key = |l: u32| (self.capacity[l as usize], std::cmp::Reverse(carries[l as usize]), l);
            let ((a, b, c), (d, e, f)) = (key(m), key(l));
            (a < d) || (a == d && (b, c) < (e, f))
        };
        let mut kept = vec![true; self.capacity.len()];
        for p in 0..self.paths.len() {
            let path = self.path(p);
            for &l in path {
                kept[l as usize] = carries[l as usize] > 1 || !path.iter().any(|&m| narrower(l, m));
            }
        }
        let mut number = vec![u32::MAX; kept.len()];
        let mut next = 0;
        for (l, number) in number.iter_mut().enumerate().filter(|(l, _)| kept[*l]) {
            (self.links[next], self.capacity[next], *number) = (self.links[l], self.capacity[l], next as u32);
            next += 1;
        }
        self.links.truncate(next);
        self.capacity.truncate(next);
        let mut end = 0;
        let mut begin = 0;
        for p in 0..self.paths.len() {
            let stop = self.link_ptr[p + 1] as usize;
            for i in begin..stop {
                let l = number[self.path_links[i] as usize];
                if l != u32::MAX {
                    self.path_links[end] = l;
                    end += 1;
                }
            }
            self.link_ptr[p + 1] = end as u32;
            begin = stop;
        }
        self.path_links.truncate(end);
    }

    /// Orders flows of one path each by the length of the path and its first link: those that share links lie side by
    /// side then.
    fn order(&mut self) {
        if self.pooled() {
            return;
        }
        let all = (0..self.flows.len() as u32).collect();
        let by_link = counting_sort(all, |f| self.path(f).first().map_or(0, |&l| l as usize));
        let order = counting_sort(by_link, |f| self.path(f).len());
        let of = |list: &[u32]| order.iter().map(|&f| list[f as usize]).collect();
        (self.flows, self.paths) = (of(&self.flows), of(&self.paths));
        self.demand = order.iter().map(|&f| self.demand[f as usize]).collect();
        let mut path_links = Vec::with_capacity(self.path_links.len());
        let mut link_ptr = Vec::with_capacity(self.link_ptr.len());
        link_ptr.push(0);
        for f in order {
            path_links.extend_from_slice(self.path(f as usize));
            link_ptr.push(path_links.len() as u32);
        }
        (self.path_links, self.link_ptr) = (path_links, link_ptr);
    }

    fn find_runs(&mut self) {
        let length = |p: usize| self.link_ptr[p + 1] - self.link_ptr[p];
        for p in 0..self.paths.len() {
            match self.runs.last_mut() {
                Some(run) if length(run.start) == length(p) => run.end = p + 1,
                _ => self.runs.push(p..p + 1),
            }
        }
    }

    /// Gains are normalized by their largest: the level unit takes the rest.
    fn take_shapes(&mut self, utilities: &[Utility]) {
        let of = |f: &u32| &utilities[*f as usize];
        if let Some(Utility::BandwidthFunction { .. }) = self.flows.first().map(of) {
            let scale = |u: &Utility| match u {
                Utility::BandwidthFunction { function, .. } => {
                    let points: Vec<_> = function.points().iter().map(|p| (p.0, p.1 / self.rate_unit_bps)).collect();
                    BandwidthFunction::new(&points).expect("scaling keeps its shape")
                }
                Utility::Power { .. } => unreachable!("one policy gives one kind of utility"),
            };
            self.shape = Shape::Functions(self.flows.iter().map(of).map(scale).collect());
            return;
        }
        let ln_level_gain = |u: &Utility| match u {
            Utility::Power { alpha, ln_gain } => ln_gain / alpha,
            Utility::BandwidthFunction { .. } => unreachable!("one policy gives one kind of utility"),
        };
        let mut gain: Vec<f64> = self.flows.iter().map(of).map(ln_level_gain).collect();
        let most = gain.iter().fold(f64::NEG_INFINITY, |a: f64, &b| a.max(b));
        gain.iter_mut().for_each(|g| *g = libm::exp(*g - most).max(1e-280));
        self.ln_level_unit = libm::log(self.rate_unit_bps) - most;
        self.shape = Shape::Linear(gain);
    }

    /// Levels and prices at the start: max-min with the gains as weights, each path a flow of its own. It is the optimum
    /// as alpha goes to infinity, and at any alpha where no flow has two bottlenecks.
    fn start(&mut self) -> Result<(), Fault> {
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
        };
        let mut weight: Vec<f64> = owner().map(|f| slope(f) * split(f)).collect();
        let demand: Vec<f64> = owner().map(|f| self.demand[f]).collect();
        let mut rate = vec![0.0; paths];
        let mut frozen_by = vec![max_min::NO_LINK; paths];
        let mut solver = MaxMin::new();
        // Pooled flows shift their weight to the paths that get more for it (NUMFabric, section 6.3): a few rounds bring
        // a flow's paths near one level.
        let rounds = if self.pooled() { 20 } else { 1 };
        for round in 0..rounds {
            let rows = max_min::Rows {
                capacity_bps: &self.capacity,
                link_ptr: &self.link_ptr,
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
        let mut top_level = vec![0.0f64; self.capacity.len()];
        let mut bottleneck = vec![false; self.capacity.len()];
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for p in 0..paths {
            // Next to flows of much larger gain the rest of a link may round to nothing.
            let narrowest = self.path(p).iter().map(|&l| self.capacity[l as usize]).fold(f64::INFINITY, f64::min);
            rate[p] = rate[p].max(1e-16 * narrowest.min(demand[p]));
            let level = rate[p] / weight[p];
            (low, high) = (low.min(level), high.max(level));
            for &l in self.path(p) {
                top_level[l as usize] = top_level[l as usize].max(level);
            }
            if frozen_by[p] != max_min::NO_LINK {
                bottleneck[frozen_by[p] as usize] = true;
            }
        }
        let ln_price = |level: f64| self.alpha * (libm::log(level) + self.ln_level_unit);
        if paths > 0 && (self.alpha * libm::log(high / low) > 600.0 || ln_price(low).min(-ln_price(high)) < -690.0) {
            return Err(Fault::new(
                "policy.alpha",
                format!("at alpha = {} the marginal utilities leave the range of numbers", self.alpha),
                "use a smaller alpha, or max-min, which it comes close to",
            ));
        }
        let unit = if high > 0.0 { (low * high).sqrt() } else { 1.0 };
        let price = |(l, level): (usize, &f64)| {
            let at_level = self.level_to_price(level / unit);
            if bottleneck[l] { at_level } else { at_level * 0.1 }
        };
        self.price = top_level.iter().enumerate().map(price).collect();
        let mut load = vec![0.0; self.capacity.len()];
        for (p, rate) in rate.iter().enumerate() {
            self.path(p).iter().for_each(|&l| load[l as usize] += rate);
        }
        self.link_revenue = load.iter().zip(&self.price).map(|(load, price)| load * price).collect();
        if self.pooled() {
            let total = |f: usize| rate[self.paths_of(f)].iter().sum::<f64>();
            let marginal = |f: usize| self.level_to_price(total(f) / slope(f) / unit);
            let marginal: Vec<f64> = (0..self.flows.len()).map(marginal).collect();
            let revenue = marginal.iter().enumerate().map(|(f, marginal)| total(f) * marginal).collect();
            (self.revenue, self.start_rate, self.start_marginal) = (revenue, rate, marginal);
        }
        self.set_level_unit(unit);
        Ok(())
    }

    /// Prices of the case's links in these units, none so low that it could not rise again.
    pub fn scaled_prices(&self, prices: &[f64]) -> Vec<f64> {
        let ln_unit = self.alpha * self.ln_level_unit;
        let scaled = |(&l, start): (&LinkId, &f64)| match prices.get(l as usize) {
            Some(&price) if price > 0.0 => libm::exp(libm::log(price) + ln_unit).max(1e-6 * start),
            _ => 1e-6 * start,
        };
        self.links.iter().zip(&self.price).map(scaled).collect()
    }

    /// Takes the revenue of each pooled flow as it is now: its paths' barriers keep in proportion to it.
    pub fn reweigh(&mut self, prices: &[f64], rate: &[f64]) {
        let pooled = self.pooled();
        for f in (0..self.flows.len()).filter(|_| pooled) {
            let price = |p: usize| self.path(p).iter().map(|&l| prices[l as usize]).sum::<f64>();
            let revenue: f64 = self.paths_of(f).map(|p| rate[p] * price(p)).sum();
            if self.paths_of(f).len() > 1 && revenue > 0.0 {
                self.revenue[f] = revenue;
            }
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
        }
    }

    /// level^-alpha.
    pub fn level_to_price(&self, level: f64) -> f64 {
        libm::exp(-self.alpha * libm::log(level))
    }
}

/// `items` by their keys; those of one key stay in order.
fn counting_sort(items: Vec<u32>, key: impl Fn(usize) -> usize) -> Vec<u32> {
    let mut place = Vec::new();
    for &i in &items {
        let key = key(i as usize);
        place.resize(place.len().max(key + 1), 0);
        place[key] += 1;
    }
    let mut next = 0;
    for place in &mut place {
        next += std::mem::replace(place, next);
    }
    let mut sorted = vec![0; items.len()];
    for i in items {
        let place = &mut place[key(i as usize)];
        sorted[*place] = i;
        *place += 1;
    }
    sorted
}

#[inline(always)]
fn through<const N: usize, T: Copy>(
    paths: &[[u32; N]],
    first: usize,
    values: &[f64],
    answer: &mut impl FnMut(usize, f64) -> T,
    add: &mut impl FnMut(usize, T),
) {
    for (p, path) in paths.iter().enumerate() {
        let told = answer(first + p, path.iter().map(|&l| values[l as usize]).sum());
        path.iter().for_each(|&l| add(l as usize, told));
    }
}
