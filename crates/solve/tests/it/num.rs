//! Utility maximization: closed forms, random cases of every alpha, deliberately degenerate ones.

use crate::common;
use crate::common::{Net, certified, close};
use proptest::prelude::*;
use subak_core::{Case, Policy};
use subak_solve::{SolveMethod, SolveOptions, Status, certify, solve};

#[test]
fn proportional_fairness_on_a_chain() {
    // One long flow over n links, one short flow on each: the long one gets c / (n + 1).
    let mut net = Net::new(&[10e9; 4]).flow(&[0, 1, 2, 3]);
    for l in 0..4 {
        net = net.flow(&[l]);
    }
    let answer = certified(&net.case(Policy::AlphaFair { alpha: 1.0 }));
    close(&answer.rates_bps, &[2e9, 8e9, 8e9, 8e9, 8e9], 1e-8);
}

const CLARABEL: SolveOptions = SolveOptions { method: SolveMethod::Clarabel, tolerance: 1e-8, max_iterations: 1000 };

/// Solves the case by our method and by Clarabel, certifies both answers, and compares their rates.
fn agree(case: &Case) {
    let own = certified(case);
    let referee = solve(case, &CLARABEL).unwrap();
    assert_eq!((referee.solver, referee.status), ("clarabel", Status::Optimal), "{:?}", referee.certificate);
    // At a gap of 1e-8 of the sum of utilities, the rate of a flow that contributes little may be off by this much.
    close(&own.rates_bps, &referee.rates_bps, 1e-4);
}

#[test]
fn clarabel_solves_what_it_should() {
    agree(&Net::new(&[10e9, 4e9]).pooled(&[&[0], &[1]]).flow(&[0]).flow(&[1]).case(Policy::AlphaFair { alpha: 2.0 }));
}

#[test]
fn clarabel_says_how_far_it_got() {
    // Marginal utilities are sixty orders of magnitude apart, which no interior-point method resolves.
    let wide = Net::new(&[1e12, 1e3]).flow(&[0]).flow(&[1]).flow(&[0, 1]).with(|f| f.weight = 1e6);
    let case = wide.case(Policy::AlphaFair { alpha: 6.0 });
    let referee = solve(&case, &CLARABEL).unwrap();
    assert!(matches!(referee.status, Status::Stalled | Status::IterationLimit), "{referee:?}");
    assert!(referee.certificate.infeasibility <= 1e-9 && referee.certificate.worst() > 1e-8);
    certified(&case);
    // One round is not enough, and the status says so.
    let mild = Net::new(&[10e9, 4e9]).flow(&[0, 1]).flow(&[0]).flow(&[1]).case(Policy::AlphaFair { alpha: 2.0 });
    let once = solve(&mild, &SolveOptions { max_iterations: 1, ..CLARABEL }).unwrap();
    assert_eq!(once.status, Status::IterationLimit);
    assert!(once.certificate.worst() > 1e-8 && once.certificate.worst().is_finite());
}

#[test]
fn short_flows_first() {
    // NUMFabric, table 1: at a small epsilon the smallest flow gets nearly all of the link.
    let sizes = |net: Net| {
        net.flow(&[0])
            .with(|f| f.size_bytes = Some(10_000))
            .flow(&[0])
            .with(|f| f.size_bytes = Some(100_000))
            .flow(&[0])
            .with(|f| f.size_bytes = Some(10_000_000))
    };
    let case = sizes(Net::new(&[10e9])).case(Policy::Fct { epsilon: 0.1 });
    let answer = certified(&case);
    // U' = x^-epsilon / s: rates in the ratio s^(-1/epsilon).
    close(&answer.rates_bps[1..2], &[answer.rates_bps[0] * 1e-10], 1e-6);
    assert!(answer.rates_bps[0] > 0.999 * 10e9);
    let without = Net::new(&[1.0]).flow(&[0]);
    let fault = solve(&without.case(Policy::Srpt { epsilon: 0.1 }), &SolveOptions::default()).unwrap_err();
    assert_eq!(fault.place, "flows[0].size");
    let fault = solve(&without.case(Policy::Edf { epsilon: 0.1 }), &SolveOptions::default()).unwrap_err();
    assert_eq!(fault.place, "flows[0].deadline");
}

#[test]
fn a_large_alpha_comes_close_to_max_min() {
    let net = Net::new(&[12e9, 20e9, 30e9]).flow(&[0, 2]).flow(&[1, 2]).flow(&[1]);
    let fair = certified(&net.case(Policy::MaxMin));
    close(&certified(&net.case(Policy::AlphaFair { alpha: 20.0 })).rates_bps, &fair.rates_bps, 0.05);
    let fault = solve(&net.case(Policy::AlphaFair { alpha: 1e4 }), &SolveOptions::default()).unwrap_err();
    assert_eq!(fault.place, "policy.alpha");
}

#[test]
fn what_a_small_flow_misses_is_said_by_itself() {
    // Half of the small flow's possible rate is one part in 10^11 of the sum.
    let case = Net::new(&[1e12, 10.0]).flow(&[0]).flow(&[1]).case(Policy::AlphaFair { alpha: 0.0 });
    let mut answer = certified(&case);
    assert!(answer.certificate.flow_gap <= 1e-8, "{:?}", answer.certificate);
    answer.rates_bps[1] = 5.0;
    answer.path_rates_bps[1] = 5.0;
    let certificate = certify(&case, &answer);
    assert!(certificate.gap < 1e-10, "{certificate:?}");
    assert!((certificate.flow_gap - 0.5).abs() < 1e-9, "{certificate:?}");
}

#[test]
fn extreme_pooled_cases_are_certified_but_for_a_few() {
    // With weights twelve orders apart and alpha above 2, prices span up to a hundred orders of magnitude.
    let strategy = || (common::nets(3), common::alphas());
    let holds = |(net, alpha): (Net, f64)| common::is_certified(&net.case(Policy::AlphaFair { alpha }));
    let missed = common::misses(2000, strategy(), holds);
    assert!(missed <= 10, "{missed} of 2000");
}

#[test]
fn extreme_pooled_cases_up_to_alpha_2_are_certified_but_for_one_in_a_thousand() {
    let holds = |(net, alpha): (Net, f64)| common::is_certified(&net.case(Policy::AlphaFair { alpha }));
    let missed = common::misses(2000, (common::nets(3), 0.2..2.0f64), holds);
    assert!(missed <= 2, "{missed} of 2000");
}

#[test]
fn short_flows_first_over_several_paths_are_certified_but_for_a_few() {
    // At an epsilon of 0.05 a flow of half the size gets a million times the rate.
    let sizes = || prop::collection::vec(2.0..9.0f64, 14);
    let holds = |(net, sizes, epsilon): (Net, Vec<f64>, f64)| {
        let mut net = net;
        for (flow, size) in net.flows.iter_mut().zip(sizes) {
            flow.size_bytes = Some(10f64.powf(size) as u64);
        }
        common::is_certified(&net.case(Policy::Srpt { epsilon }))
    };
    let missed = common::misses(2000, (common::mild_nets(3), sizes(), 0.05..0.25f64), holds);
    assert!(missed <= 2, "{missed} of 2000");
    let missed = common::misses(2000, (common::nets(3), sizes(), 0.05..0.25f64), holds);
    assert!(missed <= 4, "{missed} of 2000");
}

#[test]
fn clarabel_agrees_at_the_extremes_where_it_solves() {
    let solved = std::cell::Cell::new(0);
    let holds = |net: Net| {
        let case = net.case(Policy::AlphaFair { alpha: 1.0 });
        let referee = solve(&case, &CLARABEL).unwrap();
        if referee.status == Status::Optimal {
            // Both answers are within a gap of the optimum, which bounds the difference of their rates: a flow that
            // contributes little to the sum may differ by more.
            let own = certified(&case);
            let weight = case.flows.weight();
            let whole: f64 = own.rates_bps.iter().zip(weight).map(|(x, w)| w * x.ln()).sum();
            for ((a, b), w) in own.rates_bps.iter().zip(&referee.rates_bps).zip(weight) {
                assert!(w * (a / b).ln().powi(2) <= 1e-7 * (1.0 + whole.abs()), "{a} is not {b}, weight {w}");
            }
            solved.set(solved.get() + 1);
        }
        true
    };
    common::misses(500, common::nets(2), holds);
    assert!(solved.get() > 300, "{} of 500", solved.get());
}

proptest! {
    #![proptest_config(common::config(1000))]

    #[test]
    fn random_single_path_cases_are_certified(net in common::nets(1), alpha in common::alphas()) {
        certified(&net.case(Policy::AlphaFair { alpha }));
    }

    #[test]
    fn random_pooled_cases_are_certified(net in common::mild_nets(3), alpha in common::alphas()) {
        certified(&net.case(Policy::AlphaFair { alpha }));
    }

    #[test]
    fn clarabel_agrees(net in common::mild_nets(2), alpha in prop::sample::select(vec![0.5, 1.0, 1.5, 2.0])) {
        agree(&net.case(Policy::AlphaFair { alpha }));
    }

    #[test]
    fn urgency_is_certified(net in common::nets(1), sizes in prop::collection::vec(1e3..1e9f64, 14)) {
        let mut net = net;
        for (flow, size) in net.flows.iter_mut().zip(sizes) {
            flow.size_bytes = Some(size as u64);
            flow.deadline_s = Some(size * 1e-9);
        }
        certified(&net.case(Policy::Srpt { epsilon: 0.125 }));
        certified(&net.case(Policy::Edf { epsilon: 0.2 }));
    }
}

#[test]
fn hundreds_of_pooled_flows_are_certified() {
    // Two random shortest paths between two hosts of different pods of a K = 16 fat tree, whose links are numbered in
    // six blocks.
    let mut random = subak_core::rng::Stream::new(1, "pooled");
    let mut net = Net::new(&[10e9; 6 * 1024]);
    for _ in 0..500 {
        let from = random.below(1024);
        let to = (from + 64 + random.below(1024 - 128)) % 1024;
        let mut path = || {
            let (a, c) = (random.below(8), random.below(8));
            let core = |host: usize| (host / 64 * 8 + a) * 8 + c;
            let at = [from, from / 8 * 8 + a, core(from), core(to), to / 8 * 8 + a, to];
            let block = [0, 2, 4, 5, 3, 1];
            [0, 1, 2, 3, 4, 5].map(|i| (block[i] * 1024 + at[i]) as u32)
        };
        let (a, b) = (path(), path());
        net = if a == b { net.flow(&a) } else { net.pooled(&[&a, &b]) };
    }
    certified(&net.case(Policy::AlphaFair { alpha: 1.0 }));
}
