//! Flowtune's baselines: XCP, and CUBIC over sfqCoDel.

use crate::common::*;
use subak_core::backend::{Backend, PacketSizes};
use subak_core::{FlowId, LinkId};

const MS: u64 = 1_000_000;
/// RTT of a full packet and its ACK over a star with link delays of 10 us.
const RTT_NS: u64 = 43_000;

fn received_bps(sim: &mut dyn Backend, flows: &[FlowId], from_ns: u64, until_ns: u64) -> Vec<f64> {
    sim.run_until(from_ns);
    let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
    sim.run_until(until_ns);
    let gone_ns = (until_ns - from_ns) as f64;
    flows.iter().zip(before).map(|(&f, b)| (sim.flow(f).received_wire_bytes - b) as f64 * 8e9 / gone_ns).collect()
}

#[test]
fn xcp_is_fair_on_one_link_20_round_trips_after_a_flow_comes_or_goes() {
    // With up to four flows, windows are about ten packets, so that one packet is a tenth of a window.
    let mut sim = start("xcp", &star(5, 10e9, 10_000), &[], 1);
    let phase_ns = 60 * RTT_NS;
    let flows: Vec<FlowId> = (0..4u64)
        .map(|k| {
            let mut plan = plan(over_star(1 + k as usize, 0), k * phase_ns, None);
            plan.stop_ns = Some((4 + k) * phase_ns);
            sim.add(plan)
        })
        .collect();
    for phase in 0..7u64 {
        let active: Vec<FlowId> =
            (0..4).filter(|&k| k as u64 <= phase && phase < 4 + k as u64).map(|k| flows[k]).collect();
        let (from_ns, until_ns) = (phase * phase_ns + 20 * RTT_NS, (phase + 1) * phase_ns);
        let got = received_bps(&mut *sim, &active, from_ns, until_ns);
        println!("phase {phase}: {got:?}");
        let fair = 10e9 / active.len() as f64;
        assert!(got.iter().all(|g| (0.95..1.05).contains(&(g / fair))), "phase {phase}: {got:?} of {fair}");
    }
    assert_eq!(sim.link(LinkId(1)).dropped_packets, 0);
}

fn cubic(timing: serde_json::Value, buffer_bytes: u64) -> (Vec<f64>, u64, f64) {
    let mut network = star(5, 10e9, 2000);
    network.link_mut(LinkId(1)).buffer_bytes = Some(buffer_bytes);
    let params = timing.as_object().expect("a table").clone();
    let mut sim = subak_packet::build("cubic", &params, &network, PacketSizes::default(), &[], 1).unwrap();
    let flows: Vec<FlowId> = (1..5).map(|h| sim.add(plan(over_star(h, 0), 0, None))).collect();
    sim.run_until(20 * MS);
    let dropped = sim.link(LinkId(1)).dropped_packets;
    let mut queued = 0.0;
    for k in 0..1000 {
        sim.run_until(20 * MS + k * 10_000);
        queued += sim.link(LinkId(1)).queued_bytes as f64 / 1500.0 / 1000.0;
    }
    let got = received_bps(&mut *sim, &flows, 30 * MS, 60 * MS);
    (got, sim.link(LinkId(1)).dropped_packets - dropped, queued)
}

#[test]
fn cubic_over_fair_queues_shares_a_link_and_codel_keeps_the_wait_where_its_times_say() {
    // A buffer of 100 packets is 120 us: CoDel with a target of 5 ms never drops, and the buffer overflows. Scaled to
    // the RTT of 12 us, CoDel keeps the queue at a few packets.
    let (published, full, long) = cubic(serde_json::json!({}), 150_000);
    let (scaled, early, short) = cubic(serde_json::json!({"target": 0, "codel_interval": 0}), 150_000);
    println!("{published:?} {full} {long}; {scaled:?} {early} {short}");
    for got in [&published, &scaled] {
        let sum: f64 = got.iter().sum();
        assert!(got.iter().all(|g| (g / sum - 0.25).abs() < 0.01), "{got:?}");
    }
    assert!(published.iter().sum::<f64>() > 0.99 * 10e9 && full > 0 && early > 0);
    assert!(long > 30.0 && short < 15.0, "{long}, {short}");
}
