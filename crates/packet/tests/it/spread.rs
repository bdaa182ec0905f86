//! Packets and flowlets sprayed over equal paths: every byte arrives once, every path is used, and late packets are
//! not marked lost.

use crate::common::*;
use subak_core::backend::{Backend, FlowPlan, Route, Spread};
use subak_core::{Link, LinkId, Network, NodeKind};

const MS: u64 = 1_000_000;
const WAYS: u32 = 4;
const HOSTS: u32 = 4;

/// Schemes whose receivers accept reordered packets.
fn tolerant() -> impl Iterator<Item = &'static str> {
    schemes().filter(|name| !subak_schemes::scheme(name, &Default::default()).unwrap().rules().recovery.go_back)
}

/// Hosts on both sides of `WAYS` spines. Links of the first spine have the delay `slow_ns`. [`over`] uses the numbers
/// of the links.
fn network(slow_ns: u64) -> Network {
    let mut network = Network::new();
    let mut link = |from: String, to: String, delay_ns| {
        let kind = |name: &str| if name.starts_with('h') { NodeKind::Host } else { NodeKind::Switch };
        let (from_id, to_id) = (network.node(&from, kind(&from)), network.node(&to, kind(&to)));
        let link = Link {
            id: format!("{from}->{to}"),
            from: Some(from_id),
            to: Some(to_id),
            capacity_bps: 10e9,
            delay_ns,
            buffer_bytes: Some(1_000_000),
        };
        network.add(link).unwrap();
    };
    for side in 0..2 {
        for host in 0..HOSTS {
            link(format!("h{side}{host}"), format!("leaf{side}"), 1000);
            link(format!("leaf{side}"), format!("h{side}{host}"), 1000);
        }
    }
    for side in 0..2 {
        for way in 0..WAYS {
            let delay_ns = if way == 0 { slow_ns } else { 1000 };
            link(format!("leaf{side}"), format!("spine{way}"), delay_ns);
            link(format!("spine{way}"), format!("leaf{side}"), delay_ns);
        }
    }
    network
}

/// Route from host `from` of the first side to host `to` of the second, over spine `way`.
fn over(from: u32, to: u32, way: u32) -> Route {
    let (base, other) = (4 * HOSTS, 4 * HOSTS + 2 * WAYS);
    Route {
        forward: LinkId::each([2 * from, base + 2 * way, other + 2 * way + 1, 2 * HOSTS + 2 * to + 1]).to_vec(),
        back: LinkId::each([2 * HOSTS + 2 * to, other + 2 * way, base + 2 * way + 1, 2 * from + 1]).to_vec(),
    }
}

fn spread(from: u32, to: u32, spread: Spread, size: u64) -> FlowPlan {
    let routes = (0..WAYS).map(|way| over(from, to, way)).collect();
    FlowPlan { spread: Some(spread), size_bytes: Some(size), ..FlowPlan::new(routes) }
}

fn by_way(sim: &dyn Backend) -> Vec<u64> {
    (0..WAYS).map(|way| sim.link(LinkId(4 * HOSTS + 2 * way)).data_bytes).collect()
}

#[test]
fn every_byte_arrives_once_whatever_is_lost_and_overtaken() {
    for scheme in tolerant() {
        for kind in [Spread::Packets, Spread::Flowlets(20_000)] {
            for seed in 0..3 {
                let mut sim = start(scheme, &network(20_000), &[lose(0.01, EVERY_KIND)], seed);
                let flows: Vec<_> =
                    (0..HOSTS).map(|h| sim.add(spread(h, (h + 1) % HOSTS, kind, 400_000 + u64::from(h)))).collect();
                sim.run_until_done(10_000 * MS);
                for (h, &f) in flows.iter().enumerate() {
                    let view = sim.flow(f);
                    let size = 400_000 + h as u64;
                    assert_eq!((view.received_bytes, view.sent_bytes), (size, size), "{scheme}, {kind:?}, seed {seed}");
                    assert!(view.finished_ns.is_some(), "{scheme}, {kind:?}, seed {seed}");
                }
            }
        }
    }
}

#[test]
fn a_path_that_is_slower_makes_packets_late_and_not_lost() {
    for scheme in ["dctcp", "reno", "cubic", "google-swift"] {
        // Buffers are large enough for all packets, so that none is lost.
        let mut network = network(20_000);
        for l in 0..network.links().len() {
            network.link_mut(LinkId::from_index(l)).buffer_bytes = Some(1 << 30);
        }
        let mut sim = start(scheme, &network, &[], 1);
        let flow = sim.add(spread(0, 1, Spread::Packets, 20_000_000));
        sim.run_until_done(1_000 * MS);
        let view = sim.flow(flow);
        assert_eq!(view.received_bytes, 20_000_000, "{scheme}");
        assert_eq!((view.drops, view.retransmissions), (0, 0), "{scheme}: what is overtaken is sent again");
    }
}

#[test]
fn packets_use_every_way_alike_and_a_long_flowlet_one() {
    let mut sim = start("dctcp", &network(1000), &[], 1);
    sim.add(spread(0, 1, Spread::Packets, 20_000_000));
    sim.run_until_done(1_000 * MS);
    let bytes = by_way(&*sim);
    let all: u64 = bytes.iter().sum();
    assert!(bytes.iter().all(|b| b.abs_diff(all / 4) < all / 40), "{bytes:?}");
    // A flow that always has packets in flight has no gap between flowlets.
    let mut sim = start("dctcp", &network(1000), &[], 1);
    sim.add(spread(0, 1, Spread::Flowlets(100_000), 20_000_000));
    sim.run_until_done(1_000 * MS);
    assert_eq!(by_way(&*sim).iter().filter(|b| **b > 0).count(), 1);
}

#[test]
fn spreading_makes_up_for_hashes_that_meet() {
    // Four flows of 10 Gb/s each: over one spine they share 10 Gb/s, sprayed they get 40 Gb/s.
    let took = |spreading: Option<Spread>| {
        let mut sim = start("dctcp", &network(1000), &[], 1);
        for h in 0..HOSTS {
            let mut plan = spread(h, h, Spread::Packets, 10_000_000);
            plan.spread = spreading;
            if spreading.is_none() {
                plan.routes.truncate(1);
            }
            sim.add(plan);
        }
        sim.run_until_done(1_000 * MS);
        sim.now_ns()
    };
    let (one, four) = (took(None), took(Some(Spread::Packets)));
    assert!(one > 3 * four, "{one} ns over one way, {four} ns over four");
}

#[test]
fn the_same_seed_takes_the_same_ways() {
    let run = |seed| {
        let mut sim = start("dctcp", &network(1000), &[], seed);
        sim.add(spread(0, 1, Spread::Packets, 1_000_000));
        sim.run_until_done(100 * MS);
        (sim.now_ns(), by_way(&*sim))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn ways_change_while_packets_are_under_way() {
    for kind in [Spread::Packets, Spread::Flowlets(20_000)] {
        let mut sim = start("dctcp", &network(1000), &[], 1);
        let flow = sim.add(spread(0, 1, kind, 20_000_000));
        sim.run_until(2 * MS);
        let before = by_way(&*sim);
        let left: Vec<Route> = (0..WAYS).map(|way| over(0, 1, way.max(2))).collect();
        sim.reroute(flow, &left);
        sim.run_until_done(1_000 * MS);
        let after = by_way(&*sim);
        assert_eq!(sim.flow(flow).received_bytes, 20_000_000);
        // Only packets queued at the first two spines were sent; no new packets were sent over these spines.
        assert!(after[0] - before[0] < 300_000 && after[1] - before[1] < 300_000, "{before:?} {after:?}");
    }
}
