//! The unit of capacities has no effect: the same problem in another unit has the same status, and rates in that
//! unit.

use crate::common::{self, Net, certified, close};
use proptest::prelude::*;
use subak_core::Policy;
use subak_solve::{SolveMethod, SolveOptions, Status, solve};

const G: f64 = 1e9;

/// `net` with all rates multiplied by `c`: capacities, demands and bandwidth functions.
fn scaled(net: &Net, c: f64) -> Net {
    let mut net = net.clone();
    net.capacity_bps.iter_mut().for_each(|capacity| *capacity *= c);
    for flow in &mut net.flows {
        flow.demand_bps = flow.demand_bps.map(|demand| demand * c);
        flow.bandwidth_function.iter_mut().flatten().for_each(|point| point.1 *= c);
    }
    net
}

/// Sets a size, a deadline and a bandwidth function for every flow.
fn with_all(mut net: Net, sizes: &[f64]) -> Net {
    for (flow, size) in net.flows.iter_mut().zip(sizes) {
        flow.size_bytes = Some(*size as u64);
        flow.deadline_s = Some(size * 1e-9);
        flow.bandwidth_function = Some(vec![(0.0, 0.0), (1.0, size * 1e3), (3.0, size * 1e4)]);
    }
    net
}

fn policies(alpha: f64) -> [Policy; 7] {
    [
        Policy::MaxMin,
        Policy::AlphaFair { alpha },
        Policy::AlphaFair { alpha: 0.0 },
        Policy::Fct { epsilon: 0.125 },
        Policy::Srpt { epsilon: 0.25 },
        Policy::Edf { epsilon: 0.125 },
        Policy::BANDWIDTH_FUNCTION,
    ]
}

#[test]
fn capacities_near_one_are_as_good_as_any() {
    // One flow on each link: the price of a link is one over its capacity, and utilities are about 0.
    for (links, capacity) in [(10, 1.0), (300, 1.0), (10, 1e-9), (7, 2.5), (4, 0.9)] {
        let mut net = Net::new(&vec![capacity; links]);
        for l in 0..links as u32 {
            net = net.flow(&[l]);
        }
        for alpha in [0.5, 1.0, 2.0] {
            let answer = certified(&net.case(Policy::AlphaFair { alpha }));
            close(&answer.rates_bps, &vec![capacity; links], 1e-8);
        }
    }
}

#[test]
fn a_large_alpha_takes_gigabits_as_it_takes_one() {
    // One flow over both links, one over each. At alpha the long one's rate x fulfils x^-a = (c - x)^-a + (d - x)^-a.
    let net = |unit: f64| Net::new(&[10.0 * unit, 4.0 * unit]).flow(&[0, 1]).flow(&[0]).flow(&[1]);
    for alpha in [34.0, 50.0, 100.0] {
        let policy = Policy::AlphaFair { alpha };
        let want = certified(&net(1.0).case(policy)).rates_bps;
        let answer = certified(&net(G).case(policy));
        close(&answer.rates_bps, &want.iter().map(|x| x * G).collect::<Vec<_>>(), 1e-8);
        assert!(answer.ln_price_unit < -690.0 && answer.link_price.raw()[1] > 0.0, "{answer:?}");
        // ln U'(x) = -alpha ln x equals ln of the price of the flow's link.
        let price = answer.link_price.raw()[1].ln() + answer.ln_price_unit;
        assert!((price + alpha * answer.rates_bps[2].ln()).abs() < 1e-7, "{price}");
        assert_eq!(answer.to_json(&net(G).case(policy))["ln_price_unit"], answer.ln_price_unit);
        assert_eq!(certified(&net(1e-9).case(policy)).status, Status::Optimal);
    }
    assert_eq!(certified(&net(G).case(Policy::AlphaFair { alpha: 5.0 })).ln_price_unit, 0.0);
}

/// Cases on which Newton's method oscillates at a large alpha, in all units but one. A second attempt then solves them
/// (`Start::Careful`).
#[test]
fn what_does_not_yield_at_once_is_taken_carefully() {
    let first =
        Net::new(&[18.0, 1.0, 19.0, 12.0, 16.0]).flow(&[2, 3]).flow(&[2, 1]).flow(&[1]).flow(&[2, 3]).flow(&[2, 0]);
    let second = Net::new(&[7.0, 10.0, 9.0, 2.0, 11.0]).flow(&[0, 1]).flow(&[4, 1]).flow(&[3, 0]).flow(&[4]);
    let (of_first, of_second) = (vec![6.0, 0.5, 0.5, 6.0, 6.5], vec![5.0, 5.0, 2.0, 6.0]);
    for (net, alpha, want) in [(first, 97.398_352_122_476_1, of_first), (second, 78.828_292_861_148_5, of_second)] {
        let policy = Policy::AlphaFair { alpha };
        for unit in [1e-3, 1.0, 1e3, G] {
            let answer = certified(&scaled(&net, unit).case(policy));
            close(&answer.rates_bps, &want.iter().map(|x| x * unit).collect::<Vec<_>>(), 1e-6);
        }
    }
}

#[test]
fn max_min_takes_any_weight() {
    for weight in [1e-300, 1e300] {
        let mut net = Net::new(&[10e9, 5e9]).flow(&[0]).flow(&[0, 1]).flow(&[1]);
        net.flows[1].weight = weight;
        let answer = certified(&net.case(Policy::MaxMin));
        let want = if weight < 1.0 { [10e9, 5e9 * weight, 5e9] } else { [5e9, 5e9, 5e9 / weight] };
        close(&answer.rates_bps, &want, 1e-8);
    }
}

#[test]
fn capacities_may_be_twelve_orders_of_magnitude_apart() {
    // A link of 0.1 and one of 4e11 bit/s: the flow over both gets the small link's capacity, and the other flow the
    // rest.
    let net = Net::new(&[0.1, 4e11, 3.0]).flow(&[0, 1]).flow(&[1]).flow(&[2, 1]);
    for policy in [
        Policy::MaxMin,
        Policy::AlphaFair { alpha: 0.5 },
        Policy::AlphaFair { alpha: 1.0 },
        Policy::AlphaFair { alpha: 2.0 },
    ] {
        for unit in [1.0, 1e3] {
            let answer = certified(&scaled(&net, unit).case(policy));
            close(&answer.rates_bps, &[0.1 * unit, (4e11 - 3.1) * unit, 3.0 * unit], 1e-6);
        }
    }
}

#[test]
fn clarabel_has_no_unit_either() {
    let options = SolveOptions { method: SolveMethod::Clarabel, ..SolveOptions::default() };
    let net = Net::new(&[10.0, 4.0]).flow(&[0, 1]).flow(&[0]).flow(&[1]);
    for alpha in [0.5, 1.0, 2.0] {
        let policy = Policy::AlphaFair { alpha };
        for unit in [1e-9, 1.0, G] {
            let answer = solve(&scaled(&net, unit).case(policy), &options).unwrap();
            assert_eq!(answer.status, Status::Optimal, "{alpha} {unit} {:?}", answer.certificate);
        }
    }
}

#[test]
fn a_weight_out_of_range_is_named() {
    for (place, weight) in [("flows[1].weight", 1e-300), ("flows[0].weight", 1e300)] {
        let k = usize::from(weight < 1.0);
        let mut net = Net::new(&[10e9]).flow(&[0]).flow(&[0]).flow(&[0]);
        net.flows[k].weight = weight;
        let fault = solve(&net.case(Policy::AlphaFair { alpha: 1.0 }), &SolveOptions::default()).unwrap_err();
        assert_eq!(fault.place, place, "{fault:?}");
    }
    let net = Net::new(&[12e9, 20e9, 30e9]).flow(&[0, 2]).flow(&[1, 2]).flow(&[1]);
    let fault = solve(&net.case(Policy::AlphaFair { alpha: 1e4 }), &SolveOptions::default()).unwrap_err();
    assert_eq!(fault.place, "policy.alpha");
}

proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn the_unit_decides_nothing(
        net in common::mild_nets(3),
        sizes in prop::collection::vec(1e3..1e9f64, 14),
        alpha in common::alphas(),
    ) {
        let net = with_all(net, &sizes);
        for policy in policies(alpha) {
            let want = solve(&net.case(policy), &SolveOptions::default()).unwrap();
            for c in [1e-18, 1e-9, 1e9] {
                let got = solve(&scaled(&net, c).case(policy), &SolveOptions::default()).unwrap();
                prop_assert_eq!(got.status, want.status, "{:?} {}: {:?}", policy, c, got.certificate);
                if policy == (Policy::AlphaFair { alpha: 0.0 }) {
                    // Several allocations are optimal: they have the same sum.
                    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
                    let (got, want) = (sum(&got.rates_bps), c * sum(&want.rates_bps));
                    prop_assert!((got - want).abs() <= 1e-7 * want, "{} is not {}", got, want);
                    continue;
                }
                // Within the tolerance, the rate of a flow that contributes little to the sum of utilities may be off
                // by this much.
                let free = 1e-5 * c * want.rates_bps.iter().copied().fold(0.0, f64::max);
                for (f, (x, y)) in got.rates_bps.iter().zip(&want.rates_bps).enumerate() {
                    prop_assert!((x - c * y).abs() <= 1e-4 * c * y + free, "{:?} {}: {} is {}, not {}", policy, c, f, x, c * y);
                }
            }
        }
    }
}
