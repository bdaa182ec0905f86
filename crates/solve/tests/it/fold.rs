//! Pooled cases over equal spines, which are folded, beside the same cases with spines that differ a little, which are
//! not.

use proptest::prelude::*;
use subak_core::{Case, Flow, Flows, Link, LinkId, Network, Policy};
use subak_solve::{Answer, SolveOptions, Status, solve};

/// Flows between `leaves` leaf switches over `spines` spine switches; each host has a link in and a link out. Capacities
/// of spine s are multiplied by `1 + s * apart`.
fn case(leaves: usize, spines: usize, flows: &[(usize, usize, f64, Option<f64>)], apart: f64, policy: Policy) -> Case {
    let mut network = Network::new();
    let mut add = |capacity_bps: f64| {
        let id = format!("l{}", network.links().len());
        network.add(Link { id, from: None, to: None, capacity_bps, delay_ns: 0, buffer_bytes: None }).unwrap()
    };
    let spine_bps = |s: usize| 4e9 * (1.0 + s as f64 * apart);
    let up: Vec<Vec<LinkId>> = (0..leaves).map(|_| (0..spines).map(|s| add(spine_bps(s))).collect()).collect();
    let down: Vec<Vec<LinkId>> = (0..leaves).map(|_| (0..spines).map(|s| add(spine_bps(s))).collect()).collect();
    let hosts: Vec<[LinkId; 2]> = (0..4 * leaves).map(|_| [add(10e9), add(10e9)]).collect();
    let mut all = Flows::new();
    for &(src, dst, weight, demand_bps) in flows {
        let (src, dst) = (src % hosts.len(), dst % hosts.len());
        let paths = match (src / 4, dst / 4) {
            (a, b) if a == b => vec![vec![hosts[src][0], hosts[dst][1]]],
            (a, b) => (0..spines).map(|s| vec![hosts[src][0], up[a][s], down[b][s], hosts[dst][1]]).collect(),
        };
        let flow = Flow { paths, weight, demand_bps, ..Flow::over(String::new(), Vec::new()) };
        let function = matches!(policy, Policy::BandwidthFunction { .. });
        let points = || vec![(0.0, 0.0), (1.0, 2e9 * weight), (3.0, 3e9 + 9e9 * weight)];
        all.push(Flow { bandwidth_function: function.then(points), ..flow }, &network).unwrap();
    }
    Case { network, flows: all, policy }
}

fn solved(case: &Case) -> Answer {
    let answer = solve(case, &SolveOptions::default()).unwrap();
    assert_eq!(answer.status, Status::Optimal, "{:?}", answer.certificate);
    answer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn equal_spines_are_as_spines_that_differ_a_little(
        leaves in 2usize..4,
        spines in 2usize..5,
        flows in prop::collection::vec(
            (0usize..16, 0usize..16, 0.5..4.0f64, prop_oneof![3 => Just(None), 1 => (1e8..8e9f64).prop_map(Some)]),
            1..14,
        ),
    ) {
        for policy in [Policy::MaxMin, Policy::BANDWIDTH_FUNCTION, Policy::AlphaFair { alpha: 1.0 }] {
            let equal = solved(&case(leaves, spines, &flows, 0.0, policy));
            let other = solved(&case(leaves, spines, &flows, 1e-7, policy));
            for (f, (a, b)) in equal.rates_bps.iter().zip(&other.rates_bps).enumerate() {
                prop_assert!((a - b).abs() <= 1e-5 * b, "flow {f} under {policy:?}: {a} and {b}");
            }
        }
    }
}

/// A permutation over all spines, far beyond what the simplex method takes.
#[test]
fn a_permutation_over_many_spines_is_solved() {
    let flows: Vec<_> = (0..128).map(|h| (h, (h + 37) % 128, 1.0, None)).collect();
    let answer = solved(&case(32, 64, &flows, 0.0, Policy::MaxMin));
    assert_eq!(answer.path_rates_bps.len(), 128 * 64);
    assert!(answer.rates_bps.iter().all(|rate| (rate - 10e9).abs() < 1.0));
    // All paths of a flow are one, so that no simplex is needed.
    assert_eq!(answer.solver, "water-filling");
}
