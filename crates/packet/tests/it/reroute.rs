//! A flow that takes another path while packets are in flight is soon as fast as one that took that path from the start.

use crate::common::*;
use subak_core::driver::{Driver, Route};
use subak_core::scheme::Goal;
use subak_core::{FlowId, Network, NodeKind};

const MS: u64 = 1_000_000;
/// The longest base RTT of the diamond.
const RTT_NS: u64 = 60_000;

/// A host, a switch, three paths, a switch, a host: `short` and `long` cross one switch, `winding` two. Everything at 10 Gb/s.
struct Diamond {
    network: Network,
    short: Route,
    long: Route,
    winding: Route,
}

fn diamond() -> Diamond {
    let mut network = Network::new();
    let [src, dst] = ["src", "dst"].map(|name| network.node(name, NodeKind::Host));
    let [left, right, a, b, c, d] =
        ["left", "right", "a", "b", "c", "d"].map(|name| network.node(name, NodeKind::Switch));
    let mut link = |from, to, us: u64| network.connect(from, to, 10e9, us * 1000, None).unwrap();
    let (first, last) = (link(src, left, 1), link(right, dst, 1));
    let mut path = |nodes: &[_], us| {
        let links: Vec<_> = nodes.windows(2).map(|pair| link(pair[0], pair[1], us)).collect();
        let all: Vec<_> = [first].into_iter().chain(links).chain([last]).collect();
        Route { forward: all.iter().map(|l| l.0).collect(), back: all.iter().rev().map(|l| l.1).collect() }
    };
    let (short, long) = (path(&[left, a, right], 1), path(&[left, b, right], 10));
    let winding = path(&[left, c, d, right], 2);
    Diamond { network, short, long, winding }
}

/// Rate received over the next `span_ns`, Gb/s.
fn gbps(sim: &mut dyn Driver, flow: FlowId, span_ns: u64) -> f64 {
    let before = sim.flow(flow).received_wire_bytes;
    sim.run_until(sim.now_ns() + span_ns);
    (sim.flow(flow).received_wire_bytes - before) as f64 * 8.0 / span_ns as f64
}

/// The rate of a flow that starts on the first of `routes`, takes each next one half a base RTT after the one before, and
/// has been on the last one for `settle_ns`; Gb/s.
fn after(scheme: &str, network: &Network, routes: &[&Route], settle_ns: u64) -> f64 {
    let mut sim = start(scheme, network, &[], 1);
    let flow = sim.add(plan(routes[0].clone(), 0, None));
    sim.run_until(20 * MS);
    for route in &routes[1..] {
        sim.reroute(flow, &[(*route).clone()]);
        sim.run_until(sim.now_ns() + RTT_NS / 4);
    }
    sim.run_until(sim.now_ns() + settle_ns);
    gbps(&mut *sim, flow, 2 * MS)
}

#[test]
fn a_rerouted_flow_is_as_fast_as_one_that_was_never_elsewhere() {
    let Diamond { network, short, long, winding } = diamond();
    let turns: [&[&Route]; 6] = [
        &[&short, &long],
        &[&long, &short],
        &[&short, &winding],
        &[&winding, &short],
        &[&short, &long, &short],
        &[&long, &short, &winding, &short],
    ];
    let mut slow = Vec::new();
    for info in subak_schemes::registry::all() {
        let settle_ns = if info.goal == Goal::Own { MS } else { (info.settles.rtts * RTT_NS as f64) as u64 };
        for (turn, routes) in turns.iter().enumerate() {
            let last = routes.last().unwrap();
            let want = after(info.name, &network, &[last], settle_ns);
            let got = after(info.name, &network, routes, settle_ns);
            // Without a goal a flow alone may swing, and be faster than it was.
            if got < 0.95 * want || (got > 1.05 * want && info.goal != Goal::Own) {
                slow.push(format!("{:<14} turn {turn}: {got:.3} of {want:.3} Gb/s", info.name));
            }
        }
    }
    assert!(slow.is_empty(), "slower after a reroute:\n{}", slow.join("\n"));
}

#[test]
fn hpcc_does_not_starve_while_acknowledgements_of_two_paths_come_in_turns() {
    let Diamond { network, short, long, winding } = diamond();
    for other in [&long, &winding] {
        let mut sim = start("hpcc", &network, &[], 1);
        let flow = sim.add(plan(short.clone(), 0, None));
        for k in 1..40u64 {
            sim.run_until(k * MS);
            sim.reroute(flow, &[if k % 2 == 1 { other.clone() } else { short.clone() }]);
            sim.run_until(k * MS + 4 * RTT_NS);
            let got = gbps(&mut *sim, flow, MS / 2);
            assert!(got > 8.0, "reroute {k}: {got:.3} Gb/s");
        }
    }
}
