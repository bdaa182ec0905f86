//! What hosts do at their own links: flows wait in one queue, or take turns.

use crate::common::*;
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
