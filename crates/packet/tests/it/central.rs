//! A centralized optimizer, which receives flows, links, weights and paths, and recovers from lost messages and
//! lost state.

use crate::common::*;
use serde_json::Map;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, Injected, Kinds, Machine, PacketSizes};
use subak_core::{FlowId, LinkId, Network, Utility};

const MS: u64 = 1_000_000;
/// Fraction of a link that the optimizer allocates.
const SHARE: f64 = 0.98;

fn start_with(network: &Network, faults: &[Injected]) -> Box<dyn Backend> {
    start("ned-central/paced", network, faults, 1)
}

fn log_plan(src: usize, dst: usize, start_ns: u64, weight: f64) -> FlowPlan {
    FlowPlan { weight, utility: Some(Arc::new(Utility::log(weight))), ..plan(over_star(src, dst), start_ns, None) }
}

fn gbps(sim: &dyn Backend, flows: &[FlowId]) -> Vec<f64> {
    flows.iter().map(|&f| sim.flow(f).assigned_bps / 1e9).collect()
}

#[track_caller]
fn assert_near(got: &[f64], want: &[f64]) {
    assert!(got.iter().zip(want).all(|(g, w)| (g / w - 1.0).abs() < 0.03), "{got:?} for {want:?}");
}

#[test]
fn rates_take_the_way_from_the_centre_and_follow_flows_weights_and_links() {
    let network = star(6, 10e9, 5000);
    let fault = Injected::Capacity { link: LinkId(1), capacity_bps: 5e9, at_ns: 6 * MS };
    let mut sim = start_with(&network, &[fault]);
    let a = sim.add(log_plan(1, 0, 0, 1.0));
    let b = sim.add(FlowPlan { stop_ns: Some(4 * MS), ..log_plan(2, 0, 2 * MS, 1.0) });
    // The request crosses two links of 5 us, the answer two more, and the optimizer iterates every 10 us.
    sim.run_until(20_000);
    assert_near(&gbps(&*sim, &[a]), &[0.1]);
    sim.run_until(100_000);
    assert_near(&gbps(&*sim, &[a]), &[SHARE * 10.0]);
    sim.run_until(3 * MS);
    assert_near(&gbps(&*sim, &[a, b]), &[SHARE * 5.0, SHARE * 5.0]);
    sim.set_weight(a, 3.0, Some(Arc::new(Utility::log(3.0))));
    sim.run_until(3 * MS + MS / 2);
    assert_near(&gbps(&*sim, &[a, b]), &[SHARE * 7.5, SHARE * 2.5]);
    sim.run_until(5 * MS);
    assert_near(&gbps(&*sim, &[a]), &[SHARE * 10.0]);
    sim.run_until(7 * MS);
    assert_near(&gbps(&*sim, &[a]), &[SHARE * 5.0]);
    assert_eq!(sim.link(LinkId(1)).dropped_packets, 0);
}

#[test]
fn another_path_is_told_to_the_centre() {
    let network = star(6, 10e9, 1000);
    let mut sim = start_with(&network, &[]);
    let flows = [sim.add(log_plan(1, 0, 0, 1.0)), sim.add(log_plan(2, 0, 0, 1.0)), sim.add(log_plan(3, 4, 0, 1.0))];
    sim.run_until(2 * MS);
    assert_near(&gbps(&*sim, &flows), &[SHARE * 5.0, SHARE * 5.0, SHARE * 10.0]);
    sim.reroute(flows[1], &[over_star(2, 4)]);
    sim.run_until(4 * MS);
    assert_near(&gbps(&*sim, &flows), &[SHARE * 10.0, SHARE * 5.0, SHARE * 5.0]);
}

#[test]
fn lost_words_and_a_centre_that_starts_anew_cost_a_few_renewals_at_most() {
    let network = star(6, 10e9, 1000);
    let lossy = Injected::Packets {
        impairment: subak_core::backend::Impairment::Lost,
        kinds: Kinds { data: false, ack: false, ctl: true },
        links: None,
        probability: 0.3,
        from_ns: 0,
        until_ns: 10 * MS,
    };
    let restart = Injected::Restart { machine: Machine::Controller, at_ns: 12 * MS };
    let mut sim = start_with(&network, &[lossy, restart]);
    let flows: Vec<_> = (1..=4).map(|h| sim.add(log_plan(h, 0, 0, 1.0))).collect();
    // Even if this flow's teardown message is lost, the optimizer removes the flow.
    sim.add(FlowPlan { stop_ns: Some(5 * MS), ..log_plan(5, 0, 0, 1.0) });
    for at_ms in [10, 11, 16, 20] {
        sim.run_until(at_ms * MS);
        let rates = gbps(&*sim, &flows);
        assert!(rates.iter().sum::<f64>() < 12.0, "{rates:?} at {at_ms} ms");
    }
    assert_near(&gbps(&*sim, &flows), &[SHARE * 2.5; 4]);
}

#[test]
fn subflows_share_the_weight_of_their_flow() {
    // A flow with two paths from separate hosts to separate hosts, and a flow to the end of the first path.
    let network = star(6, 10e9, 1000);
    let mut sim = start_with(&network, &[]);
    let pooled = FlowPlan { routes: vec![over_star(1, 0), over_star(2, 3)], ..log_plan(1, 0, 0, 1.0) };
    let flows = [sim.add(pooled), sim.add(log_plan(4, 0, 0, 1.0))];
    sim.run_until(10 * MS);
    // The path without another flow carries nearly all of the pooled flow, since the shared path has a higher
    // price.
    let rates = gbps(&*sim, &flows);
    assert!(rates[0] > SHARE * 10.0 && rates[1] > SHARE * 8.0, "{rates:?}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [("gamma", 0.0), ("interval", 0.0), ("threshold", 2.0), ("reserve", 1.0), ("first", 0.0)] {
        let params: Map<_, _> = [(name.to_string(), value.into())].into_iter().collect();
        let made = subak_packet::build("ned-central/paced", &params, &star(2, 1e9, 1), PacketSizes::default(), &[], 1);
        let fault = made.err().unwrap_or_else(|| panic!("{name} = {value} was taken"));
        assert_eq!(fault.place, format!("params.{name}"), "{fault}");
    }
}
