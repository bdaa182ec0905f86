//! Flowtune in the packet simulator: fair rates soon after a change, and TCP once the allocator has failed.

use crate::common::*;
use subak_core::LinkId;
use subak_core::backend::Injected;

const US: u64 = 1000;
const MS: u64 = 1_000_000;

#[test]
fn senders_that_come_and_go_have_their_fair_rates_200_us_later() {
    // Flowtune paper, figure 8, at a smaller scale: five senders to one host; one starts every 2 ms, then one stops
    // every 2 ms. The allocator has a host of its own.
    let mut sim = start("flowtune", &star(7, 10e9, 1000), &[], 1);
    let flows: Vec<_> = (0..5u64)
        .map(|k| {
            let mut plan = plan(over_star(1 + k as usize, 0), k * 2 * MS, None);
            plan.stop_ns = Some((10 + 2 * k) * MS);
            sim.add(plan)
        })
        .collect();
    for phase in 0..9u64 {
        let (from_ns, until_ns) = (phase * 2 * MS + 200 * US, (phase + 1) * 2 * MS);
        let active = flows.iter().enumerate().filter(|&(k, _)| k as u64 <= phase && phase < 5 + k as u64);
        let active: Vec<_> = active.map(|(_, &f)| f).collect();
        sim.run_until(from_ns);
        let before: Vec<u64> = active.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
        sim.run_until(until_ns);
        let fair = 10e9 / active.len() as f64;
        for (&f, before) in active.iter().zip(before) {
            let bps = (sim.flow(f).received_wire_bytes - before) as f64 * 8e9 / (until_ns - from_ns) as f64;
            assert!((0.93..1.0).contains(&(bps / fair)), "phase {phase}, flow {f}: {bps} of {fair}");
        }
    }
}

#[test]
fn flows_go_on_as_tcp_once_the_allocator_cannot_be_reached() {
    // The link of the allocator's host fails permanently after 2 ms. The larger flow has half of the receiver's link
    // then, and must get all of it once the other flow has finished.
    let run = |faults: &[Injected]| {
        let mut sim = start("flowtune", &star(4, 10e9, 1000), faults, 1);
        let flows =
            [1, 2].map(|h: usize| sim.add(plan(over_star(h, 0), 0, Some(if h == 1 { 5_000_000 } else { 20_000_000 }))));
        sim.run_until_done(1_000 * MS);
        flows.map(|f| sim.flow(f).finished_ns.expect("it finishes"))
    };
    let cut =
        [6, 7].map(|link| Injected::Down { link: LinkId(link), down_ns: 2 * MS, up_ns: 10_000 * MS, keeps: false });
    let (with, without) = (run(&[]), run(&cut));
    // 25 MB take 21 ms; at half of the link the larger one alone would take 33.
    assert!(with[1] < 23 * MS && without[1] < 27 * MS, "{with:?}, {without:?}");
}
