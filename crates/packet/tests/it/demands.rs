//! What a flow cannot use, others get, under every scheme.

use crate::common::*;
use subak_core::driver::FlowPlan;
use subak_core::scheme::{Goal, Scheme};
use subak_core::{FlowId, Network, Utility};
use subak_schemes::{Visitor, registry};

const MS: u64 = 1_000_000;

struct Share;

impl Visitor for Share {
    type Out = f64;
    fn visit<S: Scheme>(self, scheme: S) -> f64 {
        scheme.data_share()
    }
}

/// Rates of `plans` under `scheme` once they are settled, Gb/s on the wire.
fn rates(scheme: &str, network: &Network, plans: &[FlowPlan]) -> Vec<f64> {
    const SPAN_NS: u64 = 10 * MS;
    let info = registry::find(scheme).unwrap();
    let mut sim = start(scheme, network, &[], 1);
    let flows: Vec<FlowId> = plans.iter().map(|plan| sim.add(plan.clone())).collect();
    let settle_ns = if info.goal == Goal::Own { 30 * MS } else { (info.settles.rtts * 60e3) as u64 };
    sim.run_until(settle_ns.max(10 * MS));
    let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
    sim.run_until(sim.now_ns() + SPAN_NS);
    let gbps = |(&f, before)| (sim.flow(f).received_wire_bytes - before) as f64 * 8.0 / SPAN_NS as f64;
    flows.iter().zip(before).map(gbps).collect()
}

fn share(scheme: &str) -> f64 {
    subak_schemes::with_scheme(scheme, &Default::default(), Share).unwrap()
}

/// What schemes with a goal get is theirs to within what they say; the others come within a tenth.
fn within(scheme: &str) -> f64 {
    let info = registry::find(scheme).unwrap();
    if info.goal == Goal::Own { 0.1 } else { info.settles.within.max(0.03) }
}

#[test]
fn what_a_flow_cannot_use_the_other_gets() {
    let network = star(3, 10e9, 1000);
    let mut missed = Vec::new();
    for (scheme, demand_gbps) in schemes().flat_map(|scheme| [1.0, 3.0].map(|demand| (scheme, demand))) {
        let utility = Some(std::sync::Arc::new(Utility::log(1.0)));
        let held =
            FlowPlan { demand_bps: demand_gbps * 1e9, utility: utility.clone(), ..plan(over_star(1, 0), 0, None) };
        let free = FlowPlan { utility, ..plan(over_star(2, 0), 0, None) };
        let got = rates(scheme, &network, &[held, free]);
        let want = [demand_gbps, 10.0 * share(scheme) - demand_gbps];
        let line = format!("{scheme}: {:.2} and {:.2}, not {:.2} and {:.2}", got[0], got[1], want[0], want[1]);
        println!("{line}");
        let off = got.iter().zip(want).map(|(got, want)| (got - want).abs() / 10.0).fold(0.0, f64::max);
        if off > within(scheme) {
            missed.push(line);
        }
    }
    assert!(missed.is_empty(), "shares are held that nobody uses:\n{}", missed.join("\n"));
}
