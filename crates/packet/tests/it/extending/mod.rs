//! Examples for CONTRIBUTING.md: two transports, one file each, combined with the existing optimizers.

mod fixed_rate;
mod telemetry;

use crate::common::*;
use fixed_rate::FixedRate;
use serde_json::Map;
use subak_core::backend::{Backend, PacketSizes};
use subak_core::scheme::{Params, Scheme};
use subak_packet::Sim;
use subak_schemes::optimizers::{given::GivenWeights, xwi::Xwi};
use subak_schemes::over::{Optimizer, Over, Transport, Wish};
use subak_schemes::registry;
use telemetry::Telemetry;

const MS: u64 = 1_000_000;

fn over<W: Wish, O: Optimizer<Wish = W>, F: Transport<Wish = W>>() -> Over<O, F> {
    Over::new(&Params::resolve(&registry::pair::<O, F>(), &Map::new()).unwrap()).unwrap()
}

/// Mean rates, Gb/s, between 20 and 40 ms, of flows with these weights over one link of 10 Gb/s.
fn shares<S: Scheme>(scheme: S, weights: &[f64]) -> Vec<f64> {
    let network = star(weights.len() + 1, 10e9, 1000);
    let mut sim = Sim::new(scheme, &network, PacketSizes::default(), &[], 1);
    let mut add = |(k, &weight): (usize, &f64)| {
        let mut plan = plan(over_star(k + 1, 0), 0, None);
        plan.weight = weight;
        sim.add(plan)
    };
    let flows: Vec<_> = weights.iter().enumerate().map(&mut add).collect();
    sim.run_until(20 * MS);
    let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
    sim.run_until(40 * MS);
    flows.iter().zip(before).map(|(&f, b)| (sim.flow(f).received_wire_bytes - b) as f64 * 8.0 / 20e6).collect()
}

#[test]
fn a_fixed_rate_transport_sends_at_its_rate_under_any_optimizer() {
    for rates in
        [shares(over::<_, GivenWeights, FixedRate>(), &[1.0, 3.0]), shares(over::<_, Xwi, FixedRate>(), &[1.0, 3.0])]
    {
        assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 0.01), "{rates:?}");
    }
}

#[test]
fn a_telemetry_transport_shares_a_link_by_weight() {
    let rates = shares(over::<_, GivenWeights, Telemetry>(), &[1.0, 2.0, 3.0]);
    let total: f64 = rates.iter().sum();
    assert!(total > 9.0, "{rates:?}");
    for (rate, weight) in rates.iter().zip([1.0, 2.0, 3.0]) {
        assert!((rate / total * 6.0 / weight - 1.0).abs() < 0.05, "{rates:?}");
    }
}

#[test]
fn xwi_runs_over_the_telemetry_transport() {
    let rates = shares(over::<_, Xwi, Telemetry>(), &[1.0, 1.0, 1.0]);
    let total: f64 = rates.iter().sum();
    // This simple transport is too slow for xWI's prices, and states no tolerance: the test checks only that the
    // link is used, and that no flow starves.
    assert!(total > 5.0 && rates.iter().all(|rate| rate / total > 0.1), "{rates:?}");
}
