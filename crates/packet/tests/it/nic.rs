//! NIC scheduling at hosts: one queue for all flows, or per-flow round robin.

use crate::common::*;
use serde_json::{Value, json};
use subak_core::backend::{Backend, FlowPlan, PacketSizes};
use subak_core::{LinkId, Network, Nic, NodeKind};

const MS: u64 = 1_000_000;

#[test]
fn flows_of_one_host_take_turns_at_its_nic() {
    // A long flow uses all of its host's link. A packet of a new flow waits for one packet, not for a window.
    for scheme in schemes() {
        let mut network = star(3, 10e9, 1000);
        network.set_nic(Nic::TakesTurns);
        let mut sim = start(scheme, &network, &[], 1);
        sim.add(plan(over_star(0, 1), 0, None));
        sim.run_until(MS);
        sim.restart_peaks();
        let short = sim.add(plan(over_star(0, 2), MS, Some(1000)));
        sim.run_until(2 * MS);
        // Some schemes queue control packets too.
        let queued = sim.link(LinkId(0)).peak_queued_bytes;
        assert!(queued <= 3 * 1500, "{scheme}: {queued}");
        if ["hpcc", "dcqcn", "timely", "dctcp", "soze"].contains(&scheme) {
            let fct = sim.flow(short).finished_ns.unwrap() - MS;
            // Alone the packet takes 2 us and 2 times 0.84 us.
            assert!(fct < 3_700 + 2 * 1_200, "{scheme}: {fct} ns");
        }
    }
}

/// A scheme whose paper prescribes a NIC scheduling uses it; all other schemes use the network's NIC scheduling.
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
        let own = subak_schemes::scheme(scheme, &serde_json::Map::new()).unwrap().rules().nic;
        let fixed = ["hpcc", "powertcp", "dcqcn", "timely", "wrr"].contains(&scheme);
        assert_eq!(own, fixed.then_some(Nic::TakesTurns), "{scheme}");
        let [queue, turns] = [Nic::Queue, Nic::TakesTurns].map(|nic| peak(scheme, nic));
        assert!(turns <= queue && (!fixed || turns == queue), "{scheme}: {turns} and {queue} bytes");
    }
}

fn with(scheme: &str, params: &Value, network: &Network) -> Box<dyn Backend> {
    let sizes = PacketSizes { mtu_bytes: 1048, header_bytes: 48, ack_bytes: 60 };
    subak_packet::build(scheme, params.as_object().unwrap(), network, sizes, &[], 1).unwrap()
}

/// End times, ns, of flows from host 0 to others over links of 100 Gb/s. Each flow has a start time, ns, a number of
/// packets of 1048 bytes, and a rate, bit/s.
fn ends_ns(params: &Value, flows: &[(u64, u64, f64)]) -> Vec<u64> {
    let mut sim = with("dcqcn", params, &star(1 + flows.len(), 100e9, 1000));
    let plan = |(k, &(start_ns, packets, demand_bps))| {
        let plan = plan(over_star(0, k + 1), start_ns, Some(packets * 1000));
        FlowPlan { demand_bps, ..plan }
    };
    let flows: Vec<_> = flows.iter().enumerate().map(plan).map(|plan| sim.add(plan)).collect();
    sim.run_until(MS);
    flows.into_iter().map(|flow| sim.flow(flow).finished_ns.unwrap()).collect()
}

#[test]
fn a_clock_of_whole_nanoseconds_makes_links_faster() {
    // A packet takes 83.84 ns, or 83 ns with whole nanoseconds.
    let ends_ns = |clock: &str| ends_ns(&json!({ "clock": clock }), &[(0, 1000, f64::INFINITY)]);
    assert_eq!(ends_ns("exact"), [2000 + 83_924]);
    assert_eq!(ends_ns("whole-ns"), [2000 + 1001 * 83]);
}

#[test]
fn a_pace_by_whole_nanoseconds_makes_up_for_nothing() {
    // The slower flow sends a packet every 279.47 ns, or 279 ns with whole nanoseconds. Some packets wait for a packet
    // of the other flow.
    let flows = [(0, 1000, 61e9), (0, 1000, 30e9)];
    let [exact, whole] = ["exact", "whole-ns"].map(|clock| ends_ns(&json!({ "clock": clock }), &flows)[1]);
    assert!(exact.abs_diff(2000 + 279_466) < 300, "{exact}");
    assert!(whole > exact + 1000, "{whole}");
}

#[test]
fn a_nic_with_one_timer_sleeps_past_a_faster_flow() {
    // The second flow starts while the NIC's timer is set to 83.84 us, for the first flow. The second flow may send a
    // packet every 838.4 ns.
    let flows = [(0, 2, 0.1e9), (5000, 5, 10e9)];
    let ends_ns = |timer: &str| ends_ns(&json!({ "nic_timer": timer }), &flows);
    // The last packet leaves 4 times 838.4 ns after the start, and takes twice 83.84 ns and 1 us.
    let (first_ns, alone_ns) = (83_840 + 168 + 2000, 5000 + 168 + 2000);
    assert_eq!(ends_ns("each-flow"), [first_ns, alone_ns + 3354]);
    // Each packet waits for the ACK of the packet before: twice 83.84 ns, twice 4.8 ns, and 4 us.
    assert_eq!(ends_ns("one"), [first_ns, alone_ns + 4 * (168 + 10 + 4000)]);
}

#[test]
fn one_timer_changes_nothing_for_a_flow_alone() {
    // HPCC's rates change while the timer is set. Three senders share the link to host 0.
    let ends_ns = |timer: &str| {
        let params = json!({"preset": "hpcc-simulator", "nic_timer": timer});
        let mut sim = with("hpcc", &params, &star(4, 100e9, 1000));
        let sizes = [(1, 300_000), (2, 800_000), (3, 20_000)];
        let flows = sizes.map(|(from, bytes)| sim.add(plan(over_star(from, 0), 1000 * from as u64, Some(bytes))));
        sim.run_until(MS);
        flows.map(|flow| sim.flow(flow).finished_ns.unwrap())
    };
    assert_eq!(ends_ns("one"), ends_ns("each-flow"));
}

#[test]
fn a_new_rate_may_wait_for_the_next_packet() {
    // A host with two links, of 0.1 and 100 Gb/s. The flow is rerouted to the fast link after 10 us, and then has its
    // rate.
    let mut network = Network::new();
    let [from, to] = ["from", "to"].map(|name| network.node(name, NodeKind::Host));
    for (name, bps) in [("slow", 0.1e9), ("fast", 100e9)] {
        let switch = network.node(name, NodeKind::Switch);
        network.connect(from, switch, bps, 1000, None).unwrap();
        network.connect(switch, to, 100e9, 1000, None).unwrap();
    }
    for timer in ["each-flow", "one"] {
        let sent_bytes = |new_rate: &str| {
            let mut sim = with("dcqcn", &json!({"new_rate": new_rate, "nic_timer": timer}), &network);
            let flow = sim.add(plan(route([0, 2], [3, 1]), 0, Some(3000)));
            sim.run_until(10_000);
            sim.reroute(flow, &[route([4, 6], [7, 5])]);
            [20_000, 83_000, 84_000].map(|at_ns| (sim.run_until(at_ns), sim.flow(flow).sent_bytes).1)
        };
        assert_eq!(sent_bytes("at-once"), [3000; 3], "{timer}");
        assert_eq!(sent_bytes("next-packet"), [1000, 1000, 3000], "{timer}");
    }
}
