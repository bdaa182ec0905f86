//! What hosts do at their own links: flows wait in one queue, or take turns.

use crate::common::*;
use subak_core::driver::{FlowPlan, PacketSizes};
use subak_core::{LinkId, Nic};

const MS: u64 = 1_000_000;

#[test]
fn flows_of_one_host_take_turns_at_its_nic() {
    // A long flow has filled its host's link; a packet of a new one waits for one packet, not for a window.
    for scheme in schemes() {
        let mut network = star(3, 10e9, 1000);
        network.set_nic(Nic::TakesTurns);
        let mut sim = start(scheme, &network, &[], 1);
        sim.add(plan(over_star(0, 1), 0, None));
        sim.run_until(MS);
        sim.restart_peaks();
        let short = sim.add(plan(over_star(0, 2), MS, Some(1000)));
        sim.run_until(2 * MS);
        // Control packets beside them, of schemes that have some.
        let queued = sim.link(LinkId(0)).peak_queued_bytes;
        assert!(queued <= 3 * 1500, "{scheme}: {queued}");
        if ["hpcc", "dcqcn", "timely", "dctcp", "soze"].contains(&scheme) {
            let fct = sim.flow(short).finished_ns.unwrap() - MS;
            // Alone it takes 2 us and 2 times 0.84 us.
            assert!(fct < 3_700 + 2 * 1_200, "{scheme}: {fct} ns");
        }
    }
}

/// What a paper fixes stays; all other schemes have the NIC that the network's hosts have.
#[test]
fn only_schemes_that_say_so_have_a_nic_of_their_own() {
    let peak = |scheme: &str, nic: Nic| {
        let mut network = star(3, 10e9, 1000);
        network.set_nic(nic);
        let mut sim = start(scheme, &network, &[], 1);
        for to in [1, 2, 1, 2] {
            sim.add(plan(over_star(0, to), 0, Some(200_000)));
        }
        sim.run_until(MS);
        sim.link(LinkId(0)).peak_queued_bytes
    };
    for scheme in schemes() {
        let own = subak_schemes::registry::own_nic(scheme, &serde_json::Map::new()).unwrap();
        let fixed = ["hpcc", "dcqcn", "timely", "wrr"].contains(&scheme);
        assert_eq!(own, fixed.then_some(Nic::TakesTurns), "{scheme}");
        let [queue, turns] = [Nic::Queue, Nic::TakesTurns].map(|nic| peak(scheme, nic));
        assert!(turns <= queue && (!fixed || turns == queue), "{scheme}: {turns} and {queue} bytes");
    }
}

/// When flows from host 0 to others end, each of 1000 packets of 1048 bytes that want `demands_bps`, over links of 100 Gb/s.
fn ends_ns(clock: &str, demands_bps: &[f64]) -> Vec<u64> {
    let sizes = PacketSizes { mtu_bytes: 1048, header_bytes: 48, ack_bytes: 60 };
    let network = star(1 + demands_bps.len(), 100e9, 1000);
    let params = serde_json::json!({ "clock": clock });
    let mut sim = subak_packet::build("dcqcn", params.as_object().unwrap(), &network, sizes, &[], 1).unwrap();
    let plan = |(k, &demand_bps)| FlowPlan { demand_bps, ..plan(over_star(0, k + 1), 0, Some(1_000_000)) };
    let flows: Vec<_> = demands_bps.iter().enumerate().map(plan).map(|plan| sim.add(plan)).collect();
    sim.run_until(MS);
    flows.into_iter().map(|flow| sim.flow(flow).finished_ns.unwrap()).collect()
}

#[test]
fn a_clock_of_whole_nanoseconds_makes_links_faster() {
    // 83.84 ns a packet, or 83.
    assert_eq!(ends_ns("exact", &[f64::INFINITY]), [2000 + 83_924]);
    assert_eq!(ends_ns("whole-ns", &[f64::INFINITY]), [2000 + 1001 * 83]);
}

#[test]
fn a_pace_by_whole_nanoseconds_makes_up_for_nothing() {
    // The slower flow sends a packet every 279.47 ns, or 279; now and then it waits for one of the other.
    let [exact, whole] = ["exact", "whole-ns"].map(|clock| ends_ns(clock, &[61e9, 30e9])[1]);
    assert!(exact.abs_diff(2000 + 279_466) < 300, "{exact}");
    assert!(whole > exact + 1000, "{whole}");
}
