//! State of a central optimizer, and its steps.

use super::cluster::{Cluster, FlowKey};
use super::kernels::{self, Sums};
use super::normalize::{self, Normalizer};
use super::real::Real;
use super::{Answers, LANES, LawInput, PriceUpdate};
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
}

impl<T: Real, L: PriceUpdate<T>> NedIteration<T, L> {
    /// Starts with all prices 1, in the cluster's scale, as in the paper.
    pub fn new(cluster: Cluster<T>, law: L) -> Self {
        let mut price = vec![T::ONE; cluster.table()];
        price[cluster.padding().index()] = T::ZERO;
        price[cluster.dead().index()] = T::INFINITY;
        let sums = vec![[T::ZERO; 2]; cluster.links()];
        let (division, response) = (Reciprocal::Exact, FlowRates::default());
        let mut iteration = NedIteration { cluster, law, division, price, response, sums, steps: 0, restored: None };
        iteration.restore();
        iteration
    }

    /// Sets the computation of inverse prices.
    pub fn with_division(mut self, division: Reciprocal) -> Self {
        self.division = division;
        self
    }

    /// Runs one iteration: computes rates from prices, then prices from rates.
    pub fn step(&mut self) {
        self.respond();
        let NedIteration { cluster, law, price, response, sums, .. } = self;
        let answers = Around { cluster, response };
        let seen = LawInput { cluster, capacity: &cluster.capacity, sums, answers: &answers };
        law.update(&seen, &mut price[..cluster.links()]);
        self.steps += 1;
    }

    /// Computes rates from the present prices; the first half of [`NedIteration::step`].
    pub fn respond(&mut self) {
        self.restore();
        let NedIteration { cluster, division, price, response, sums, .. } = self;
        kernels::widest(response.step(cluster, *division, price, sums));
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
        let (cluster, response, sums) = (&self.cluster, &self.response, &self.sums);
        match normalizer {
            Normalizer::None => response.copy(cluster, out, T::ONE),
            Normalizer::Uniform => {
                let ratios = normalize::ratios(cluster, sums);
                let worst = ratios[..cluster.links()].iter().fold(T::ZERO, |a, &b| b.or_more(a));
                response.copy(cluster, out, T::ONE / worst.or_more(T::TINY));
            }
            Normalizer::Flow => {
                let ratios = normalize::ratios(cluster, sums);
                kernels::widest(response.divided(cluster, &ratios, out));
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

/// The loops of a step, compiled for the widest vector registers of the machine. Results do not depend on the width.
pub(super) struct Respond<'a, T> {
    cluster: &'a Cluster<T>,
    division: Reciprocal,
    price: &'a [T],
    response: &'a mut FlowRates<T>,
    sums: &'a mut [Sums<T>],
}

impl<T: Real> pulp::NullaryFnOnce for Respond<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.response.follow(self.cluster, self.division, self.price);
        self.response.gather(self.cluster, self.sums);
    }
}

/// F-NORM's loop, compiled like [`Respond`].
pub(super) struct Divided<'a, T> {
    cluster: &'a Cluster<T>,
    response: &'a FlowRates<T>,
    /// Load over capacity of each link.
    ratios: &'a [T],
    out: &'a mut Vec<T>,
}

impl<T: Real> pulp::NullaryFnOnce for Divided<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Divided { cluster, response, ratios, out } = self;
        out.resize(cluster.floor.len() * LANES, T::ZERO);
        let out = out.as_chunks_mut::<LANES>().0;
        let paths = &cluster.paths[..cluster.blocks() * cluster.width];
        kernels::worst_ratios(paths, cluster.width, ratios, |b, worst| {
            let Some(rates) = response.rates(cluster, b) else { return };
            for i in 0..LANES {
                out[b][i] = rates[i] / worst[i];
            }
        });
    }
}

impl<T: Real> FlowRates<T> {
    /// Arguments of the loops that read `price` and write `sums`.
    pub(super) fn step<'a>(
        &'a mut self,
        cluster: &'a Cluster<T>,
        division: Reciprocal,
        price: &'a [T],
        sums: &'a mut [Sums<T>],
    ) -> Respond<'a, T> {
        Respond { cluster, division, price, response: self, sums }
    }

    /// Arguments of the loop that divides each rate by the largest of `ratios` on its path.
    pub(super) fn divided<'a>(
        &'a self,
        cluster: &'a Cluster<T>,
        ratios: &'a [T],
        out: &'a mut Vec<T>,
    ) -> Divided<'a, T> {
        Divided { cluster, response: self, ratios, out }
    }

    /// Rate of one flow; 0 if it was added since the last step.
    pub(super) fn rate(&self, cluster: &Cluster<T>, key: FlowKey) -> T {
        self.rates(cluster, key.0 as usize / LANES).map_or(T::ZERO, |x| x[key.0 as usize % LANES])
    }

    /// Rate update (equation 3).
    #[inline(always)]
    fn follow(&mut self, cluster: &Cluster<T>, division: Reciprocal, price: &[T]) {
        let blocks = cluster.floor.len();
        self.inverse.resize(blocks, [T::ZERO; LANES]);
        let paths = &cluster.paths[..cluster.blocks() * cluster.width];
        let (floor, inverse) = (&cluster.floor, &mut self.inverse);
        match division {
            Reciprocal::Exact => kernels::inverse_prices::<T, false>(paths, cluster.width, price, floor, inverse),
            Reciprocal::Approximate => kernels::inverse_prices::<T, true>(paths, cluster.width, price, floor, inverse),
        }
        if cluster.plain() {
            self.pairs.clear();
            return;
        }
        self.pairs.resize(blocks, [[T::ZERO; 2]; LANES]);
        let each = self.pairs.iter_mut().zip(&self.inverse).zip(&cluster.gain).take(cluster.blocks());
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

    /// For each link the sum of its flows' rates (G without the capacity), and the sum of -dx/dq (-H).
    #[inline(always)]
    fn gather(&self, cluster: &Cluster<T>, sums: &mut [Sums<T>]) {
        let slices = &cluster.slices;
        let (inverse, pairs) = (self.inverse.as_flattened(), self.pairs.as_flattened());
        for (s, links) in slices.link.iter().enumerate() {
            let (first, used) = (slices.start[s] as usize, slices.used[s] as usize);
            let rows = &slices.entries[first..first + used];
            let slice = match pairs.is_empty() {
                true => kernels::gather_plain(rows, inverse),
                false => kernels::gather_pairs(rows, pairs),
            };
            for (&l, &sum) in links.iter().zip(&slice) {
                if let Some(place) = sums.get_mut(l.index()) {
                    *place = sum;
                }
            }
        }
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
        response.follow(cluster, Reciprocal::Exact, &price);
        response.gather(cluster, &mut sums);
        sums
    }
}
