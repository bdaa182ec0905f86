//! RCP in the packet simulator: the rates in its papers, and the convergence time of a reactive scheme.

use crate::common::*;
use subak_core::{FlowId, LinkId};

const US: u64 = 1000;

#[test]
fn one_link_is_shared_evenly_and_kept_full() {
    let mut sim = start("rcp", &chain(&[10e9], 20_000), &[], 1);
    let flows: Vec<_> = (0..4).map(|k| sim.add(plan(over_chain(&[0]), k * 500 * US, None))).collect();
    sim.run_until(20_000 * US);
    for &f in &flows {
        let rate = sim.flow(f).assigned_bps;
        assert!((rate / 2.5e9 - 1.0).abs() < 0.05, "flow {f} has {rate}");
    }
    assert!(sim.link(LinkId(0)).queued_bytes < 30_000, "{} bytes wait", sim.link(LinkId(0)).queued_bytes);
}

#[test]
fn a_chain_of_dependent_links_settles_much_later_than_under_fair() {
    // Links of 60, 30 and 10 Gb/s: flow A on the first, B on the first two, C on the last two, and D on the last. D
    // starts last.
    let want = [35e9, 25e9, 5e9, 5e9];
    let settled_us = |scheme: &str, share: f64| {
        let mut sim = start(scheme, &chain(&[60e9, 30e9, 10e9], 6000), &[], 1);
        let paths: [&[u32]; 4] = [&[0], &[0, 1], &[1, 2], &[2]];
        let starts = [0, 0, 0, 2000 * US];
        let flows: Vec<_> = paths.iter().zip(starts).map(|(p, at)| sim.add(plan(over_chain(p), at, None))).collect();
        let mut last = 0;
        for us in (0..6000).step_by(10) {
            sim.run_until((2000 + us) * US);
            let off = |(f, w): (&FlowId, f64)| (sim.flow(*f).assigned_bps / (w * share) - 1.0).abs() > 0.1;
            if flows.iter().zip(want).any(off) {
                last = us;
            }
        }
        last
    };
    let (fair, rcp) = (settled_us("fair", 0.94), settled_us("rcp", 1.0));
    assert!(fair <= 100, "Fair settles within 100 us in the thesis, here {fair}");
    assert!(rcp >= 5 * fair && rcp < 4000, "RCP takes {rcp} us, Fair {fair}");
}

#[test]
fn a_flow_waits_a_round_trip_for_its_first_rate() {
    let mut sim = start("rcp", &chain(&[10e9], 2000), &[], 1);
    let flow = sim.add(plan(over_chain(&[0]), 0, Some(1446)));
    sim.run_until_done(1000 * US);
    // The request and its answer (52 ns for 64 bytes, rounded up, and 2 us in each direction), then the packet, with 8
    // bytes of RCP header.
    let finished = sim.flow(flow).finished_ns.unwrap();
    assert_eq!(finished, 2 * 2052 + 2000 + 1207);
}
