//! Utilities of the user's own: curves through points, and several alphas in one case.

use crate::common;
use crate::common::{Net, certified, close};
use proptest::prelude::*;
use std::sync::Arc;
use subak_core::curve::Curve;
use subak_core::flows::FlowUtility;
use subak_core::{Policy, Utility};
use subak_solve::{SolveMethod, SolveOptions, maximize, solve};

fn curve(points: &[(f64, f64)]) -> Option<FlowUtility> {
    Some(FlowUtility::Curve(Arc::new(Curve::new(points).unwrap())))
}

/// A curve of up to four pieces, with U' within two orders of magnitude of 1 at 1 Gb/s.
fn curves() -> impl Strategy<Value = Option<FlowUtility>> {
    let pieces = prop::collection::vec((0.3..4.0f64, 0.2..1.5f64), 1..5);
    (pieces, -2.0..2.0f64, 7.5..9.0f64).prop_map(|(pieces, worth, first)| {
        let (mut log_rate, mut log_marginal) = (first, 0.0);
        let mut points = vec![(log_rate, log_marginal)];
        for (exponent, decades) in pieces {
            log_rate += decades;
            log_marginal -= exponent * decades;
            points.push((log_rate, log_marginal));
        }
        let raw = |shift: f64| points.iter().map(|p| (10f64.powf(p.0), 10f64.powf(p.1 + shift))).collect::<Vec<_>>();
        let at_1g = Curve::new(&raw(0.0)).unwrap().ln_marginal(1e9f64.ln()) / 10f64.ln();
        curve(&raw(worth - at_1g))
    })
}

fn with_curves(mut net: Net, curves: Vec<Option<FlowUtility>>) -> Net {
    net.flows.iter_mut().zip(curves).for_each(|(flow, curve)| flow.utility = curve);
    net
}

#[test]
fn a_curve_shares_by_its_points() {
    // U' of the first is 1 / x in Gb/s up to 4 Gb/s, and (4/x)^2 / 4 beyond; that of the second 1 / x. With 10 Gb/s
    // both are equal where x + x^2 / 4 = 10.
    let kinked = curve(&[(1e9, 1.0), (4e9, 0.25), (8e9, 0.0625)]);
    let plain = curve(&[(1e9, 1.0), (2e9, 0.5)]);
    let net = |bps: f64| {
        let net = Net::new(&[bps]).flow(&[0]).with(|f| f.utility = kinked.clone());
        net.flow(&[0]).with(|f| f.utility = plain.clone())
    };
    let x = (-1.0 + 11f64.sqrt()) * 2.0;
    close(&certified(&net(10e9).case(Policy::Utility)).rates_bps, &[x * 1e9, (10.0 - x) * 1e9], 1e-7);
    close(&certified(&net(6e9).case(Policy::Utility)).rates_bps, &[3e9, 3e9], 1e-7);
}

#[test]
fn tenants_have_policies_of_their_own() {
    // (w/x)^2 = 1/y at x = 2y: w = 2 sqrt(y).
    let of = |alpha| Some(FlowUtility::Of(Policy::AlphaFair { alpha }));
    let net = Net::new(&[9e9]).flow(&[0]).with(|f| f.utility = of(1.0));
    let net = net.flow(&[0]).with(|f| (f.utility, f.weight) = (of(2.0), 2.0 * 3e9f64.sqrt()));
    let answer = certified(&net.case(Policy::Utility));
    close(&answer.rates_bps, &[3e9, 6e9], 1e-7);
    close(answer.link_price.raw(), &[1.0 / 3e9], 1e-7);
}

#[test]
fn the_second_method_refuses_points() {
    let net = Net::new(&[9e9]).flow(&[0]).with(|f| f.utility = curve(&[(1e9, 1.0), (2e9, 0.5)]));
    let options = SolveOptions { method: SolveMethod::Clarabel, ..SolveOptions::default() };
    assert!(solve(&net.case(Policy::Utility), &options).unwrap_err().to_string().contains("utilities through points"));
}

#[test]
fn curves_over_several_paths_are_certified_but_for_a_few() {
    let holds = |(net, curves): (Net, Vec<_>)| common::is_certified(&with_curves(net, curves).case(Policy::Utility));
    let strategy = (common::mild_nets(3), prop::collection::vec(curves(), 14));
    let missed = common::misses(2000, strategy, holds);
    assert!(missed <= 10, "{missed} of 2000");
}

/// A function that is nearly linear at low rates, sampled: U' = exp(-x/s) or 1 / (1 + x/s), times `worth`.
fn saturating() -> impl Strategy<Value = Option<FlowUtility>> {
    (0.0..1.0f64, 8.0..10.0f64, -2.0..2.0f64).prop_map(|(kind, scale, worth)| {
        let (scale, worth) = (10f64.powf(scale), 10f64.powf(worth));
        let rate = |k: usize| scale * 10f64.powf(-3.0 + 4.5 * k as f64 / 60.0);
        let of = |x: f64| if kind < 0.5 { (-x / scale).exp() } else { 1.0 / (1.0 + x / scale) };
        curve(&(0..=60).map(|k| (rate(k), worth * of(rate(k)))).collect::<Vec<_>>())
    })
}

#[test]
fn functions_that_saturate_are_certified_but_for_a_few() {
    let holds = |(net, curves): (Net, Vec<_>)| common::is_certified(&with_curves(net, curves).case(Policy::Utility));
    let many = || prop::collection::vec(saturating(), 14);
    let missed = [1, 3].map(|paths| common::misses(1000, (common::mild_nets(paths), many()), holds));
    assert!(missed[0] <= 10 && missed[1] <= 60, "{missed:?} of 1000");
}

proptest! {
    #![proptest_config(common::config(1000))]

    #[test]
    fn random_curves_are_certified(net in common::nets(1), curves in prop::collection::vec(curves(), 14)) {
        certified(&with_curves(net, curves).case(Policy::Utility));
    }

    #[test]
    fn a_straight_curve_is_alpha_fair(net in common::mild_nets(1), alpha in 0.5..4.0f64) {
        let plain = certified(&net.case(Policy::AlphaFair { alpha }));
        // The weight of a flow multiplies a curve, and is raised to alpha in an alpha-fair utility.
        let mut net = net;
        for flow in &mut net.flows {
            flow.utility = curve(&[(1e6, 1.0), (1e10, 1e-4f64.powf(alpha))]);
            flow.weight = flow.weight.powf(alpha);
        }
        close(&certified(&net.case(Policy::Utility)).rates_bps, &plain.rates_bps, 1e-4);
    }

    #[test]
    fn clarabel_agrees_on_several_alphas(
        net in common::mild_nets(2), alphas in prop::collection::vec(prop::sample::select(vec![0.5, 1.0, 1.5, 2.0]), 14)
    ) {
        // U' is the weight at 1 Gb/s.
        let case = net.case(Policy::AlphaFair { alpha: 1.0 });
        let utility = |(weight, alpha): (&f64, f64)| Utility::Power { alpha, ln_gain: weight.ln() + alpha * 1e9f64.ln() };
        let utilities: Vec<_> = case.flows.weight().iter().zip(alphas).map(utility).collect();
        let own = maximize(&case, &utilities, &SolveOptions::default()).unwrap();
        let clarabel = SolveOptions { method: SolveMethod::Clarabel, tolerance: 1e-8, max_iterations: 1000 };
        let referee = maximize(&case, &utilities, &clarabel).unwrap();
        prop_assert!(own.certificate.worst() <= 1e-8, "{:?}", own.certificate);
        if referee.certificate.worst() <= 1e-8 {
            close(&own.rates_bps, &referee.rates_bps, 1e-3);
        }
    }
}
