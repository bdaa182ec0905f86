//! Under every scheme, capacity that a flow with a demand does not use goes to other flows.

use crate::common::*;
use std::sync::Arc;
use subak_core::backend::FlowPlan;
use subak_core::rng::Stream;
use subak_core::scheme::Goal;
use subak_core::{Case, Flow, FlowId, Flows, Network, Policy, Utility};
use subak_schemes::registry;
use subak_solve::{SolveOptions, maximize, solve};

const MS: u64 = 1_000_000;

/// Rates of `plans` under `scheme` after convergence, Gb/s on the wire.
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
    data_share(scheme, &Default::default())
}

/// Relative tolerance of a flow's rate: the one that the scheme states, or 0.1 if the scheme has no goal.
fn within(scheme: &str) -> f64 {
    let info = registry::find(scheme).unwrap();
    if info.goal == Goal::Own { 0.1 } else { info.settles.within.max(0.03) }
}

#[test]
fn what_a_flow_cannot_use_the_other_gets() {
    let network = star(3, 10e9, 1000);
    let mut missed = Vec::new();
    for (scheme, demand_gbps) in schemes().flat_map(|scheme| [1.0, 3.0].map(|demand| (scheme, demand))) {
        let utility = Some(Arc::new(Utility::log(1.0)));
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

/// Exact rates of `plans`, Gb/s, if data may use the fraction `share` of each link.
fn exact(network: &Network, share: f64, plans: &[FlowPlan]) -> Vec<f64> {
    let mut scaled = network.clone();
    network.links().ids().for_each(|l| scaled.link_mut(l).capacity_bps *= share);
    let mut flows = Flows::new();
    for (f, plan) in plans.iter().enumerate() {
        let mut flow = Flow::over(f.to_string(), plan.routes[0].forward.clone());
        (flow.weight, flow.demand_bps) = (plan.weight, Some(plan.demand_bps).filter(|d| d.is_finite()));
        flows.push(flow, network).unwrap();
    }
    let case = Case { network: scaled, flows, policy: Policy::MaxMin };
    let utilities: Option<Vec<Utility>> = plans.iter().map(|plan| plan.utility.as_deref().cloned()).collect();
    let options = SolveOptions::default();
    let answer = match utilities {
        Some(utilities) => maximize(&case, &utilities, &options),
        None => solve(&case, &options),
    };
    answer.unwrap().rates_bps.iter().map(|bps| bps / 1e9).collect()
}

/// Six flows over one to three of three links. Half of them have a demand. Weights differ from 1 if the goal
/// supports weights.
fn drawn(seed: u64, goal: Goal) -> Vec<FlowPlan> {
    let mut rng = Stream::new(seed, "demands");
    let paths: [&[u32]; 6] = [&[0], &[1], &[2], &[0, 1], &[1, 2], &[0, 1, 2]];
    let mut one = |(k, path): (usize, &&[u32])| {
        let weight = if goal == Goal::EqualMaxMin { 1.0 } else { 1.0 + rng.below(3) as f64 };
        let demand_bps = if k % 2 == 0 { (0.5 + 3.0 * rng.unit()) * 1e9 } else { f64::INFINITY };
        let utility =
            (!matches!(goal, Goal::Any | Goal::MaxMin | Goal::EqualMaxMin)).then(|| Arc::new(Utility::log(weight)));
        FlowPlan { weight, demand_bps, utility, ..plan(over_chain(path), 0, None) }
    };
    paths.iter().enumerate().map(&mut one).collect()
}

#[test]
fn rates_under_demands_are_those_of_the_exact_solver() {
    let mut missed = Vec::new();
    // Flows start at switches here, but Flowtune requires hosts as endpoints.
    for scheme in schemes_with_a_goal().filter(|scheme| *scheme != "flowtune") {
        let (network, goal) = (chain(&[10e9, 8e9, 12e9], 1000), registry::find(scheme).unwrap().goal);
        for seed in 0..3 {
            let plans = drawn(seed, goal);
            let (got, want) = (rates(scheme, &network, &plans), exact(&network, share(scheme), &plans));
            let off = got.iter().zip(&want).map(|(got, want)| (got - want).abs() / 10.0).fold(0.0, f64::max);
            println!("{scheme} {seed} {off:.3} {got:.2?} {want:.2?}");
            if off > within(scheme) {
                missed.push(format!("{scheme}, seed {seed}: {got:.2?}, not {want:.2?}"));
            }
        }
    }
    assert!(missed.is_empty(), "not the exact rates:\n{}", missed.join("\n"));
}
