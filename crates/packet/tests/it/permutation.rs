//! The permutation workload, compared with the exact max-min optimum over the same routes. The network has 9 leaves x
//! 16 hosts at 10 Gb/s, 4 spines at 40 Gb/s and 2 us per link. Each host has one long flow.

use crate::common::*;
use subak_core::backend::Backend;
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::{Case, Flow, FlowId, Flows, LinkId, Network, Policy, generate};
use subak_solve::{SolveOptions, solve};

const MS: u64 = 1_000_000;

fn topology() -> Network {
    let spec = serde_json::json!({
        "kind": "leaf-spine", "leaves": 9, "spines": 4, "hosts_per_leaf": 16,
        "host_rate": "10Gbps", "spine_rate": "40Gbps", "link_delay": "2us",
    });
    generate::network(&spec).unwrap().0
}

/// Adds one long flow from every host to another, in a single cycle of all hosts; also returns the sum of the exact
/// max-min rates, bit/s.
fn permutation(network: &Network, sim: &mut dyn Backend) -> (Vec<FlowId>, f64) {
    let hosts: Vec<_> = network.hosts().collect();
    let mut to = hosts.clone();
    let mut rng = Stream::new(1, "permutation");
    for i in (1..to.len()).rev() {
        to.swap(i, rng.below(i));
    }
    let mut router = Router::new(network, 1, true);
    let mut flows = Flows::new();
    let mut ids = Vec::new();
    for (k, (&src, &dst)) in hosts.iter().zip(&to).enumerate() {
        let route = router.route(src, dst, k as u64).unwrap();
        flows.push(Flow::over(k.to_string(), route.forward.clone()), network).unwrap();
        ids.push(sim.add(plan(route, 0, None)));
    }
    let case = Case { network: network.clone(), flows, policy: Policy::MaxMin };
    (ids, solve(&case, &SolveOptions::default()).unwrap().rates_bps.iter().sum())
}

fn received_bps(sim: &dyn Backend, flows: &[FlowId], seconds: f64) -> f64 {
    flows.iter().map(|&f| sim.flow(f).received_wire_bytes).sum::<u64>() as f64 * 8.0 / seconds
}

#[test]
fn dctcp_reaches_nine_tenths_of_the_optimum_with_queues_near_the_threshold() {
    let network = topology();
    let mut sim = start("dctcp", &network, &[], 1);
    let (flows, optimum_bps) = permutation(&network, &mut *sim);
    let dropped = |sim: &dyn Backend| -> u64 {
        (0..network.links().len() as u32).map(|l| sim.link(LinkId(l)).dropped_packets).sum()
    };
    // Slow start overshoots while ACKs are queued behind the receivers' own data. After slow start nothing is
    // dropped.
    sim.run_until(2 * MS);
    let overshoot = dropped(&*sim);
    sim.run_until(6 * MS);
    assert_eq!(dropped(&*sim), overshoot, "packets dropped after slow start");
    let share = received_bps(&*sim, &flows, 6e-3) / optimum_bps;
    assert!(share >= 0.9, "{share:.3} of the optimum of {optimum_bps:.4e} bit/s");
    assert!(share <= 1.0, "more than the optimum is impossible: {share:.3}");
    let bytes_at = |l: u32| sim.link(LinkId(l)).queued_bytes as f64;
    // The queue of a bottleneck is near K (65 packets at 10 Gb/s, 260 at 40 Gb/s), far below the buffer size.
    for (l, link) in network.links().iter().enumerate() {
        let k_bytes = 65.0 * 1500.0 * link.capacity_bps / 10e9;
        assert!(bytes_at(l as u32) <= 1.6 * k_bytes, "{}: {} bytes wait", link.id, bytes_at(l as u32));
    }
    let full = (0..network.links().len() as u32).filter(|&l| bytes_at(l) >= 40.0 * 1500.0).count();
    assert!(full >= 50, "only {full} queues stand near the threshold");
}

#[test]
fn s_perc_reaches_nine_tenths_of_the_optimum_with_short_queues() {
    let network = topology();
    let mut sim = start("s-perc", &network, &[], 1);
    let (flows, optimum_bps) = permutation(&network, &mut *sim);
    sim.run_until(5 * MS);
    let share = received_bps(&*sim, &flows, 5e-3) / optimum_bps;
    assert!((0.9..=0.95).contains(&share), "{share:.3} of the optimum, where 0.94 of each link is for data");
}
