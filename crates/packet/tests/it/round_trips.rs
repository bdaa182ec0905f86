//! With default parameters, every scheme works at RTTs from microseconds to tenths of a second.

use crate::common::*;
use serde_json::json;
use subak_core::backend::FlowPlan;
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::{Network, NodeId, generate};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// Flows between random hosts, which start within `span_ns`; their sizes cycle through `sizes`.
fn flows(network: &Network, count: u64, span_ns: u64, sizes: &[u64]) -> Vec<FlowPlan> {
    let hosts: Vec<NodeId> = network.hosts().collect();
    let (mut router, mut rng) = (Router::new(network, 0, true), Stream::new(1, "flows"));
    let one = |k: u64| {
        let src = rng.below(hosts.len());
        let dst = (src + 1 + rng.below(hosts.len() - 1)) % hosts.len();
        let route = router.route(hosts[src], hosts[dst], k).unwrap();
        plan(route, rng.below(span_ns as usize) as u64, Some(sizes[k as usize % sizes.len()]))
    };
    (0..count).map(one).collect()
}

/// Number of flows that have not finished after `most_ns`.
fn left(scheme: &str, network: &Network, plans: &[FlowPlan], most_ns: u64) -> usize {
    let mut sim = start(scheme, network, &[], 1);
    let flows: Vec<_> = plans.iter().map(|plan| sim.add(plan.clone())).collect();
    sim.run_until_done(most_ns);
    // If a timer or probe interval is far shorter than the RTTs, many times the necessary packets are sent.
    let bytes: u64 = plans.iter().map(|plan| plan.size_bytes.unwrap_or(0)).sum();
    let hops = sim.packet_hops();
    assert!(hops < 20 * (bytes / 1446 + plans.len() as u64), "{scheme}: {hops} packet-hops for {bytes} bytes");
    flows.iter().filter(|&&f| sim.flow(f).finished_ns.is_none()).count()
}

fn check(network: &Network, plans: &[FlowPlan], most_ns: u64) {
    let missed: Vec<_> = schemes()
        .filter_map(|scheme| Some((scheme, left(scheme, network, plans, most_ns))).filter(|(_, left)| *left > 0))
        .collect();
    assert!(missed.is_empty(), "flows never end: {missed:?}");
}

#[test]
fn flows_end_over_round_trips_of_tenths_of_a_second() {
    let (network, _) = generate::network(&json!({"kind": "wan", "topology": "b4-18"})).unwrap();
    check(&network, &flows(&network, 60, 200 * MS, &[1, 1446, 1496, 20_000, 100_000, 20_000_000]), 100 * S);
}

#[test]
fn flows_end_over_round_trips_of_two_microseconds() {
    let value = json!({"kind": "star", "hosts": 8, "rate": "100Gbps", "link_delay": "400ns"});
    let (network, _) = generate::network(&value).unwrap();
    check(&network, &flows(&network, 60, MS, &[1, 1446, 1496, 20_000, 100_000, 1_000_000]), S);
}
