//! State of ended flows is removed, in every scheme, and the removal changes no result.

use crate::common::*;
use std::collections::BTreeMap;
use subak_core::FlowId;
use subak_core::backend::{Backend, FlowView, Impairment, Injected};

const MS: u64 = 1_000_000;

/// Final view of each of 400 flows, and the number of events, in a run with lost, duplicated and delayed packets.
/// `forgetful`: states of ended flows are removed during the run.
fn run(scheme: &str, forgetful: bool) -> (BTreeMap<FlowId, FlowView>, u64) {
    let doubled = |impairment, probability| {
        let Injected::Packets { kinds, links, from_ns, until_ns, .. } = lose(0.0, EVERY_KIND) else { unreachable!() };
        Injected::Packets { impairment, kinds, links, probability, from_ns, until_ns }
    };
    let faults = [lose(0.005, EVERY_KIND), doubled(Impairment::Doubled, 0.01), doubled(Impairment::Late(20_000), 0.01)];
    let mut sim = start(scheme, &star(8, 10e9, 1000), &faults, 1);
    let mut views = BTreeMap::new();
    let mut forget = |sim: &mut dyn Backend| {
        for (flow, view) in sim.forget() {
            assert_eq!(sim.flow(flow), FlowView::default(), "{scheme}, flow {flow}: forgotten");
            assert!(views.insert(flow, view).is_none(), "{scheme}, flow {flow}: forgotten twice");
        }
    };
    for k in 0..400 {
        let route = over_star(k % 8, (k + 1 + k / 8 % 6) % 8);
        let mut plan = plan(route, k as u64 * 20_000, Some([0, 1, 3000, 40_000][k % 4]));
        plan.stop_ns = (k % 7 == 6).then_some(k as u64 * 20_000 + 5000);
        let flow = sim.add(plan);
        sim.run_until(k as u64 * 20_000);
        if forgetful {
            forget(sim.as_mut());
        }
        // Changes of ended flows have no effect.
        sim.set_weight(FlowId(flow.0 / 2), 2.0, None);
        sim.stop_flow(FlowId(flow.0 / 3));
    }
    sim.run_until_done(3_000 * MS);
    // RTO timers that were set before the end expire.
    sim.run_until(sim.now_ns() + 1_000 * MS);
    forget(sim.as_mut());
    (views, sim.events())
}

#[test]
fn every_flow_that_ended_is_forgotten_once_and_nothing_else_changes() {
    for scheme in schemes() {
        let (kept, events) = run(scheme, false);
        let (forgotten, same_events) = run(scheme, true);
        assert_eq!(kept.len(), 400, "{scheme}: something of an ended flow is on its way for good");
        assert_eq!((forgotten, same_events), (kept, events), "{scheme}");
    }
}
