//! A flow that is rerouted while packets are in flight soon has the rate of a flow that used the new path from the
//! start.

use crate::common::*;
use crate::leaf_spine::LeafSpine;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, Injected, Machine, Route};
use subak_core::scheme::Goal;
use subak_core::{FlowId, LinkId, Network, NodeKind, Utility};

const MS: u64 = 1_000_000;
/// Longest base RTT over the paths of [`Diamond`], ns.
const RTT_NS: u64 = 60_000;

/// Three paths between two switches, with a host at each. `short` and `long` cross one more switch, `winding` two.
/// All links have 10 Gb/s.
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

/// Mean received rate over the next `span_ns`, Gb/s.
fn gbps(sim: &mut dyn Backend, flow: FlowId, span_ns: u64) -> f64 {
    let before = sim.flow(flow).received_wire_bytes;
    sim.run_until(sim.now_ns() + span_ns);
    (sim.flow(flow).received_wire_bytes - before) as f64 * 8.0 / span_ns as f64
}

/// Rate, Gb/s, of a flow that starts on the first of `routes` and is rerouted to the next one every quarter of
/// `RTT_NS`. The rate is measured `settle_ns` after the last reroute.
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
        let alone = [&short, &long, &winding].map(|route| (route, after(info.name, &network, &[route], settle_ns)));
        for (turn, routes) in turns.iter().enumerate() {
            let (_, want) = alone.iter().find(|(route, _)| Some(route) == routes.last()).unwrap();
            let got = after(info.name, &network, routes, settle_ns);
            // Under a scheme without a goal, the rate of a single flow may oscillate, and be higher than before.
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

/// Times at which the link fails, ns.
const DOWN_NS: [u64; 3] = [4 * MS, 8 * MS, 12 * MS];
const OUTAGE_NS: u64 = MS;
const REROUTE_NS: u64 = 200_000;

/// A repeated outage of a link. `for_ever`: the last outage is permanent; `rerouted`: flows are rerouted around the
/// link.
#[derive(Debug, Clone, Copy)]
struct Outage {
    link: LinkId,
    for_ever: bool,
    rerouted: bool,
}

impl Outage {
    fn up_ns(self, down_ns: u64) -> u64 {
        if self.for_ever && down_ns == DOWN_NS[2] { u64::MAX } else { down_ns + OUTAGE_NS }
    }

    fn faults(self) -> impl Iterator<Item = Injected> {
        DOWN_NS.into_iter().map(move |down_ns| {
            let up_ns = self.up_ns(down_ns);
            Injected::Down { link: self.link, down_ns, up_ns, keeps: false }
        })
    }

    /// Times of the reroutes, ns; `true`: away from the link, `false`: back to it.
    fn turns(self) -> impl Iterator<Item = (u64, bool)> {
        let both = move |down_ns| [(down_ns, true), (self.up_ns(down_ns), false)];
        let turns = DOWN_NS.into_iter().filter(move |_| self.rerouted).flat_map(both);
        turns.filter(|turn| turn.0 < u64::MAX).map(|(at_ns, leaves)| (at_ns + REROUTE_NS, leaves))
    }
}

/// Each host sends to a host of the other leaf, over spine 0 or 1 alternately; `detour`: all use spine 1. The second
/// route of each pair uses the other spine.
fn permutation(net: &LeafSpine, detour: bool) -> Vec<(Route, Route)> {
    let one = |h: usize| {
        let [there, by] = [(h + 4 + h / 4) % 4 + 4 * usize::from(h < 4), h % 2];
        (net.route(h, there, if detour { 1 } else { by }), net.route(h, there, 1 - by))
    };
    (0..net.hosts()).map(one).collect()
}

/// Mean rates of the flows over 4 ms, Gb/s, long after the last outage.
fn rates(scheme: &str, net: &LeafSpine, outage: Option<Outage>, detour: bool) -> Vec<f64> {
    let faults: Vec<_> = outage.into_iter().flat_map(Outage::faults).collect();
    let mut sim = start(scheme, &net.network, &faults, 1);
    let routes = permutation(net, detour);
    let flows: Vec<_> = routes.iter().map(|(route, _)| sim.add(plan(route.clone(), 0, None))).collect();
    for (at_ns, leaves) in outage.into_iter().flat_map(Outage::turns) {
        sim.run_until(at_ns);
        let avoided = outage.filter(|_| leaves).map(|outage| outage.link);
        sim.on_routes(&controller_paths(&net.network, avoided));
        for (&flow, (route, around)) in flows.iter().zip(&routes) {
            let fails = |l: &LinkId| outage.is_some_and(|outage| outage.link == *l);
            if route.forward.iter().chain(&route.back).any(fails) {
                sim.reroute(flow, &[if leaves { around } else { route }.clone()]);
            }
        }
    }
    let mut received = |at_ns| {
        sim.run_until(at_ns);
        flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect::<Vec<_>>()
    };
    let (before, after) = (received(20 * MS), received(24 * MS));
    after.iter().zip(before).map(|(after, before)| (after - before) as f64 * 8.0 / 4e6).collect()
}

#[test]
fn links_keep_no_rate_for_what_was_lost_at_a_failed_link() {
    let net = LeafSpine::new(2, 2, 4, 10e9);
    let path = net.route(0, 4, 0).forward;
    let mut wrong = Vec::new();
    for scheme in schemes_with_a_goal() {
        for for_ever in [false, true] {
            let want = rates(scheme, &net, None, for_ever);
            for (link, rerouted) in [(path[1], true), (path[2], true), (path[1], false)] {
                if for_ever && !rerouted {
                    continue;
                }
                let outage = Outage { link, for_ever, rerouted };
                let got = rates(scheme, &net, Some(outage), false);
                if got.iter().zip(&want).any(|(got, want)| (got / want - 1.0).abs() > 0.05) {
                    wrong.push(format!("{scheme} {outage:?}: {got:.2?} of {want:.2?} Gb/s"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "after outages:\n{}", wrong.join("\n"));
}

/// Mean rates, Gb/s, over 4 ms from `at_ns` on, of flows from one host to `receivers`.
fn beside(scheme: &str, receivers: &[usize], faults: &[Injected], at_ns: u64) -> Vec<f64> {
    let network = star(3, 10e9, 2000);
    let mut sim = start(scheme, &network, faults, 1);
    let utility = Some(Arc::new(Utility::log(1.0)));
    let one = |&dst: &usize| FlowPlan { utility: utility.clone(), ..plan(over_star(0, dst), 0, None) };
    let flows: Vec<_> = receivers.iter().map(|dst| sim.add(one(dst))).collect();
    for fault in faults {
        let Injected::Down { down_ns, up_ns, .. } = *fault else { continue };
        for change_ns in [down_ns, up_ns].into_iter().filter(|&at_ns| at_ns < u64::MAX) {
            sim.run_until(change_ns + REROUTE_NS);
            sim.on_routes(&controller_paths(&network, None));
        }
    }
    let mut received = |at_ns| {
        sim.run_until(at_ns);
        flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect::<Vec<_>>()
    };
    let (before, after) = (received(at_ns), received(at_ns + 4 * MS));
    after.iter().zip(before).map(|(after, before)| (after - before) as f64 * 8.0 / 4e6).collect()
}

#[test]
fn a_flow_whose_receiver_is_cut_off_leaves_its_share_to_others() {
    let faults = [Injected::Down { link: LinkId(5), down_ns: 4 * MS, up_ns: u64::MAX, keeps: false }];
    let mut wrong = Vec::new();
    for scheme in schemes_with_a_goal() {
        let (got, want) = (beside(scheme, &[1, 2], &faults, 20 * MS)[0], beside(scheme, &[1], &[], 20 * MS)[0]);
        if got < 0.95 * want {
            wrong.push(format!("{scheme}: {got:.3} of {want:.3} Gb/s"));
        }
    }
    assert!(wrong.is_empty(), "beside a flow without a path:\n{}", wrong.join("\n"));
}

#[test]
fn a_flow_whose_receiver_comes_back_has_its_share_again() {
    let mut wrong = Vec::new();
    for (scheme, receivers) in schemes_with_a_goal().flat_map(|scheme| [(scheme, &[2][..]), (scheme, &[1, 2])]) {
        let want = beside(scheme, receivers, &[], 30 * MS);
        for up_ns in [5 * MS, 12 * MS] {
            let faults = [Injected::Down { link: LinkId(5), down_ns: 4 * MS, up_ns, keeps: false }];
            let got = beside(scheme, receivers, &faults, 30 * MS);
            if got.iter().zip(&want).any(|(got, want)| (got / want - 1.0).abs() > 0.05) {
                wrong.push(format!("{scheme}, up at {up_ns} ns: {got:.3?} of {want:.3?} Gb/s"));
            }
        }
    }
    assert!(wrong.is_empty(), "after a receiver came back:\n{}", wrong.join("\n"));
}

/// After a switch restart, a link's byte counter begins at 0 again. HPCC must not read this as 4 GB sent.
#[test]
fn hpcc_goes_on_after_a_switch_has_started_again() {
    let network = star(4, 10e9, 1000);
    let fct_ns = |faults: &[Injected]| {
        let mut sim = start("hpcc", &network, faults, 1);
        let flows = [0, 1].map(|src| sim.add(plan(over_star(src, 3), 0, Some(1_500_000))));
        sim.run_until_done(100_000_000);
        flows.map(|f| sim.flow(f).finished_ns.unwrap()).into_iter().max().unwrap()
    };
    let alone_ns = fct_ns(&[]);
    for link in [7, 0] {
        let restart = Injected::Restart { machine: Machine::Hop(LinkId(link)), at_ns: 500_000 };
        let with_ns = fct_ns(&[restart]);
        assert!((with_ns as f64) < 1.15 * alone_ns as f64, "{with_ns} ns, {alone_ns} without a restart");
    }
}
