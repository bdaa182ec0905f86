//! The unit of capacities decides nothing: the same problem in another unit has the same status, and rates in that unit.

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

/// Gives every flow a size, a deadline and a bandwidth function.
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
        Policy::BandwidthFunction,
    ]
}

#[test]
fn capacities_near_one_are_as_good_as_any() {
    // Each alone: the price of a link is one over its capacity, and utilities are about 0.
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
    // One flow over both links, one over each: at alpha x and c - x with x^-a = (c - x)^-a + (d - x)^-a.
    let net = |unit: f64| Net::new(&[10.0 * unit, 4.0 * unit]).flow(&[0, 1]).flow(&[0]).flow(&[1]);
    for alpha in [34.0, 50.0, 100.0] {
        let policy = Policy::AlphaFair { alpha };
        let want = certified(&net(1.0).case(policy)).rates_bps;
        let answer = certified(&net(G).case(policy));
        close(&answer.rates_bps, &want.iter().map(|x| x * G).collect::<Vec<_>>(), 1e-8);
        assert!(answer.ln_price_unit < -690.0 && answer.link_price.raw()[1] > 0.0, "{answer:?}");
        // ln U'(x) = -alpha ln x is ln of the price of the flow's link.
        let price = answer.link_price.raw()[1].ln() + answer.ln_price_unit;
        assert!((price + alpha * answer.rates_bps[2].ln()).abs() < 1e-7, "{price}");
        assert_eq!(answer.to_json(&net(G).case(policy))["ln_price_unit"], answer.ln_price_unit);
        assert_eq!(certified(&net(1e-9).case(policy)).status, Status::Optimal);
    }
    assert_eq!(certified(&net(G).case(Policy::AlphaFair { alpha: 5.0 })).ln_price_unit, 0.0);
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
                    // Several allocations are optimal: their sum is one.
                    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
                    let (got, want) = (sum(&got.rates_bps), c * sum(&want.rates_bps));
                    prop_assert!((got - want).abs() <= 1e-7 * want, "{} is not {}", got, want);
                    continue;
                }
                // A flow that adds little to the sum of utilities is free within the tolerance.
                let free = 1e-5 * c * want.rates_bps.iter().copied().fold(0.0, f64::max);
                for (f, (x, y)) in got.rates_bps.iter().zip(&want.rates_bps).enumerate() {
                    prop_assert!((x - c * y).abs() <= 1e-4 * c * y + free, "{:?} {}: {} is {}, not {}", policy, c, f, x, c * y);
                }
            }
        }
    }
}
