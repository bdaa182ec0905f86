//! Exact rates updated after each change equal those computed from scratch.

use proptest::prelude::*;
use std::sync::Arc;
use subak_core::backend::{FlowPlan, LinkChange, Route};
use subak_core::utility::BandwidthFunction;
use subak_core::{FlowId, IdVec, Link, LinkId, Network, Utility};
use subak_fluid::Rates;

const LINKS: usize = 6;

fn network(capacities: &[f64]) -> Network {
    let mut network = Network::new();
    for (l, &capacity_bps) in capacities.iter().enumerate() {
        let link = Link { id: format!("l{l}"), from: None, to: None, capacity_bps, delay_ns: 1000, buffer_bytes: None };
        network.add(link).unwrap();
    }
    network
}

fn plan(paths: Vec<Vec<LinkId>>, weight: f64, utility: Option<Utility>) -> FlowPlan {
    FlowPlan {
        weight,
        utility: utility.map(Arc::new),
        ..FlowPlan::new(paths.into_iter().map(|forward| Route { forward, back: Vec::new() }).collect())
    }
}

/// Random paths of a flow: one, or two that differ.
fn paths() -> impl Strategy<Value = Vec<Vec<LinkId>>> {
    let path = || prop::sample::subsequence(LinkId::first(LINKS).collect::<Vec<_>>(), 1..=3);
    (path(), path(), any::<bool>()).prop_map(|(a, b, two)| if two && a != b { vec![a, b] } else { vec![a] })
}

/// Utility function of a flow with `weight` under policy number `policy`.
fn utility(policy: usize, weight: f64) -> Option<Utility> {
    let alpha_fair = |alpha: f64| Some(Utility::Power { alpha, ln_gain: alpha * weight.ln() });
    match policy {
        0 => None,
        1 => alpha_fair(1.0),
        2 => alpha_fair(0.5),
        3 => alpha_fair(2.0),
        _ => {
            let points = [(0.0, 0.0), (1.0, 1e9 * weight), (4.0, 30e9)];
            Some(Utility::BandwidthFunction { alpha: 5.0, function: BandwidthFunction::new(&points).unwrap() })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn changes_one_by_one_or_at_once(
        policy in 0usize..5,
        flows in prop::collection::vec((paths(), 0.5f64..4.0), 2..8),
        capacities in prop::collection::vec(1e9f64..20e9, LINKS),
        changes in prop::collection::vec((0..LINKS, 1e9f64..20e9, any::<bool>()), 1..6),
    ) {
        let plans: Vec<FlowPlan> = flows.into_iter().map(|(p, w)| plan(p, w, utility(policy, w))).collect();
        let mut live: Vec<FlowId> = Vec::new();
        let mut stepwise = Rates::new(&network(&capacities), 1.0);
        let mut last = IdVec::<LinkId, f64>::from(capacities);
        let mut down = IdVec::<LinkId, bool>::filled(false, LINKS);
        plans.iter().for_each(|p| stepwise.add(p));
        // Flows start one by one; links change, and one stays down.
        for f in FlowId::first(plans.len()) {
            live.push(f);
            if let Some(&(l, capacity_bps, fails)) = changes.get(f.index()) {
                let l = LinkId::from_index(l);
                if fails && !down[l] && l.0 < 2 {
                    down[l] = true;
                    stepwise.change(l, LinkChange::Down);
                } else {
                    last[l] = capacity_bps;
                    stepwise.change(l, LinkChange::Capacity(capacity_bps));
                }
            }
            stepwise.solve(&live);
        }
        let mut at_once = Rates::new(&network(&last), 1.0);
        plans.iter().for_each(|p| at_once.add(p));
        LinkId::first(LINKS).filter(|&l| down[l]).for_each(|l| at_once.change(l, LinkChange::Down));
        at_once.solve(&live);
        prop_assert_eq!((stepwise.failures(), at_once.failures()), (0, 0));
        for f in FlowId::first(plans.len()) {
            let (a, b) = (stepwise.flow_bps(f), at_once.flow_bps(f));
            prop_assert!((a - b).abs() <= 1e-4 * b.max(1e6), "policy {policy}, flow {f}: {a}, at once {b}");
        }
        for l in LinkId::first(LINKS) {
            let mut load = 0.0;
            for f in FlowId::first(plans.len()) {
                for sub in stepwise.subflows(f).filter(|&sub| stepwise.path(sub).contains(&l)) {
                    load += stepwise.sub_bps(sub);
                }
            }
            let most = if down[l] { 0.0 } else { last[l] };
            prop_assert!(load <= most * (1.0 + 1e-6) + 1.0, "link {l}: {load} of {most}");
        }
    }
}
