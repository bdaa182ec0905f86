//! Idle links, zero prices, failed links, churn, weights orders of magnitude apart: rates stay finite and feasible.

use super::{overload, random_datacenter, scatter_prices, start, steps_to, worst};
use crate::common::{Net, certified};
use subak_core::rng::Stream;
use subak_core::{Case, IdVec, LinkId, Policy};
use subak_solve::ned::straight::TwoTiers;
use subak_solve::ned::{
    Accelerated, Cluster, Fgm, FlowKey, Gradient, Ned, NedIteration, NewFlow, Newton, NewtonLike, Normalizer,
    PriceUpdate, Real,
};

const LOG: Policy = Policy::AlphaFair { alpha: 1.0 };

fn laws<T: Real>() -> [Box<dyn PriceUpdate<T>>; 6] {
    [
        Box::new(Ned::default()),
        Box::new(Gradient::default()),
        Box::new(Fgm::default()),
        Box::new(NewtonLike::default()),
        Box::new(Newton::default()),
        Box::new(Accelerated::default()),
    ]
}

#[test]
fn algorithm_1_by_hand() {
    // Two flows of weight 1 on a link of 1: at price 1 each has 1, G = 1, H = -2, so the price becomes 1 + 0.4 / 2.
    let case = Net::new(&[10e9]).flow(&[0]).flow(&[0]).case(LOG);
    let (mut ned, keys) = start::<f64, _>(&case, Ned::with_gamma(0.4));
    ned.step();
    assert!(worst(&ned.rates_bps(Normalizer::None, &keys), &[10e9, 10e9]) < 1e-15);
    assert!(worst(&ned.rates_bps(Normalizer::Uniform, &keys), &[5e9, 5e9]) < 1e-14);
    assert!((ned.prices().next().unwrap() * 10e9 - 1.2).abs() < 1e-12);
    ned.step();
    assert!(worst(&ned.rates_bps(Normalizer::None, &keys), &[10e9 / 1.2; 2]) < 1e-15);
}

#[test]
fn the_normalizers_by_hand() {
    // Rates of 1, 1 and 0.5 (prices 1, 1 and 2): the load of link 0 is twice its capacity, that of link 1 half.
    let case = Net::new(&[10e9, 10e9]).flow(&[0]).flow(&[0]).flow(&[1]).case(LOG);
    let (mut ned, keys) = start::<f64, _>(&case, Ned::default());
    ned.set_price(LinkId(1), 2.0 / 10e9).unwrap();
    ned.step();
    assert!(worst(&ned.rates_bps(Normalizer::None, &keys), &[10e9, 10e9, 5e9]) < 1e-14);
    assert!(worst(&ned.rates_bps(Normalizer::Uniform, &keys), &[5e9, 5e9, 2.5e9]) < 1e-14);
    assert!(worst(&ned.rates_bps(Normalizer::Flow, &keys), &[5e9, 5e9, 10e9]) < 1e-14, "F-NORM fills link 1");
}

#[test]
fn an_idle_link_keeps_its_price_and_a_lone_flow_has_its_line() {
    let case = Net::new(&[10e9, 40e9, 25e9]).flow(&[0, 1]).case(LOG);
    for law in laws::<f32>() {
        let (mut iteration, keys) = start(&case, law);
        let idle = iteration.prices().nth(2).unwrap();
        assert!(steps_to(&mut iteration, &keys, &[10e9], 1e-5, 2000).is_some());
        assert_eq!(iteration.prices().nth(2).unwrap(), idle);
    }
}

#[test]
fn no_flows_at_all_and_no_links() {
    for capacities in [&[][..], &[1e9], &[0.0]] {
        let mut ned = NedIteration::new(Cluster::<f64>::new(capacities, 1.0).unwrap(), Ned::default());
        (0..3).for_each(|_| ned.step());
        for normalizer in [Normalizer::None, Normalizer::Uniform, Normalizer::Flow] {
            assert!(ned.rates_bps(normalizer, &[]).is_empty());
        }
    }
}

#[test]
fn prices_of_zero_are_left_again() {
    let case = Net::new(&[10e9, 10e9]).flow(&[0, 1]).flow(&[0]).flow(&[0]).flow(&[1]).case(LOG);
    let want = certified(&case).rates_bps;
    for law in [
        Box::new(Ned::default()) as Box<dyn PriceUpdate<f64>>,
        Box::new(Newton::default()),
        Box::new(Accelerated::default()),
    ] {
        let (mut iteration, keys) = start(&case, law);
        (0..2).for_each(|l| iteration.set_price(LinkId(l), 0.0).unwrap());
        assert!(steps_to(&mut iteration, &keys, &want, 1e-6, 500).is_some());
    }
}

#[test]
fn a_thousand_flows_on_a_link() {
    let paths = |f: usize| if f.is_multiple_of(10) { vec![0, 1] } else { vec![0] };
    let case = (0..1000).fold(Net::new(&[100e9, 1e9]), |net, f| net.flow(&paths(f))).case(LOG);
    let want = certified(&case).rates_bps;
    let (mut ned, keys) = start::<f32, _>(&case, Ned::default());
    let steps = steps_to(&mut ned, &keys, &want, 1e-3, 2000);
    assert!(steps.is_some_and(|s| s < 100), "{steps:?}");
    assert!(overload(&case, &ned.rates_bps(Normalizer::Flow, &keys)) <= 1e-6);
}

/// Flows with small weights converge last: NED converges at once only for flows with large weights, accelerated NED for
/// all flows.
#[test]
fn weights_over_six_orders() {
    for seed in 0..20 {
        let mut rng = Stream::new(seed, "weights");
        let mut case = random_datacenter(seed, 1.0);
        for f in 0..case.flows.len() {
            case.flows.set_weight(f, 10f64.powf(6.0 * rng.unit() - 3.0)).unwrap();
        }
        let want = certified(&case).rates_bps;
        let (mut ned, keys) = start::<f64, _>(&case, Ned::default());
        (0..1000).for_each(|_| ned.step());
        let rates = ned.rates_bps(Normalizer::Flow, &keys);
        let weighted = |f: usize| case.flows.weight()[f] * (rates[f] / want[f]).ln();
        let lost: f64 = (0..want.len()).map(weighted).sum::<f64>() / case.flows.weight().iter().sum::<f64>();
        assert!(lost.abs() < 1e-3, "network {seed}: {lost}");
        let (mut accelerated, keys) = start::<f64, _>(&case, Accelerated::default());
        assert!(steps_to(&mut accelerated, &keys, &want, 1e-3, 20_000).is_some(), "network {seed}");
    }
}

#[test]
fn other_utilities() {
    for alpha in [0.5, 2.0] {
        for seed in 0..10 {
            let case = random_datacenter(seed, alpha);
            let want = certified(&case).rates_bps;
            let (mut ned, keys) = start::<f64, _>(&case, Ned::default());
            assert!(steps_to(&mut ned, &keys, &want, 1e-3, 50_000).is_some(), "alpha {alpha}, network {seed}");
        }
    }
}

#[test]
fn demands_bound_rates() {
    let case = Net::new(&[10e9]).flow(&[0]).flow(&[0]).with(|f| f.demand_bps = Some(1e9)).case(LOG);
    let (mut ned, keys) = start::<f64, _>(&case, Ned::default());
    assert!(steps_to(&mut ned, &keys, &[9e9, 1e9], 1e-3, 1000).is_some());
}

#[test]
fn a_failed_link_carries_nothing_and_comes_back() {
    for law in laws::<f32>() {
        let case = Net::new(&[10e9, 10e9]).flow(&[0]).flow(&[0, 1]).flow(&[1]).case(LOG);
        let (mut iteration, keys) = start(&case, law);
        (0..5).for_each(|_| iteration.step());
        iteration.cluster_mut().set_capacity(LinkId(1), 0.0).unwrap();
        iteration.step();
        assert_eq!(&iteration.rates_bps(Normalizer::Flow, &keys)[1..], &[0.0, 0.0], "from the first step on");
        (0..2000).for_each(|_| iteration.step());
        for normalizer in [Normalizer::None, Normalizer::Uniform, Normalizer::Flow] {
            let rates = iteration.rates_bps(normalizer, &keys);
            assert!((rates[0] / 10e9 - 1.0).abs() < 1e-2, "{normalizer:?}: {rates:?}");
            assert_eq!(&rates[1..], &[0.0, 0.0]);
        }
        iteration.cluster_mut().set_capacity(LinkId(1), 10e9).unwrap();
        (0..2000).for_each(|_| iteration.step());
        assert!(iteration.rates_bps(Normalizer::Flow, &keys).iter().all(|r| *r > 1e9));
    }
}

/// Any number of flows start and end. Rates after F-NORM are feasible at every step, under every update rule, in both
/// precisions.
fn fits_under_churn<T: Real>() {
    for (k, _) in laws::<T>().iter().enumerate() {
        for seed in 0..8 {
            let law = laws::<T>().into_iter().nth(k).unwrap();
            let case = random_datacenter(seed, 1.0);
            let whole: Vec<f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
            let mut capacities = whole.clone();
            let mut iteration = NedIteration::new(Cluster::<T>::new(&capacities, 1.0).unwrap(), law);
            let mut rng = Stream::new(seed, "churn");
            let mut there: Vec<(usize, FlowKey)> = Vec::new();
            for round in 0..30 {
                let everything = round % 10 == 9;
                there.retain(|&(_, key)| {
                    let goes = everything || rng.unit() < 0.2;
                    if goes {
                        iteration.cluster_mut().remove(key).unwrap();
                    }
                    !goes
                });
                for _ in 0..rng.below(case.flows.len() + 1) {
                    let f = rng.below(case.flows.len());
                    let key = iteration.cluster_mut().add(case.flows.links_of(f), case.flows.weight()[f]).unwrap();
                    there.push((f, key));
                }
                assert_eq!(iteration.cluster().len(), there.len());
                // A link fails, and an earlier failed one recovers.
                let l = rng.below(whole.len());
                capacities[l] = if capacities[l] > 0.0 { 0.0 } else { whole[l] };
                iteration.cluster_mut().set_capacity(LinkId::from_index(l), capacities[l]).unwrap();
                for _ in 0..3 {
                    iteration.step();
                    fits(&case, &capacities, &iteration, &there);
                }
            }
        }
    }
}

fn fits<T: Real, L: PriceUpdate<T>>(
    case: &Case,
    capacities: &[f64],
    iteration: &NedIteration<T, L>,
    there: &[(usize, FlowKey)],
) {
    let keys: Vec<FlowKey> = there.iter().map(|t| t.1).collect();
    for normalizer in [Normalizer::Flow, Normalizer::Uniform] {
        let rates = iteration.rates_bps(normalizer, &keys);
        assert!(rates.iter().all(|r| r.is_finite() && *r >= 0.0), "{rates:?}");
        let mut load = IdVec::<LinkId, f64>::filled(0.0, case.network.links().len());
        for ((f, _), rate) in there.iter().zip(&rates) {
            case.flows.links_of(*f).iter().for_each(|&l| load[l] += rate);
        }
        for ((load, capacity), link) in load.iter().zip(capacities).zip(case.network.links()) {
            assert!(*load <= capacity * (1.0 + 1e-6), "{normalizer:?}: {load} over {}", link.id);
        }
    }
    assert!(iteration.prices().zip(capacities).all(|(p, &c)| p >= 0.0 && p.is_finite() == (c > 0.0)));
}

#[test]
fn normalized_rates_fit_under_churn_in_double_precision() {
    fits_under_churn::<f64>();
}

#[test]
fn normalized_rates_fit_under_churn_in_single_precision() {
    fits_under_churn::<f32>();
}

#[test]
fn normalized_rates_fit_from_scattered_prices() {
    for seed in 0..40 {
        let case = random_datacenter(seed, 1.0);
        let (mut ned, keys) = start::<f32, _>(&case, Ned::default());
        scatter_prices(&mut ned, seed);
        for _ in 0..50 {
            ned.step();
            assert!(overload(&case, &ned.rates_bps(Normalizer::Flow, &keys)) <= 1e-6);
        }
    }
}

/// A batch so large that flows are stored in another order than given.
#[test]
fn a_large_batch_is_the_same_problem() {
    let tiers = TwoTiers { nodes: 384 };
    let paths = tiers.paths(10_000, 3);
    let weight = |f: usize| (1 + f % 5) as f64;
    let flow = |(f, path)| NewFlow { path, ln_gain: f64::ln(weight(f)), demand_bps: f64::INFINITY };
    let flows: Vec<NewFlow<'_>> = paths.iter().map(|p| &p[..]).enumerate().map(flow).collect();
    let empty = || Cluster::<f64>::new(&tiers.capacity_bps(), 1.0).unwrap();
    let (mut at_once, mut one_by_one) = (empty(), empty());
    let keys = at_once.add_all(&flows).unwrap();
    let single: Vec<FlowKey> = (0..flows.len()).map(|f| one_by_one.add(&paths[f], weight(f)).unwrap()).collect();
    for (f, key) in keys.iter().enumerate() {
        assert!(at_once.path(*key).eq(paths[f].iter().copied()));
    }
    let [a, b] = [(at_once, keys), (one_by_one, single)].map(|(cluster, keys)| {
        let mut ned = NedIteration::new(cluster, Ned::default());
        (0..30).for_each(|_| ned.step());
        ned.rates_bps(Normalizer::Flow, &keys)
    });
    assert!(worst(&a, &b) < 1e-9);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let place = |fault: subak_core::InputError| fault.place;
    assert_eq!(place(Cluster::<f64>::new(&[1e9, f64::NAN], 1.0).unwrap_err()), "capacity");
    assert_eq!(place(Cluster::<f64>::new(&[1e9], 0.0).unwrap_err()), "alpha");
    let mut cluster = Cluster::<f64>::new(&[1e9, 1e9], 1.0).unwrap();
    let paths: [&[LinkId]; 3] = [&[], &LinkId::each([2]), &LinkId::each([0, 1, 0])];
    for path in paths {
        assert_eq!(place(cluster.add(path, 1.0).unwrap_err()), "path");
    }
    assert_eq!(place(cluster.add(&[LinkId(0)], -1.0).unwrap_err()), "weight");
    let key = cluster.add(&[LinkId(0)], 1.0).unwrap();
    cluster.remove(key).unwrap();
    assert_eq!(place(cluster.remove(key).unwrap_err()), "flow");
    assert_eq!(place(cluster.set_capacity(LinkId(7), 1e9).unwrap_err()), "link");
    assert!(cluster.is_empty());
    let pooled = Net::new(&[1e9, 1e9]).pooled(&[&[0], &[1]]).case(LOG);
    assert_eq!(place(Cluster::<f64>::of(&pooled).unwrap_err()), "flows");
}

/// A second F-NORM distributes what the first left, and no link exceeds its capacity.
#[test]
fn normalizing_again_fits_the_links_and_takes_nobody_anything_away() {
    let mut rng = Stream::new(7, "again");
    for _ in 0..200 {
        let links = 2 + rng.below(8);
        let capacity_bps: Vec<f64> = (0..links).map(|_| 1e9 * (1 + rng.below(40)) as f64).collect();
        let mut ned = NedIteration::new(Cluster::<f64>::new(&capacity_bps, 1.0).unwrap(), Ned::default());
        let mut paths = Vec::new();
        for _ in 0..1 + rng.below(30) {
            let mut path: Vec<LinkId> = LinkId::first(links).filter(|_| rng.unit() < 0.4).collect();
            if path.is_empty() {
                path.push(LinkId::from_index(rng.below(links)));
            }
            paths.push((ned.cluster_mut().add(&path, 1.0).unwrap(), path));
        }
        (0..rng.below(20)).for_each(|_| ned.step());
        ned.step();
        let mut rates = Vec::new();
        ned.normalize(Normalizer::Flow, &mut rates);
        let before = rates.clone();
        ned.normalize_again(&mut rates);
        let unit_bps = ned.cluster().unit_bps();
        let mut load_bps = IdVec::<LinkId, f64>::filled(0.0, links);
        for (key, path) in &paths {
            let (rate, was) = (rates[key.slot()], before[key.slot()]);
            assert!(rate >= was * (1.0 - 1e-9), "{rate} after {was}");
            path.iter().for_each(|&l| load_bps[l] += rate * unit_bps);
        }
        assert!(load_bps.iter().zip(&capacity_bps).all(|(load, c)| *load <= c * (1.0 + 1e-9)), "{load_bps:?}");
        assert!(load_bps.iter().zip(&capacity_bps).any(|(load, c)| load / c > 0.999), "{load_bps:?}");
    }
}
