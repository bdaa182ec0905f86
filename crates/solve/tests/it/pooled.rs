//! Max-min over pooled paths, and the throughput optimum.

use crate::common;
use crate::common::{Net, certified, close};
use proptest::prelude::*;
use subak_core::{LinkId, Policy};
use subak_solve::{LevelDual, MOST_PATHS, Options, certify, solve};

#[test]
fn a_pool_makes_two_links_one() {
    // The pooled flow takes from the link that the other flow leaves it.
    let net = Net::new(&[10.0, 4.0]).pooled(&[&[0], &[1]]).flow(&[0]);
    let answer = certified(&net.case(Policy::MaxMin));
    close(&answer.rates_bps, &[7.0, 7.0], 1e-8);
    let weighted = Net::new(&[10.0, 4.0]).pooled(&[&[0], &[1]]).flow(&[0]).with(|f| f.weight = 2.5);
    close(&certified(&weighted.case(Policy::MaxMin)).rates_bps, &[4.0, 10.0], 1e-8);
}

#[test]
fn levels_follow_each_other() {
    // The first two share links 0 and 1 at level 3; the third has link 2 for itself.
    let net = Net::new(&[2.0, 4.0, 9.0]).pooled(&[&[0], &[1]]).flow(&[1]).pooled(&[&[1, 2], &[2]]);
    let answer = certified(&net.case(Policy::MaxMin));
    close(&answer.rates_bps, &[3.0, 3.0, 9.0], 1e-8);
    assert_eq!(answer.levels.len(), 2);
}

#[test]
fn the_certificate_wants_the_right_duals() {
    let case = Net::new(&[10.0, 4.0]).pooled(&[&[0], &[1]]).flow(&[0]).case(Policy::MaxMin);
    let right = certified(&case);
    let mut lower = right.clone();
    lower.rates_bps = vec![6.0, 7.0];
    lower.path_rates_bps[1] -= 1.0;
    assert!(certify(&case, &lower).worst() > 0.01);
    let mut without = right.clone();
    without.levels.clear();
    assert!(certify(&case, &without).worst() > 0.5);
}

#[test]
fn prices_of_levels_that_are_none_prove_nothing() {
    let case = Net::new(&[10.0, 4.0]).pooled(&[&[0], &[1]]).flow(&[0]).case(Policy::MaxMin);
    let right = certified(&case);
    for price in [f64::NAN, f64::INFINITY, -1.0, -0.5] {
        for which in 0..right.levels[0].prices.len() {
            let mut wrong = right.clone();
            wrong.levels[0].prices[which].1 = price;
            assert_eq!(certify(&case, &wrong).gap, f64::INFINITY, "{price} as price {which}");
        }
        let mut wrong = right.clone();
        wrong.levels[0].level = price;
        assert_eq!(certify(&case, &wrong).gap, f64::INFINITY, "{price} as level");
    }
    let mut elsewhere = right.clone();
    elsewhere.levels[0].prices.push((LinkId::from(2_u32), 1.0));
    assert_eq!(certify(&case, &elsewhere).gap, f64::INFINITY);
    // Prices of zero hold nobody, whatever their rates.
    let mut free = right.clone();
    free.rates_bps = vec![1.0, 1.0];
    free.path_rates_bps = vec![1.0, 0.0, 1.0];
    free.levels = vec![LevelDual { level: 1.0, prices: vec![(LinkId::from(0_u32), 0.0)] }];
    assert!(certify(&case, &free).worst() > 0.5);
}

#[test]
fn a_flow_is_not_held_by_what_the_others_pay() {
    // The third flow could have all of link 1. What it pays is lost in the sum, but not beside its own price.
    let net = Net::new(&[10.0, 20.0, 10.0]).pooled(&[&[0], &[2]]).flow(&[0]).flow(&[1]).with(|f| f.weight = 1.99);
    let case = net.case(Policy::MaxMin);
    let mut wrong = certified(&case);
    close(&wrong.rates_bps, &[10.0, 10.0, 20.0], 1e-8);
    wrong.rates_bps = vec![10.0, 10.0, 19.9];
    wrong.path_rates_bps = vec![0.0, 10.0, 10.0, 19.9];
    let prices = [1.0, 1.01e-6, 1.0].into_iter().enumerate().map(|(l, p)| (LinkId::from(l as u32), p));
    wrong.levels = vec![LevelDual { level: 10.0, prices: prices.collect() }];
    let certificate = certify(&case, &wrong);
    assert!((certificate.gap - 0.005).abs() < 1e-6, "{certificate:?}");
}

#[test]
fn the_limit_is_stated() {
    let mut net = Net::new(&[1.0, 1.0]);
    for _ in 0..=MOST_PATHS / 2 {
        net = net.pooled(&[&[0], &[1]]);
    }
    let fault = solve(&net.case(Policy::MaxMin), &Options::default()).unwrap_err();
    assert!(fault.what.contains(&MOST_PATHS.to_string()), "{fault}");
}

#[test]
fn throughput() {
    // The long flow costs two short ones: it gets nothing.
    let net = Net::new(&[10.0, 4.0]).flow(&[0, 1]).flow(&[0]).flow(&[1]);
    let answer = certified(&net.case(Policy::AlphaFair { alpha: 0.0 }));
    close(&answer.rates_bps, &[0.0, 10.0, 4.0], 1e-8);
}

#[test]
fn extreme_max_min_is_certified_but_for_one_in_a_thousand() {
    // What is left are prices of 12 orders of magnitude, whose sum the certificate cannot resolve.
    let missed = common::misses(2000, common::nets(3), |net| common::is_certified(&net.case(Policy::MaxMin)));
    assert!(missed <= 2, "{missed} of 2000");
}

proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn random_pooled_max_min_is_certified(net in common::mild_nets(3)) {
        certified(&net.case(Policy::MaxMin));
    }

    #[test]
    fn one_path_each_is_water_filling(net in common::mild_nets(1)) {
        // A second path that crosses the first one's links and one more adds nothing.
        let exact = certified(&net.case(Policy::MaxMin));
        let mut pooled = net.clone();
        pooled.capacity_bps.push(1e9);
        let extra = net.capacity_bps.len() as u32;
        for flow in &mut pooled.flows {
            let mut longer = flow.paths[0].clone();
            longer.push(LinkId(extra));
            flow.paths.push(longer);
        }
        let answer = certified(&pooled.case(Policy::MaxMin));
        close(&answer.rates_bps, &exact.rates_bps, 1e-6);
    }

    #[test]
    fn random_throughput_is_certified(net in common::nets(3)) {
        certified(&net.case(Policy::AlphaFair { alpha: 0.0 }));
    }
}
