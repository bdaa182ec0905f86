//! xWI over the ideal transport: its fixed point is the optimum, and it converges to it.

use crate::common::{Net, certified, close};
use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::{Case, Policy};
use subak_solve::Utility;
use subak_solve::xwi::{Marginal, XwiIteration, XwiPriceLaw, XwiSettings, normalized_residual, weight};

fn start(case: &Case, settings: XwiSettings) -> XwiIteration<&Case> {
    let utilities = (0..case.flows.len()).map(|f| Arc::new(Utility::of(case, f).unwrap()));
    XwiIteration::new(case, utilities.collect(), settings).unwrap()
}

fn worst(got: &[f64], want: &[f64]) -> f64 {
    got.iter().zip(want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
}

/// A random case of up to 60 links, and 200 flows over 1 to 6 of them.
fn random(seed: u64, alpha: f64) -> Case {
    let mut rng = Stream::new(seed, "xwi");
    let links = 20 + rng.below(41);
    let capacities: Vec<f64> = (0..links).map(|_| [10e9, 25e9, 40e9, 100e9][rng.below(4)]).collect();
    let mut net = Net::new(&capacities);
    for _ in 0..50 + rng.below(151) {
        let mut path: Vec<u32> = (0..1 + rng.below(6)).map(|_| rng.below(links) as u32).collect();
        path.sort_unstable();
        path.dedup();
        net = net.flow(&path);
    }
    net.case(Policy::AlphaFair { alpha })
}

#[test]
fn the_equations_by_hand() {
    let log = Marginal::new(Arc::new(Utility::log(3.0)));
    assert!((weight(&log, 2.0, 1.0, 1e9) - 1.5).abs() < 1e-15, "3 / 2");
    assert!((weight(&log, 2.0, 0.5, 1e9) - 0.75).abs() < 1e-15, "half of it on a path that serves half");
    assert_eq!((weight(&log, 0.0, 1.0, 7.0), weight(&log, 1e-9, 1.0, 7.0)), (7.0, 7.0));
    assert!((normalized_residual(&log, 1.0, 2.0, 4.0) - 0.25).abs() < 1e-15, "(3 / 1 - 2) / 4");
    let law = XwiPriceLaw { eta: 5.0, beta: 0.5 };
    assert_eq!(law.next(1.0, 0.5, 1.0), 1.25, "half way to 1.5");
    assert!((law.next(1.0, 0.5, 0.9) - 1.0).abs() < 1e-15, "half way to 1.5 - 5 x 0.1 x 1");
    assert_eq!(law.next(1.0, f64::INFINITY, 0.0), 0.5, "a link without flows lets its price go");
}

#[test]
fn alpha_of_a_half_and_one_come_within_a_percent_in_500_steps() {
    for alpha in [0.5, 1.0] {
        for seed in 0..8 {
            let case = random(seed, alpha);
            let want = certified(&case).rates_bps;
            let mut xwi = start(&case, XwiSettings::default());
            (0..500).for_each(|_| xwi.step());
            let off = worst(&xwi.rates_bps(), &want);
            assert!(off <= 0.01, "alpha {alpha}, network {seed}: off by {off}");
        }
    }
}

#[test]
fn a_diminishing_average_ends_the_cycles_of_large_alphas() {
    let settings = XwiSettings { diminish_after: 100.0, ..XwiSettings::default() };
    for alpha in [2.0, 4.0] {
        for seed in 0..4 {
            let case = random(seed, alpha);
            let want = certified(&case).rates_bps;
            let mut xwi = start(&case, settings);
            (0..10_000).for_each(|_| xwi.step());
            let off = worst(&xwi.rates_bps(), &want);
            assert!(off <= 0.01, "alpha {alpha}, network {seed}: off by {off}");
        }
    }
}

#[test]
fn links_in_turns_get_there_too() {
    let case = random(1, 1.0);
    let want = certified(&case).rates_bps;
    let mut xwi = start(&case, XwiSettings { groups: 4, ..XwiSettings::default() });
    (0..4000).for_each(|_| xwi.step());
    assert!(worst(&xwi.rates_bps(), &want) <= 0.01);
}

#[test]
fn pooled_flows_and_demands() {
    let net = Net::new(&[10e9, 4e9, 6e9])
        .pooled(&[&[0], &[1]])
        .pooled(&[&[1], &[2]])
        .flow(&[2])
        .flow(&[0])
        .with(|f| f.demand_bps = Some(1e9));
    let case = net.case(Policy::AlphaFair { alpha: 1.0 });
    let want = certified(&case).rates_bps;
    let mut xwi = start(&case, XwiSettings::default());
    (0..5000).for_each(|_| xwi.step());
    close(&xwi.rates_bps(), &want, 0.01);
}

#[test]
fn a_wrong_number_of_utilities_is_refused() {
    let case = Net::new(&[1e9]).flow(&[0]).case(Policy::AlphaFair { alpha: 1.0 });
    assert_eq!(XwiIteration::new(&case, Vec::new(), XwiSettings::default()).unwrap_err().place, "utilities");
}
