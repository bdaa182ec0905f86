//! Rates and queue lengths, compared with theory or with papers.

use crate::common::*;
use subak_core::backend::Backend;
use subak_core::{FlowId, LinkId};

const MS: u64 = 1_000_000;

/// Mean received rate of each flow between two times, bit/s on the wire.
fn received_bps(sim: &mut dyn Backend, flows: &[FlowId], from_ns: u64, until_ns: u64) -> Vec<f64> {
    sim.run_until(from_ns);
    let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
    sim.run_until(until_ns);
    let seconds = (until_ns - from_ns) as f64 * 1e-9;
    flows.iter().zip(before).map(|(&f, b)| (sim.flow(f).received_wire_bytes - b) as f64 * 8.0 / seconds).collect()
}

fn assert_near(got: &[f64], want: &[f64], tolerance: f64) {
    for (g, w) in got.iter().zip(want) {
        assert!((g / w - 1.0).abs() <= tolerance, "got {got:?}, want {want:?}");
    }
}

/// Fraction of a link that s-PERC lets data use by default: all but 4% for control packets and 2% so that queues drain.
const DATA_SHARE: f64 = 0.94;

#[test]
fn s_perc_settles_at_the_rates_of_figure_2_1() {
    // One flow over the links of 20 and 30 Gb/s, one over the links of 30 and 12 Gb/s.
    let network = chain(&[20e9, 30e9, 12e9], 1000);
    let mut sim = start("s-perc", &network, &[], 1);
    let flows = [sim.add(plan(over_chain(&[0, 1]), 0, None)), sim.add(plan(over_chain(&[1, 2]), 0, None))];
    let got = received_bps(&mut *sim, &flows, MS, 11 * MS);
    assert_near(&got, &[18e9 * DATA_SHARE, 12e9 * DATA_SHARE], 0.005);
}

#[test]
fn s_perc_settles_at_the_rates_of_figure_2_11() {
    // A chain of 60, 30 and 10 Gb/s; A and B on the first, B and C on the second, C and D on the third.
    let network = chain(&[60e9, 30e9, 10e9], 2000);
    let mut sim = start("s-perc", &network, &[], 1);
    let paths: [&[u32]; 4] = [&[0], &[0, 1], &[1, 2], &[2]];
    let flows = paths.map(|p| sim.add(plan(over_chain(p), 0, None)));
    let got = received_bps(&mut *sim, &flows, MS, 11 * MS);
    let want = [35e9, 25e9, 5e9, 5e9].map(|r| r * DATA_SHARE);
    assert_near(&got, &want, 0.005);
}

#[test]
fn s_perc_shares_by_weight() {
    let mut sim = start("s-perc", &chain(&[10e9], 1000), &[], 1);
    let flows = [1.0, 2.0, 5.0].map(|weight| {
        let mut p = plan(over_chain(&[0]), 0, None);
        p.weight = weight;
        sim.add(p)
    });
    let got = received_bps(&mut *sim, &flows, MS, 11 * MS);
    assert_near(&got, &[1.25e9, 2.5e9, 6.25e9].map(|r| r * DATA_SHARE), 0.005);
}

#[test]
fn dctcp_keeps_its_queue_near_the_threshold_and_the_link_full() {
    let mut sim = start("dctcp", &star(3, 10e9, 2000), &[], 1);
    let flows = [1, 2].map(|h| sim.add(plan(over_star(h, 0), 0, None)));
    sim.run_until(5 * MS);
    let mut queued = Vec::new();
    for k in 0..1000 {
        sim.run_until(5 * MS + k * 10_000);
        queued.push(sim.link(LinkId(1)).queued_bytes as f64 / 1500.0);
    }
    let mean = queued.iter().sum::<f64>() / queued.len() as f64;
    assert!((45.0..=75.0).contains(&mean), "a mean of {mean} packets beside K = 65");
    let most = queued.iter().copied().fold(0.0, f64::max);
    assert!(most <= 90.0, "at most {most} packets");
    let got = received_bps(&mut *sim, &flows, 16 * MS, 36 * MS);
    assert!(got.iter().sum::<f64>() > 0.995 * 10e9, "{got:?}");
    assert!(got.iter().all(|g| (g / 5e9 - 1.0).abs() < 0.1), "{got:?}");
}

#[test]
fn a_lone_flow_takes_exactly_as_long_as_its_packets_do() {
    // 10 full packets over 10 then 5 Gb/s, with 1 us of delay each: time of one packet on the fast link, and of all on
    // the slow one.
    let mut sim = start("reno", &chain(&[10e9, 5e9], 1000), &[], 1);
    let mut flow = plan(over_chain(&[0, 1]), 0, Some(10 * 1446));
    flow.demand_bps = f64::INFINITY;
    let flow = sim.add(flow);
    sim.run_until_done(MS);
    assert_eq!(sim.flow(flow).finished_ns, Some(1200 + 1000 + 10 * 2400 + 1000));
}

#[test]
fn a_demand_bounds_the_rate() {
    for scheme in schemes_with_a_goal() {
        let mut sim = start(scheme, &chain(&[10e9], 1000), &[], 1);
        let mut p = plan(over_chain(&[0]), 0, None);
        p.demand_bps = 1.7e9;
        let flow = sim.add(p);
        let got = received_bps(&mut *sim, &[flow], MS, 21 * MS);
        assert_near(&got, &[1.7e9], 0.002);
    }
}

#[test]
fn subflows_share_a_demand() {
    // The exact solver bounds the sum of subflows, and may assign all of it to one subflow, which may send only an
    // equal part of the demand.
    for scheme in schemes_with_a_goal().filter(|scheme| !scheme.starts_with("exact-central/")) {
        let mut sim = start(scheme, &chain(&[10e9, 10e9], 1000), &[], 1);
        let mut pooled = plan(over_chain(&[0]), 0, None);
        pooled.routes.push(over_chain(&[1]));
        pooled.demand_bps = 1.7e9;
        let flow = sim.add(pooled);
        assert_near(&received_bps(&mut *sim, &[flow], MS, 21 * MS), &[1.7e9], 0.002);
        assert!(sim.flow(flow).assigned_bps <= 1.7e9, "{scheme}");
    }
}

#[test]
fn a_demand_holds_while_the_pace_changes() {
    // Every 20 us another flow starts or stops, so that the pacing rate under s-PERC changes.
    let mut sim = start("s-perc", &chain(&[10e9], 1000), &[], 1);
    let mut bounded = plan(over_chain(&[0]), 0, None);
    bounded.demand_bps = 100e6;
    let bounded = sim.add(bounded);
    for k in 0..250 {
        let mut other = plan(over_chain(&[0]), 40_000 * k, None);
        other.stop_ns = Some(40_000 * k + 20_000);
        sim.add(other);
    }
    let got = received_bps(&mut *sim, &[bounded], MS, 9 * MS);
    assert!(got[0] <= 100e6 * 1.02, "{got:?}");
}

/// On a path whose RTT exceeds the maximum RTO, nothing is retransmitted without loss.
#[test]
fn nothing_is_sent_again_over_a_long_way() {
    for scheme in ["dctcp", "reno", "s-perc"] {
        let mut sim = start(scheme, &chain(&[10e9], 100_000_000), &[], 1);
        let flow = sim.add(plan(over_chain(&[0]), 0, Some(100_000)));
        sim.run_until_done(20_000 * MS);
        assert_eq!((sim.flow(flow).finished_ns.is_some(), sim.flow(flow).retransmissions), (true, 0), "{scheme}");
    }
}
