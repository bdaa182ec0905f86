//! Queueing delays in the simulator, compared with queueing theory.

use crate::common::*;
use subak_core::backend::{FlowPlan, PacketSizes};
use subak_core::rng::Stream;
use subak_core::{FlowId, LinkId};

const RATE_BPS: f64 = 10e9;
/// Transmission time of a full packet on the link, ns.
const SERVICE_NS: f64 = 1200.0;
const PROPAGATION_NS: u64 = 1000;

/// Mean time from arrival at a FIFO queue until the last bit is sent, ns, over `runs` runs. Each run has `flows`
/// flows of one packet, which arrive as a Poisson process of the given load.
fn mean_delay_ns(load: f64, runs: u64, flows: u32) -> f64 {
    let mut total_ns = 0;
    for seed in 0..runs {
        let mut network = chain(&[RATE_BPS], PROPAGATION_NS);
        network.link_mut(LinkId(0)).buffer_bytes = Some(u64::MAX / 2);
        let mut sim = start("reno", &network, &[], seed);
        let mut arrivals = Stream::new(seed, "arrivals");
        let mut at_ns = 0.0;
        let starts: Vec<u64> = (0..flows)
            .map(|_| {
                at_ns += arrivals.exponential(SERVICE_NS / load);
                at_ns.round() as u64
            })
            .collect();
        for &start_ns in &starts {
            sim.add(plan(over_chain(&[0]), start_ns, Some(1446)));
        }
        sim.run_until_done(u64::MAX / 4);
        let delay_ns = |(f, start_ns): (u32, &u64)| {
            let finished_ns = sim.flow(FlowId(f)).finished_ns.expect("every flow finishes");
            finished_ns - start_ns - PROPAGATION_NS
        };
        total_ns += (0..flows).zip(&starts).map(delay_ns).sum::<u64>();
        assert_eq!(sim.link(LinkId(0)).dropped_packets, 0);
    }
    total_ns as f64 / (runs * u64::from(flows)) as f64
}

#[test]
fn a_single_queue_has_the_mean_delay_of_m_d_1() {
    for load in [0.3, 0.6, 0.8] {
        // The Pollaczek-Khinchine formula for a constant service time.
        let want_ns = SERVICE_NS * (1.0 + load / (2.0 * (1.0 - load)));
        let got_ns = mean_delay_ns(load, 10, 30_000);
        assert!((got_ns / want_ns - 1.0).abs() < 0.01, "load {load}: {got_ns} ns, M/D/1 has {want_ns} ns");
        println!("load {load}: {got_ns:.1} ns, M/D/1 {want_ns:.1} ns");
    }
}

#[test]
fn round_robin_shares_a_link_by_weights_that_change() {
    for unit in ["packets", "bytes"] {
        let params = serde_json::json!({ "unit": unit });
        let (params, network) = (params.as_object().unwrap(), star(4, 40e9, 2000));
        let mut sim = subak_packet::build("wrr", params, &network, PacketSizes::default(), &[], 1).unwrap();
        let flows: Vec<_> = [1.0, 2.0, 3.0]
            .into_iter()
            .zip(1..)
            .map(|(weight, h)| sim.add(FlowPlan { weight, ..plan(over_star(h, 0), 0, None) }))
            .collect();
        let mut shares = |until_ns: u64| {
            sim.run_until(until_ns - 5_000_000);
            let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
            sim.run_until(until_ns);
            let got = flows.iter().zip(before).map(|(&f, b)| (sim.flow(f).received_wire_bytes - b) as f64 * 8.0 / 5e6);
            let got: Vec<f64> = got.collect();
            if until_ns == 10_000_000 {
                sim.set_weight(flows[0], 5.0, None);
            }
            got
        };
        let (first, then) = (shares(10_000_000), shares(20_000_000));
        println!("{unit}: {first:?}, then {then:?}");
        for (got, weights) in [(first, [1.0, 2.0, 3.0]), (then, [5.0, 2.0, 3.0])] {
            let (sum, all) = (got.iter().sum::<f64>(), weights.iter().sum::<f64>());
            assert!(sum > 38.0, "{unit}: {got:?}");
            for (rate, weight) in got.iter().zip(weights) {
                assert!((rate / sum * all / weight - 1.0).abs() < 0.05, "{unit}: {got:?} for {weights:?}");
            }
        }
    }
}
