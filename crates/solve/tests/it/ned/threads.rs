//! An iteration on several threads computes the same bits as on one, while flows, weights and capacities change.

use subak_core::LinkId;
use subak_core::rng::Stream;
use subak_solve::ned::straight::TwoTiers;
use subak_solve::ned::{AnyUpdate, Cluster, FlowKey, NedIteration, NedMethod, Normalizer, Real, Reciprocal};

const THREADS: [usize; 4] = [1, 2, 3, 8];

/// One iteration for each number of threads.
struct Twins<T> {
    each: Vec<NedIteration<T, AnyUpdate<T>>>,
    there: Vec<FlowKey>,
}

impl<T: Real> Twins<T> {
    fn new(capacity_bps: &[f64], alpha: f64, method: NedMethod, division: Reciprocal) -> Self {
        let one = |&threads: &usize| {
            let cluster = Cluster::new(capacity_bps, alpha).unwrap();
            NedIteration::new(cluster, method.law(None).unwrap()).with_division(division).with_threads(threads)
        };
        Twins { each: THREADS.iter().map(one).collect(), there: Vec::new() }
    }

    /// The same change of every cluster; its results must be the same too.
    fn change<R: PartialEq + std::fmt::Debug>(&mut self, change: impl Fn(&mut Cluster<T>) -> R) -> R {
        let mut results = self.each.iter_mut().map(|ned| change(ned.cluster_mut()));
        let first = results.next().unwrap();
        results.for_each(|result| assert_eq!(result, first));
        first
    }

    fn churn(&mut self, rng: &mut Stream, paths: &[Vec<LinkId>], round: usize) {
        let keeps = if round % 7 == 6 { 0.02 } else { 0.9 };
        for key in std::mem::take(&mut self.there) {
            if rng.unit() < keeps {
                self.there.push(key);
            } else {
                self.change(|cluster| cluster.remove(key)).unwrap();
            }
        }
        for _ in 0..rng.below(if round.is_multiple_of(7) { paths.len() } else { paths.len() / 8 }) {
            let path = &paths[rng.below(paths.len())];
            let weight = if round < 4 { 1.0 } else { (1 + rng.below(16)) as f64 };
            let demand_bps = if rng.unit() < 0.01 { 1e9 } else { f64::INFINITY };
            let key = self.change(|cluster| cluster.add_within(path, weight, demand_bps)).unwrap();
            self.there.push(key);
        }
        if round >= 4 {
            for &key in self.there.iter().step_by(50).collect::<Vec<_>>() {
                let weight = (1 + rng.below(16)) as f64;
                self.each.iter_mut().for_each(|ned| ned.cluster_mut().set_weight(key, weight).unwrap());
            }
        }
        let (l, capacity_bps) =
            (LinkId::from_index(rng.below(self.each[0].cluster().links())), rng.below(5) as f64 * 10e9);
        self.change(|cluster| cluster.set_capacity(l, capacity_bps)).unwrap();
    }

    /// Bits of rates, prices and loads.
    fn bits(ned: &NedIteration<T, AnyUpdate<T>>, keys: &[FlowKey]) -> Vec<u64> {
        let normalizers = [Normalizer::None, Normalizer::Uniform, Normalizer::Flow];
        let rates = normalizers.into_iter().flat_map(|n| ned.rates_bps(n, keys));
        rates.chain(ned.prices()).chain(ned.loads_bps()).map(f64::to_bits).collect()
    }

    fn step(&mut self) {
        self.each.iter_mut().for_each(NedIteration::step);
        let first = Self::bits(&self.each[0], &self.there);
        for ned in &self.each[1..] {
            assert!(Self::bits(ned, &self.there) == first, "{} threads compute other bits than one", ned.threads());
        }
    }
}

fn same<T: Real>(nodes: usize, flows: usize, alpha: f64, method: NedMethod, division: Reciprocal) {
    let tiers = TwoTiers { nodes };
    let paths = tiers.paths(flows, 3);
    let mut twins = Twins::<T>::new(&tiers.capacity_bps(), alpha, method, division);
    let mut rng = Stream::new(nodes as u64, "threads");
    for round in 0..14 {
        twins.churn(&mut rng, &paths, round);
        (0..3).for_each(|_| twins.step());
    }
    assert!(!twins.there.is_empty());
}

#[test]
fn threads_change_no_bit_while_flows_change() {
    for nodes in [48, 768, 4608] {
        same::<f32>(nodes, 8 * nodes, 1.0, NedMethod::Ned, Reciprocal::Exact);
        same::<f64>(nodes, 8 * nodes, 1.0, NedMethod::Ned, Reciprocal::Exact);
    }
    same::<f32>(768, 12_000, 1.0, NedMethod::Ned, Reciprocal::Approximate);
}

#[test]
fn threads_change_no_bit_of_other_laws_and_utilities() {
    for method in
        [NedMethod::Accelerated, NedMethod::Gradient, NedMethod::Fgm, NedMethod::NewtonLike, NedMethod::Newton]
    {
        same::<f64>(384, 6000, 1.0, method, Reciprocal::Exact);
    }
    same::<f64>(384, 6000, 0.5, NedMethod::Ned, Reciprocal::Exact);
}

#[test]
fn the_number_of_threads_may_change_between_steps() {
    let tiers = TwoTiers { nodes: 768 };
    let case_flows = tiers.paths(8000, 5);
    let start = || {
        let mut cluster = Cluster::<f64>::new(&tiers.capacity_bps(), 1.0).unwrap();
        case_flows.iter().for_each(|path| {
            cluster.add(path, 1.0).unwrap();
        });
        NedIteration::new(cluster, NedMethod::Ned.law(None).unwrap())
    };
    let (mut one, mut several) = (start(), start());
    for step in 0..20 {
        several.set_threads(step % 4);
        assert_eq!(several.threads(), (step % 4).max(1));
        one.step();
        several.step();
    }
    let bits = |ned: &NedIteration<f64, _>| {
        ned.rates_by_number(Normalizer::Flow).iter().map(|x: &f64| x.to_bits()).collect::<Vec<_>>()
    };
    assert!(bits(&one) == bits(&several));
}
