//! Convergence of the update rules from any start.

use super::{random_datacenter, scatter_prices, start, steps_to};
use crate::common::{Net, certified};
use subak_core::Policy;
use subak_solve::ned::{
    Accelerated, Cluster, Fgm, Gradient, Ned, NedIteration, Newton, NewtonLike, PriceUpdate, Reciprocal,
};

fn quantile(steps: &[usize], q: f64) -> usize {
    let mut sorted = steps.to_vec();
    sorted.sort_unstable();
    let place = ((sorted.len() - 1) as f64 * q).round() as usize;
    sorted[place]
}

/// Number of steps to within a thousandth on random networks, from random prices. A network that does not converge
/// counts as `most`.
fn steps_of<L: PriceUpdate<f64>>(networks: u64, most: usize, law: impl Fn() -> L) -> Vec<usize> {
    let steps = |seed| {
        let case = random_datacenter(seed, 1.0);
        let want = certified(&case).rates_bps;
        let (mut iteration, keys) = start::<f64, L>(&case, law());
        scatter_prices(&mut iteration, seed);
        steps_to(&mut iteration, &keys, &want, 1e-3, most).unwrap_or(most)
    };
    (0..networks).map(steps).collect()
}

#[test]
fn ned_settles_on_every_network_from_any_start() {
    let steps = steps_of(200, 20_000, Ned::default);
    println!("steps at the median, 90%, 99% and worst: {:?}", [0.5, 0.9, 0.99, 1.0].map(|q| quantile(&steps, q)));
    assert!(steps.iter().all(|&s| s < 20_000), "{steps:?}");
}

#[test]
fn acceleration_settles_everywhere_too_and_sooner() {
    let (plain, accelerated) = (steps_of(60, 20_000, Ned::default), steps_of(60, 20_000, Accelerated::default));
    println!("accelerated: {:?}", [0.5, 0.9, 0.99, 1.0].map(|q| quantile(&accelerated, q)));
    assert!(accelerated.iter().all(|&s| s < 20_000), "{accelerated:?}");
    assert!(quantile(&accelerated, 0.9) < quantile(&plain, 0.9));
}

/// The baselines are slow or unstable on large networks, as in the paper; on a small one each finds the optimum.
#[test]
fn every_law_settles_on_a_small_network() {
    let case = Net::new(&[10e9, 8e9, 12e9]).flow(&[0, 1]).flow(&[0]).flow(&[1, 2]).flow(&[2]).flow(&[2]);
    let case = case.case(Policy::AlphaFair { alpha: 1.0 });
    let want = certified(&case).rates_bps;
    let laws: [(&str, Box<dyn PriceUpdate<f64>>); 4] = [
        ("newton", Box::new(Newton::default())),
        ("newton-like", Box::new(NewtonLike::default())),
        ("gradient", Box::new(Gradient::default())),
        ("fgm", Box::new(Fgm::default())),
    ];
    for (name, law) in laws {
        let (mut iteration, keys) = start(&case, law);
        let steps = steps_to(&mut iteration, &keys, &want, 1e-3, 20_000);
        println!("{name}: {steps:?}");
        assert!(steps.is_some(), "{name}");
    }
}

#[test]
fn single_precision_and_quick_reciprocals() {
    for division in [Reciprocal::Exact, Reciprocal::Approximate] {
        let mut all = Vec::new();
        for seed in 0..60 {
            let case = random_datacenter(seed, 1.0);
            let want = certified(&case).rates_bps;
            let (cluster, keys) = Cluster::<f32>::of(&case).unwrap();
            let mut iteration = NedIteration::new(cluster, Ned::default()).with_division(division);
            scatter_prices(&mut iteration, seed);
            all.push(steps_to(&mut iteration, &keys, &want, 1e-3, 20_000).unwrap_or(20_000));
        }
        assert!(all.iter().all(|&s| s < 20_000), "{division:?}: {all:?}");
    }
}
