//! State of a central optimizer, and its steps.

use super::cluster::{Cluster, FlowKey};
use super::kernels::{self, Sums};
use super::normalize::{self, Normalizer};
use super::real::Real;
use super::slices::Slices;
use super::team::Team;
use super::{Answers, LANES, LawInput, PriceUpdate};
use std::ops::Range;
use subak_core::{IdVec, InputError, LinkId};

/// The computation of inverse prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reciprocal {
    /// Division.
    #[default]
    Exact,
    /// An approximation and two Newton steps, in single precision: the paper's -RT variants.
    Approximate,
}

/// State of a central optimizer, step by step, over flows that start and end.
#[derive(Debug, Clone)]
pub struct NedIteration<T, L> {
    cluster: Cluster<T>,
    law: L,
    division: Reciprocal,
    team: Team,
    /// Price of each link, followed by those of [`Cluster::padding`] and [`Cluster::dead`].
    price: Vec<T>,
    response: FlowRates<T>,
    sums: Vec<Sums<T>>,
    steps: u64,
    /// Version of the cluster at which the prices of failed and recovered links were last set.
    restored: Option<u64>,
}

/// Flow rates and their derivatives at the current prices.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowRates<T> {
    /// 1/q of the flow in each slot, with q the flow's path price.
    inverse: Vec<[T; LANES]>,
    /// Rate x and -dx/dq of each flow (q: path price); empty if both follow from 1/q alone.
    pairs: Vec<[[T; 2]; LANES]>,
    /// Sums of each slice's links, if several threads compute them.
    sliced: Vec<[Sums<T>; LANES]>,
}

/// Blocks of flows and rows of slices for each thread, below which one thread is as fast.
const LEAST: usize = 64;

impl<T: Real, L: PriceUpdate<T>> NedIteration<T, L> {
    /// Starts with all prices 1, in the cluster's scale, as in the paper.
    pub fn new(cluster: Cluster<T>, law: L) -> Self {
        let mut price = vec![T::ONE; cluster.table()];
        price[cluster.padding().index()] = T::ZERO;
        price[cluster.dead().index()] = T::INFINITY;
        let sums = vec![[T::ZERO; 2]; cluster.links()];
        let (division, team, response) = (Reciprocal::Exact, Team::new(1), FlowRates::default());
        let (steps, restored) = (0, None);
        let mut iteration = NedIteration { cluster, law, division, team, price, response, sums, steps, restored };
        iteration.restore();
        iteration
    }

    /// Sets the computation of inverse prices.
    pub fn with_division(mut self, division: Reciprocal) -> Self {
        self.division = division;
        self
    }

    /// Sets the number of threads that run a step and F-NORM; results are the same bits for any number. The other threads
    /// wait between steps: they spin for some microseconds, and then sleep.
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.set_threads(threads);
        self
    }

    /// Sets the number of threads: see [`NedIteration::with_threads`].
    pub fn set_threads(&mut self, threads: usize) {
        if self.team.threads() != threads.max(1) {
            self.team = Team::new(threads);
        }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    /// Runs one iteration: computes rates from prices, then prices from rates.
    pub fn step(&mut self) {
        self.respond();
        let NedIteration { cluster, law, team, price, response, sums, .. } = self;
        let answers = Around { cluster, response, team };
        let seen = LawInput { cluster, capacity: &cluster.capacity, sums, team, answers: &answers };
        law.update(&seen, &mut price[..cluster.links()]);
        self.steps += 1;
    }

    /// Computes rates from the present prices; the first half of [`NedIteration::step`].
    pub fn respond(&mut self) {
        self.restore();
        let NedIteration { cluster, division, team, price, response, sums, .. } = self;
        response.respond(cluster, *division, price, sums, team);
    }

    /// Sets the prices of newly failed links to infinity, and those of recovered links to 1.
    fn restore(&mut self) {
        if self.restored == Some(self.cluster.version) {
            return;
        }
        self.restored = Some(self.cluster.version);
        for (price, &capacity) in self.price.iter_mut().zip(&self.cluster.capacity) {
            if capacity <= T::ZERO {
                *price = T::INFINITY;
            } else if *price >= T::INFINITY {
                *price = T::ONE;
            }
        }
    }

    /// The flows and links.
    pub fn cluster(&self) -> &Cluster<T> {
        &self.cluster
    }

    /// Mutable access to flows and links; rates are updated at the next step.
    pub fn cluster_mut(&mut self) -> &mut Cluster<T> {
        &mut self.cluster
    }

    /// Number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Price of each link, in utility per bit/s; infinite for a failed link.
    pub fn prices(&self) -> impl Iterator<Item = f64> + '_ {
        let unit = self.cluster.price_unit();
        self.price[..self.cluster.links()].iter().map(move |p| p.f64() * unit)
    }

    /// Sets a link's price, in utility per bit/s.
    pub fn set_price(&mut self, link: LinkId, price: f64) -> Result<(), InputError> {
        let scaled = T::of(price / self.cluster.price_unit());
        if !(scaled >= T::ZERO && scaled < T::INFINITY) {
            return Err(InputError::new("price", format!("it is {price}"), "give a finite price of zero or more"));
        }
        let links = self.cluster.links();
        match self.price[..links].get_mut(link.index()) {
            Some(price) => *price = scaled,
            None => return Err(InputError::new("link", format!("there is no link {link}"), "give one that exists")),
        }
        self.restored = None;
        self.restore();
        Ok(())
    }

    /// Load of each link before normalization at the last step, bit/s.
    pub fn loads_bps(&self) -> impl Iterator<Item = f64> + '_ {
        self.sums.iter().map(|s| s[0].f64() * self.cluster.unit_bps())
    }

    /// Rate of a flow before normalization at the last step, bit/s; 0 for a flow added since.
    pub fn rate_bps(&self, key: FlowKey) -> f64 {
        self.response.rate(&self.cluster, key).f64() * self.cluster.unit_bps()
    }

    /// Normalized rates of the last step, by slot, in the cluster's scale. No flow or link may have changed since.
    pub fn normalize(&self, normalizer: Normalizer, out: &mut Vec<T>) {
        let NedIteration { cluster, team, response, sums, .. } = self;
        match normalizer {
            Normalizer::None => response.copy(cluster, out, T::ONE),
            Normalizer::Uniform => {
                let ratios = normalize::ratios(cluster, sums, team);
                let worst = ratios[..cluster.links()].iter().fold(T::ZERO, |a, &b| b.or_more(a));
                response.copy(cluster, out, T::ONE / worst.or_more(T::TINY));
            }
            Normalizer::Flow => {
                let ratios = normalize::ratios(cluster, sums, team);
                response.divide(cluster, &ratios, out, team);
            }
        }
        // Where a path has spare capacity, normalization raises rates.
        cluster.bound(out);
    }

    /// Applies F-NORM a second time to normalized `rates`: a flow whose links have spare capacity gets a higher rate.
    /// This is an addition; the paper normalizes once.
    pub fn normalize_again(&self, rates: &mut [T]) {
        let cluster = &self.cluster;
        let mut ratio = IdVec::<LinkId, f64>::filled(0.0, cluster.links());
        for (key, rate) in cluster.keys().filter_map(|key| Some((key, rates.get(key.slot())?.f64()))) {
            cluster.path(key).for_each(|l| ratio[l] += rate);
        }
        // The sum of each link is rounded up, so that the resulting rates are feasible.
        let margin = normalize::margin::<T>(cluster.len().max(1));
        for (ratio, capacity) in ratio.iter_mut().zip(&cluster.capacity) {
            *ratio = if capacity.f64() > 0.0 { *ratio * margin / capacity.f64() } else { f64::INFINITY };
        }
        for key in cluster.keys().filter(|key| key.slot() < rates.len()).collect::<Vec<_>>() {
            let fullest = cluster.path(key).map(|l| ratio[l]).fold(0.0, f64::max);
            if fullest > 0.0 {
                rates[key.slot()] = T::of(rates[key.slot()].f64() / fullest);
            }
        }
        cluster.bound(rates);
    }

    /// Normalized rates, bit/s, by flow number ([`FlowKey::number`](super::FlowKey::number)); 0 for unused numbers.
    /// The first value belongs to no flow.
    pub fn rates_by_number(&self, normalizer: Normalizer) -> Vec<T> {
        let mut rates = Vec::new();
        self.normalize(normalizer, &mut rates);
        rates.resize(self.cluster.numbers() + 1, T::ZERO);
        let unit = T::of(self.cluster.unit_bps());
        rates.iter_mut().for_each(|x| *x = *x * unit);
        rates
    }

    /// The normalized rates of `keys`, bit/s.
    pub fn rates_bps(&self, normalizer: Normalizer, keys: &[FlowKey]) -> Vec<f64> {
        let mut slots = Vec::new();
        self.normalize(normalizer, &mut slots);
        let unit = self.cluster.unit_bps();
        keys.iter().map(|k| slots.get(k.0 as usize).map_or(0.0, |x| x.f64() * unit)).collect()
    }
}

/// The rate update of some blocks of flows, compiled for the widest vector registers of the machine. Results do not depend
/// on the width.
struct Follow<'a, T> {
    cluster: &'a Cluster<T>,
    division: Reciprocal,
    price: &'a [T],
    paths: &'a [[LinkId; LANES]],
    floor: &'a [[T; LANES]],
    gain: &'a [[T; LANES]],
    inverse: &'a mut [[T; LANES]],
    /// Empty if both values follow from 1/q alone.
    pairs: &'a mut [[[T; 2]; LANES]],
}

impl<T: Real> pulp::NullaryFnOnce for Follow<'_, T> {
    type Output = ();

    /// Equation 3.
    #[inline(always)]
    fn call(self) {
        let Follow { cluster, division, price, paths, floor, gain, inverse, pairs } = self;
        match division {
            Reciprocal::Exact => kernels::inverse_prices::<T, false>(paths, cluster.width, price, floor, inverse),
            Reciprocal::Approximate => kernels::inverse_prices::<T, true>(paths, cluster.width, price, floor, inverse),
        }
        let each = pairs.iter_mut().zip(&*inverse).zip(gain).take(paths.len() / cluster.width);
        if cluster.alpha == 1.0 {
            for ((pairs, inverse), gain) in each {
                for i in 0..LANES {
                    let x = gain[i] * inverse[i];
                    pairs[i] = [x, x * inverse[i]];
                }
            }
        } else {
            let alpha = cluster.alpha;
            for ((pairs, inverse), gain) in each {
                for i in 0..LANES {
                    let x = libm::pow((gain[i] * inverse[i]).f64(), 1.0 / alpha);
                    pairs[i] = [T::of(x), T::of(x * inverse[i].f64() / alpha)];
                }
            }
        }
    }
}

/// The sums of some slices of links, compiled like [`Follow`].
struct Gather<'a, T, F> {
    slices: &'a Slices,
    which: Range<usize>,
    inverse: &'a [T],
    pairs: &'a [Sums<T>],
    with: F,
}

impl<T: Real, F: FnMut(usize, [Sums<T>; LANES])> pulp::NullaryFnOnce for Gather<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Gather { slices, which, inverse, pairs, mut with } = self;
        for s in which {
            let (first, used) = (slices.start[s] as usize, slices.used[s] as usize);
            let rows = &slices.entries[first..first + used];
            let sums = match pairs.is_empty() {
                true => kernels::gather_plain(rows, inverse),
                false => kernels::gather_pairs(rows, pairs),
            };
            with(s, sums);
        }
    }
}

/// F-NORM's loop over some blocks of flows, compiled like [`Follow`].
struct Divide<'a, T> {
    cluster: &'a Cluster<T>,
    response: &'a FlowRates<T>,
    /// Load over capacity of each link.
    ratios: &'a [T],
    /// Index of the first block.
    first: usize,
    paths: &'a [[LinkId; LANES]],
    out: &'a mut [[T; LANES]],
}

impl<T: Real> pulp::NullaryFnOnce for Divide<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Divide { cluster, response, ratios, first, paths, out } = self;
        kernels::worst_ratios(paths, cluster.width, ratios, |b, worst| {
            let Some(rates) = response.rates(cluster, first + b) else { return };
            for i in 0..LANES {
                out[b][i] = rates[i] / worst[i];
            }
        });
    }
}

impl<T: Real> FlowRates<T> {
    /// Computes the rates of flows at `price`, and then the sums of links.
    pub(super) fn respond(
        &mut self,
        cluster: &Cluster<T>,
        division: Reciprocal,
        price: &[T],
        sums: &mut [Sums<T>],
        team: &Team,
    ) {
        self.follow(cluster, division, price, team);
        self.gather(cluster, sums, team);
    }

    /// Divides each rate by the largest of `ratios` on its path.
    pub(super) fn divide(&self, cluster: &Cluster<T>, ratios: &[T], out: &mut Vec<T>, team: &Team) {
        out.resize(cluster.floor.len() * LANES, T::ZERO);
        let (blocks, width) = (cluster.blocks(), cluster.width);
        let part = team.part(blocks, LEAST);
        let out = out.as_chunks_mut::<LANES>().0.chunks_mut(part);
        let parts = cluster.paths[..blocks * width].chunks(part * width).zip(out).enumerate();
        let parts =
            parts.map(|(k, (paths, out))| Divide { cluster, response: self, ratios, first: k * part, paths, out });
        team.each(parts, kernels::widest);
    }

    /// Rate of one flow; 0 if it was added since the last step.
    pub(super) fn rate(&self, cluster: &Cluster<T>, key: FlowKey) -> T {
        self.rates(cluster, key.0 as usize / LANES).map_or(T::ZERO, |x| x[key.0 as usize % LANES])
    }

    /// Rate update (equation 3).
    fn follow(&mut self, cluster: &Cluster<T>, division: Reciprocal, price: &[T], team: &Team) {
        let (blocks, used, width) = (cluster.floor.len(), cluster.blocks(), cluster.width);
        self.inverse.resize(blocks, [T::ZERO; LANES]);
        match cluster.plain() {
            true => self.pairs.clear(),
            false => self.pairs.resize(blocks, [[T::ZERO; 2]; LANES]),
        }
        // Whole runs of the first loop.
        let part = team.part(used, LEAST).next_multiple_of(kernels::RUN);
        let mut pairs = self.pairs.chunks_mut(part);
        let tables = cluster.floor.chunks(part).zip(cluster.gain.chunks(part)).zip(self.inverse.chunks_mut(part));
        let parts = cluster.paths[..used * width].chunks(part * width).zip(tables);
        let parts = parts.map(|(paths, ((floor, gain), inverse))| {
            let pairs = pairs.next().unwrap_or_default();
            Follow { cluster, division, price, paths, floor, gain, inverse, pairs }
        });
        team.each(parts, kernels::widest);
    }

    /// For each link the sum of its flows' rates (G without the capacity), and the sum of -dx/dq (-H).
    fn gather(&mut self, cluster: &Cluster<T>, sums: &mut [Sums<T>], team: &Team) {
        let (slices, inverse, pairs) = (&cluster.slices, self.inverse.as_flattened(), self.pairs.as_flattened());
        let count = slices.link.len();
        let parts = slices.parts(team.threads(), LEAST);
        if parts.len() <= 1 {
            let with = |s: usize, slice: [Sums<T>; LANES]| {
                for (&l, &sum) in slices.link[s].iter().zip(&slice) {
                    if let Some(place) = sums.get_mut(l.index()) {
                        *place = sum;
                    }
                }
            };
            kernels::widest(Gather { slices, which: 0..count, inverse, pairs, with });
            return;
        }
        self.sliced.resize(count, [[T::ZERO; 2]; LANES]);
        let mut rest = &mut self.sliced[..];
        let parts = parts.into_iter().map(|which| {
            let out;
            (out, rest) = std::mem::take(&mut rest).split_at_mut(which.len());
            (which, out)
        });
        team.each(parts, |(which, out)| {
            let first = which.start;
            let with = |s: usize, slice| out[s - first] = slice;
            kernels::widest(Gather { slices, which, inverse, pairs, with });
        });
        // No two threads write the same link.
        let (sliced, part) = (self.sliced.as_flattened(), team.part(sums.len(), LEAST * LANES));
        team.each(sums.chunks_mut(part).zip(slices.places().chunks(part)), |(sums, places)| {
            for (sum, &place) in sums.iter_mut().zip(places) {
                *sum = sliced[place as usize];
            }
        });
    }

    /// Rates of the flows of a block; `None` for a block added since the last step.
    #[inline(always)]
    fn rates(&self, cluster: &Cluster<T>, block: usize) -> Option<[T; LANES]> {
        if cluster.plain() && self.pairs.is_empty() {
            return self.inverse.get(block).copied();
        }
        self.pairs.get(block).map(|pairs| pairs.map(|p| p[0]))
    }

    #[inline(always)]
    fn copy(&self, cluster: &Cluster<T>, out: &mut Vec<T>, scale: T) {
        out.clear();
        for b in 0..cluster.floor.len() {
            let rates = self.rates(cluster, b).unwrap_or([T::ZERO; LANES]);
            out.extend(rates.map(|x| x * scale));
        }
    }
}

/// Input of price updates that need more than the diagonal of the Hessian.
#[derive(Debug)]
struct Around<'a, T> {
    cluster: &'a Cluster<T>,
    response: &'a FlowRates<T>,
    team: &'a Team,
}

impl<T: Real> Answers<T> for Around<'_, T> {
    fn hessian_times(&self, change: &[T], product: &mut [T]) {
        let cluster = self.cluster;
        product.fill(T::ZERO);
        for key in cluster.keys() {
            let (block, lane) = (key.0 as usize / LANES, key.0 as usize % LANES);
            let answer = match self.response.pairs.get(block) {
                Some(pairs) => pairs[lane][1],
                None => self.response.inverse[block][lane] * self.response.inverse[block][lane],
            };
            let mut sum = T::ZERO;
            cluster.path(key).for_each(|l| sum += change[l.index()]);
            cluster.path(key).for_each(|l| product[l.index()] += answer * sum);
        }
    }

    fn at_floor(&self) -> Vec<[T; 2]> {
        let cluster = self.cluster;
        let mut price = vec![T::ZERO; cluster.table()];
        price[cluster.dead().index()] = T::INFINITY;
        for (price, &capacity) in price.iter_mut().zip(&cluster.capacity) {
            *price = if capacity > T::ZERO { T::ZERO } else { T::INFINITY };
        }
        let (mut response, mut sums) = (FlowRates::default(), vec![[T::ZERO; 2]; cluster.links()]);
        response.respond(cluster, Reciprocal::Exact, &price, &mut sums, self.team);
        sums
    }
}
