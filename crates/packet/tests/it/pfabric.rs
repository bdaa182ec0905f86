//! pFabric in the packet simulator: shortest flows first, line rate from the start, and probes if no packet is
//! delivered.

use crate::common::*;
use subak_core::LinkId;
use subak_core::backend::Injected;

const US: u64 = 1000;

#[test]
fn a_short_flow_overtakes_long_ones() {
    let network = star(5, 10e9, 1000);
    let mut sim = start("pfabric", &network, &[], 1);
    for h in 1..=3 {
        sim.add(plan(over_star(h, 0), 0, Some(20_000_000)));
    }
    let short = sim.add(plan(over_star(4, 0), 1000 * US, Some(14_460)));
    sim.run_until_done(100_000 * US);
    // Alone the flow takes the time of 11 packets and 2 us.
    let fct = sim.flow(short).finished_ns.unwrap() - 1000 * US;
    assert!(fct < 13_200 + 2000 + 2 * 1200, "{fct} ns");
}

#[test]
fn flows_are_served_in_the_order_of_what_they_have_left() {
    let mut sim = start("pfabric", &star(4, 10e9, 1000), &[], 1);
    let sizes = [3_000_000, 1_000_000, 2_000_000];
    let flows: Vec<_> = (1..).zip(sizes).map(|(h, size)| sim.add(plan(over_star(h, 0), 0, Some(size)))).collect();
    sim.run_until_done(100_000 * US);
    let end = |k: usize| sim.flow(flows[k]).finished_ns.unwrap() as f64;
    // The shortest flow takes the time that it takes alone, and each longer flow ends after the shorter ones.
    for (k, bytes) in [(1, 1e6), (2, 3e6), (0, 6e6)] {
        let ideal_ns = bytes * 1500.0 / 1446.0 * 0.8;
        assert!(end(k) > ideal_ns && end(k) < 1.1 * ideal_ns, "flow {k}: {} beside {ideal_ns}", end(k));
    }
}

#[test]
fn a_sender_that_hears_nothing_only_probes() {
    let down = Injected::Down { link: LinkId(1), down_ns: 100 * US, up_ns: 5_000 * US, keeps: false };
    let mut sim = start("pfabric", &star(2, 10e9, 1000), &[down], 1);
    let flow = sim.add(plan(over_star(1, 0), 0, Some(2_000_000)));
    sim.run_until(1_000 * US);
    let before = sim.flow(flow).retransmissions;
    let probes = sim.link(LinkId(2)).ctl_bytes;
    sim.run_until(4_900 * US);
    assert_eq!(sim.flow(flow).retransmissions, before, "no data while probing");
    let sent = (sim.link(LinkId(2)).ctl_bytes - probes) / 64;
    assert!((80..=90).contains(&sent), "{sent} probes in 3.9 ms at one in 45 us");
    sim.run_until_done(20_000 * US);
    assert_eq!(sim.flow(flow).received_bytes, 2_000_000);
}

#[test]
fn a_flow_with_a_demand_goes_on_after_it_probed() {
    // A link is down for more RTOs than the sender tolerates: the sender stops, sends probes, and continues after
    // the ACK of a probe.
    let down = Injected::Down { link: LinkId(1), down_ns: 50_000, up_ns: 800_000, keeps: false };
    let mut sim = start("pfabric", &star(2, 10e9, 1000), &[down], 1);
    let mut bounded = plan(over_star(1, 0), 0, Some(400_000));
    bounded.demand_bps = 2e9;
    let flow = sim.add(bounded);
    sim.run_until_done(1_000_000_000);
    let at_ns = sim.flow(flow).finished_ns.expect("it goes on");
    // 400 KB at 2 Gb/s take 1.6 ms, plus the outage.
    assert!((2_300_000..3_500_000).contains(&at_ns), "{at_ns}");
    // A pending pacing event, which may be days away, does not keep the flow's state.
    sim.run_until(at_ns + 1_000_000);
    assert_eq!(sim.forget().len(), 1);
}
