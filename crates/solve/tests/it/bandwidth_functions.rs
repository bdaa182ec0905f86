//! Bandwidth functions: NUMFabric's figures 2, 9 and 10, flat pieces, pooling, and utilities that approximate them.

use crate::common;
use crate::common::{Net, certified, close};
use proptest::prelude::*;
use subak_core::Policy;
use subak_solve::{BandwidthFunction, SolveOptions, Status, Utility, maximize, solve};

const G: f64 = 1e9;

/// Bandwidth functions of figure 2. Flow 1 has strict priority up to 10 Gb/s, at a fair share of 2. Flow 2 then rises
/// twice as fast as flow 1 up to 10 Gb/s, at 2.5, and is constant from there; flow 1 rises further.
fn figure_2() -> [Vec<(f64, f64)>; 2] {
    [
        vec![(0.0, 0.0), (2.0, 10.0 * G), (2.5, 15.0 * G), (3.5, 35.0 * G)],
        vec![(0.0, 0.0), (2.0, 0.0), (2.5, 10.0 * G), (3.5, 10.0 * G)],
    ]
}

fn on_one_link(capacity_bps: f64) -> Net {
    let mut net = Net::new(&[capacity_bps]);
    for function in figure_2() {
        net = net.flow(&[0]).with(|f| f.bandwidth_function = Some(function));
    }
    net
}

#[test]
fn numfabric_figure_2() {
    for (capacity, want) in [(5.0, [5.0, 0.0]), (10.0, [10.0, 0.0]), (25.0, [15.0, 10.0]), (35.0, [25.0, 10.0])] {
        let answer = certified(&on_one_link(capacity * G).case(Policy::BANDWIDTH_FUNCTION));
        close(&answer.rates_bps, &want.map(|r| r * G), 1e-14);
    }
}

#[test]
fn numfabric_figure_10() {
    // The top link has 5 Gb/s and the bottom link 3 Gb/s (which fits the text); the middle one has 5 and then 17 Gb/s.
    for (middle, want) in [(5.0, [10.0, 3.0]), (17.0, [15.0, 10.0])] {
        let [first, second] = figure_2();
        let net = Net::new(&[5.0 * G, middle * G, 3.0 * G])
            .pooled(&[&[0], &[1]])
            .with(|f| f.bandwidth_function = Some(first))
            .pooled(&[&[1], &[2]])
            .with(|f| f.bandwidth_function = Some(second));
        let answer = certified(&net.case(Policy::BANDWIDTH_FUNCTION));
        close(&answer.rates_bps, &want.map(|r| r * G), 1e-8);
    }
}

#[test]
fn utilities_come_close() {
    // Equation 2 at alpha = 5. It requires functions that strictly increase.
    let case = on_one_link(25.0 * G).case(Policy::BANDWIDTH_FUNCTION);
    let rising = [
        vec![(0.0, 0.0), (2.0, 10.0 * G), (2.5, 15.0 * G), (3.5, 35.0 * G)],
        vec![(0.0, 0.0), (2.0, 0.1 * G), (2.5, 10.0 * G), (3.5, 10.1 * G)],
    ];
    let utility = |points: &Vec<(f64, f64)>| Utility::BandwidthFunction {
        alpha: 5.0,
        function: BandwidthFunction::new(points).unwrap(),
    };
    let utilities: Vec<Utility> = rising.iter().map(utility).collect();
    let answer = maximize(&case, &utilities, &SolveOptions::default()).unwrap();
    assert_eq!(answer.status, Status::Optimal, "{:?}", answer.certificate);
    close(&answer.rates_bps, &[15.0 * G, 10.0 * G], 0.01);
}

#[test]
fn flat_pieces_and_demands() {
    // The first flow stays at 2 while the second rises; then its demand limits it to 3.
    let net = Net::new(&[10.0, 4.0])
        .flow(&[0])
        .with(|f| f.bandwidth_function = Some(vec![(0.0, 0.0), (1.0, 2.0), (3.0, 2.0), (4.0, 9.0)]))
        .with(|f| f.demand_bps = Some(3.0))
        .flow(&[0, 1])
        .with(|f| f.bandwidth_function = Some(vec![(0.0, 0.0), (4.0, 4.0), (9.0, 14.0)]))
        .flow(&[0])
        .with(|f| f.bandwidth_function = Some(vec![(0.0, 0.0), (9.0, 9.0)]));
    let answer = certified(&net.case(Policy::BANDWIDTH_FUNCTION));
    // Link 1 limits the second flow to 4 at a share of 4; the third gets the rest of link 0.
    close(&answer.rates_bps, &[2.0 + 1.0, 3.0 + 0.5, 3.0 + 0.5], 1.0);
    close(&[answer.rates_bps.iter().sum()], &[10.0], 1e-14);
}

#[test]
fn functions_that_cannot_be() {
    let fault = |points: Vec<(f64, f64)>| {
        let net = Net::new(&[1.0]).flow(&[0]).with(|f| f.bandwidth_function = Some(points));
        solve(&net.case(Policy::BANDWIDTH_FUNCTION), &SolveOptions::default()).unwrap_err()
    };
    assert_eq!(fault(vec![(0.0, 0.0)]).place, "flows[0].bandwidth_function[0]");
    assert!(fault(vec![(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]).what.contains("decreases"));
    assert!(fault(vec![(0.0, 1.0), (1.0, 2.0)]).what.contains("start"));
    let without = Net::new(&[1.0]).flow(&[0]).case(Policy::BANDWIDTH_FUNCTION);
    assert_eq!(solve(&without, &SolveOptions::default()).unwrap_err().place, "flows[0].bandwidth_function");
}

/// A function of up to five pieces, some of which may be flat.
fn function() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let piece = (0.1..3.0f64, prop_oneof![1 => Just(0.0), 3 => (4.0..11.0f64).prop_map(|e| 10f64.powf(e))]);
    prop::collection::vec(piece, 1..6).prop_filter_map("zero everywhere", |pieces| {
        let mut points = vec![(0.0, 0.0)];
        for (share, rate) in pieces {
            let (s, r) = points[points.len() - 1];
            points.push((s + share, r + rate));
        }
        (points[points.len() - 1].1 > 0.0).then_some(points)
    })
}

fn nets(paths: usize) -> impl Strategy<Value = Net> {
    (common::nets(paths), prop::collection::vec(function(), 14)).prop_map(|(mut net, functions)| {
        for (flow, function) in net.flows.iter_mut().zip(functions) {
            flow.bandwidth_function = Some(function);
        }
        net
    })
}

#[test]
fn extreme_pooled_functions_are_certified_but_for_one_in_a_thousand() {
    let holds = |net: Net| common::is_certified(&net.case(Policy::BANDWIDTH_FUNCTION));
    let missed = common::misses(2000, nets(3), holds);
    assert!(missed <= 2, "{missed} of 2000");
}

proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn random_functions_are_certified(net in nets(1)) {
        certified(&net.case(Policy::BANDWIDTH_FUNCTION));
    }

    #[test]
    fn straight_functions_are_weights(net in common::nets(1)) {
        let weighted = certified(&net.case(Policy::MaxMin));
        let mut straight = net;
        for flow in &mut straight.flows {
            // So large that no flow reaches the end of its function.
            flow.bandwidth_function = Some(vec![(0.0, 0.0), (1e20, flow.weight * 1e20)]);
        }
        let answer = certified(&straight.case(Policy::BANDWIDTH_FUNCTION));
        close(&answer.rates_bps, &weighted.rates_bps, 1e-6);
    }
}
