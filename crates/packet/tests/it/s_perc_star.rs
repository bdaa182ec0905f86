//! s-PERC* with all its parts (PERC thesis, section 4.1): rates are exact again after faults, short flows have
//! priority, and no data is lost.

use crate::leaf_spine::*;
use serde_json::json;
use subak_core::Policy;
use subak_core::backend::{Impairment, Injected, Kinds, PacketSizes};
use subak_core::rng::Stream;

/// Fraction of a link that the scheme lets data use by default: all but 4% for control packets and 2% headroom.
const DATA_SHARE: f64 = 0.94;
const SEEDS: u64 = 100;
const LAST_FAULT_NS: u64 = 12 * MS;

/// Runs endless flows and flows with a size, with 0.01% loss of control packets and a link failure of one
/// millisecond. Checks that the endless flows have exact rates afterwards; returns the number of lost control
/// packets.
fn recovers(seed: u64) -> u64 {
    let net = LeafSpine::new(4, 2, 2, 10e9);
    let mut rng = Stream::new(seed, "flows");
    let route = |rng: &mut Stream| {
        let src = rng.below(net.hosts());
        let dst = (src + 1 + rng.below(net.hosts() - 1)) % net.hosts();
        net.route(src, dst, rng.below(2))
    };
    let long: Vec<_> = (0..16).map(|_| plan(vec![route(&mut rng)], [1.0, 2.0][rng.below(2)], None)).collect();
    let want = exact(&net.network, &long, Policy::MaxMin);
    let down = long[rng.below(long.len())].routes[0].forward[1];
    let faults = [
        Injected::Packets {
            impairment: Impairment::Lost,
            kinds: Kinds { data: false, ack: false, ctl: true },
            links: None,
            probability: 1e-4,
            from_ns: 0,
            until_ns: LAST_FAULT_NS,
        },
        Injected::Down { link: down, down_ns: 4 * MS, up_ns: 5 * MS, keeps: false },
    ];
    let params = serde_json::Map::new();
    let mut sim =
        subak_packet::build("s-perc-star", &params, &net.network, PacketSizes::default(), &faults, seed).unwrap();
    let flows: Vec<_> = long.into_iter().map(|p| sim.add(p)).collect();
    let sizes = [1, 20_000, 100_000, 150_000];
    let sized: Vec<_> = (0..8)
        .map(|k| {
            let mut p = plan(vec![route(&mut rng)], 1.0, None);
            p.size_bytes = Some(sizes[k % 4]);
            p.start_ns = rng.below(10 * MS as usize) as u64;
            (sim.add(p), sizes[k % 4])
        })
        .collect();
    sim.run_until_done(LAST_FAULT_NS + 50 * MS);
    sim.run_until(sim.now_ns().max(LAST_FAULT_NS) + 3 * MS);
    for (&f, want) in flows.iter().zip(&want) {
        let got = sim.flow(f).assigned_bps;
        assert!((got / (want * DATA_SHARE) - 1.0).abs() < 1e-6, "seed {seed}, flow {f}: {got}, exact {want}");
    }
    for &(f, size) in &sized {
        assert_eq!(sim.flow(f).received_bytes, size, "seed {seed}, flow {f}");
    }
    let all = flows.iter().chain(sized.iter().map(|(f, _)| f));
    let lost: u64 = all.map(|&f| sim.flow(f).ctl_drops).sum();
    let of_any_kind: u64 = net.network.links().ids().map(|l| sim.link(l).lost_packets).sum();
    assert!(lost <= of_any_kind, "seed {seed}: {lost} control packets among {of_any_kind}");
    lost
}

#[test]
fn after_the_last_fault_rates_are_exact_again_in_every_seed() {
    let losses: Vec<u64> = (0..SEEDS).map(recovers).collect();
    let (total, least) = (losses.iter().sum::<u64>(), losses.iter().min().unwrap());
    println!("{total} control packets lost over {SEEDS} seeds, at least {least}");
    assert!(total > 3 * SEEDS, "the faults must bite: {total} control packets were lost");
}

#[test]
fn short_flows_start_at_line_rate_go_first_and_send_no_control_packets() {
    let net = LeafSpine::new(2, 2, 4, 40e9);
    let fct_ns = |params: serde_json::Value| {
        let mut sim = start("s-perc-star", params, &net.network);
        for src in 0..3 {
            sim.add(plan(vec![net.route(src, 4, src % 2)], 1.0, None));
        }
        sim.run_until(2 * MS);
        let mut short = plan(vec![net.route(3, 4, 1)], 1.0, None);
        short.size_bytes = Some(10 * 1446);
        short.start_ns = 2 * MS;
        let f = sim.add(short);
        sim.run_until_done(10 * MS);
        // All control packets on the first link of the flow's path belong to the flow.
        let own = net.route(3, 4, 1).forward[0];
        (sim.flow(f).finished_ns.unwrap() - 2 * MS, sim.link(own).ctl_bytes)
    };
    // 10 packets at 10 Gb/s, 4 links of 2 us, and the time of one packet at each of three further links.
    let alone_ns = 10 * 1200 + 4 * 2000 + 2 * 300 + 1200;
    let (basic, basic_ctl) = fct_ns(json!({}));
    let (short, short_ctl) = fct_ns(json!({ "short": "20KB" }));
    assert!(short <= alone_ns + 1500, "{short} ns beside {alone_ns} alone: behind one packet at most");
    assert_eq!(short_ctl, 0);
    assert!(basic > short + 16_000, "{basic} ns: a round trip for the first rate");
    assert!(basic_ctl > 0);
}

#[test]
fn what_a_flow_has_left_bounds_what_links_keep_for_it() {
    // Many medium flows, one after another, share a link with a long flow: with the virtual link, the long flow gets
    // the capacity that they do not use.
    let net = LeafSpine::new(2, 1, 2, 40e9);
    let received = |demand: bool| {
        let mut sim = start("s-perc-star", json!({ "demand": demand }), &net.network);
        let long = sim.add(plan(vec![net.route(0, 2, 0)], 1.0, None));
        for k in 0..100 {
            let mut p = plan(vec![net.route(1, 2, 0)], 1.0, None);
            p.size_bytes = Some(15_000);
            p.start_ns = k * 100 * US;
            sim.add(p);
        }
        sim.run_until_done(100 * MS);
        sim.run_until(11 * MS);
        sim.flow(long).received_bytes
    };
    let (with, without) = (received(true), received(false));
    assert!(with as f64 > 1.02 * without as f64, "{with} bytes with, {without} without");
}

#[test]
fn control_packets_keep_to_their_share() {
    // 200 flows over one link: at line rate, their control packets would exceed its capacity several times.
    let net = LeafSpine::new(2, 1, 2, 40e9);
    let mut sim = start("s-perc-star", json!({}), &net.network);
    for k in 0..200 {
        sim.add(plan(vec![net.route(k % 2, 2, 0)], 1.0, None));
    }
    sim.run_until(10 * MS);
    let down = *net.route(0, 2, 0).forward.last().unwrap();
    let before = sim.link(down);
    sim.run_until(20 * MS);
    let after = sim.link(down);
    let share = (after.ctl_bytes - before.ctl_bytes) as f64 * 8.0 / 1e-2 / 10e9;
    assert!(share > 0.01 && share < 0.021, "{share} of the link, half of 4% for one direction");
}
