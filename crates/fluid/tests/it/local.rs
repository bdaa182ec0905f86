//! Repaired rates beside exact ones: the same completions and bytes to within the tolerance, under starts, ends, stops,
//! new weights, failures, recoveries, new capacities and new paths.

use proptest::prelude::*;
use serde_json::{Map, json};
use subak_core::backend::{Backend, FlowPlan, LinkChange, PacketSizes, Route};
use subak_core::{FlowId, Link, LinkId, Network, Ns, Utility};
use subak_fluid::Fluid;

const SIZES: PacketSizes = PacketSizes { mtu_bytes: 1500, header_bytes: 50, ack_bytes: 64 };
const LINKS: u32 = 6;

fn network(capacities: &[u32]) -> Network {
    let mut network = Network::new();
    for (i, gbps) in capacities.iter().enumerate() {
        let capacity_bps = f64::from(*gbps) * 1e9;
        let link = Link { id: format!("l{i}"), from: None, to: None, capacity_bps, delay_ns: 500, buffer_bytes: None };
        network.add(link).unwrap();
    }
    network
}

fn route(path: &[u32]) -> Route {
    Route { forward: path.iter().map(|&l| LinkId(l)).collect(), back: Vec::new() }
}

/// Something that happens to both simulations at a time.
#[derive(Debug, Clone)]
enum Act {
    Weight(usize, f64),
    Stop(usize),
    Down(u32),
    Capacity(u32, u32),
    Reroute(usize, Vec<u32>),
}

fn act(sim: &mut dyn Backend, act: &Act, down: &mut Vec<u32>, flows: usize) {
    let flow = |f: &usize| FlowId::from_index(f % flows);
    match act {
        Act::Weight(f, weight) => sim.set_weight(flow(f), *weight, None),
        Act::Stop(f) => sim.stop_flow(flow(f)),
        Act::Down(l) => match down.iter().position(|d| d == l) {
            None => {
                down.push(*l);
                sim.change_link(LinkId(*l), LinkChange::Down);
            }
            Some(i) => {
                down.remove(i);
                sim.change_link(LinkId(*l), LinkChange::Up);
            }
        },
        Act::Capacity(l, gbps) => sim.change_link(LinkId(*l), LinkChange::Capacity(f64::from(*gbps) * 1e9)),
        Act::Reroute(f, path) => sim.reroute(flow(f), &[route(path)]),
    }
}

fn paths() -> impl Strategy<Value = Vec<u32>> {
    prop::sample::subsequence((0..LINKS).collect::<Vec<_>>(), 1..4).prop_shuffle()
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0usize..40, 0.1..10.0f64).prop_map(|(f, weight)| Act::Weight(f, weight)),
        (0usize..40).prop_map(Act::Stop),
        (0..LINKS).prop_map(Act::Down),
        (0..LINKS, 1u32..40).prop_map(|(l, gbps)| Act::Capacity(l, gbps)),
        (0usize..40, paths()).prop_map(|(f, path)| Act::Reroute(f, path)),
    ]
}

/// Finish times of the flows and bytes of the links.
fn outcome(
    sim: &mut dyn Backend,
    flows: &[(Vec<u32>, Ns, u64, f64, f64)],
    acts: &[(Ns, Act)],
) -> (Vec<Option<Ns>>, Vec<u64>) {
    for (path, start_ns, size, weight, demand_gbps) in flows {
        sim.add(FlowPlan {
            start_ns: *start_ns,
            size_bytes: Some(*size),
            weight: *weight,
            demand_bps: demand_gbps * 1e9,
            ..FlowPlan::new(vec![route(path)])
        });
    }
    let mut down = Vec::new();
    for (at_ns, one) in acts {
        sim.run_until(*at_ns);
        act(sim, one, &mut down, flows.len());
    }
    down.clone().into_iter().for_each(|l| act(sim, &Act::Down(l), &mut down, flows.len()));
    sim.run_until_done(1_000_000_000_000);
    let bytes = (0..LINKS).map(|l| sim.link(LinkId(l)).data_bytes).collect();
    (FlowId::first(flows.len()).map(|f| sim.flow(f).finished_ns).collect(), bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn repaired_rates_end_flows_as_exact_ones(
        capacities in prop::collection::vec(1u32..40, LINKS as usize),
        flows in prop::collection::vec(
            (paths(), 0u64..2_000_000, 1u64..3_000_000, 0.2..5.0f64, prop_oneof![Just(f64::INFINITY), 0.5..20.0f64]),
            1..40,
        ),
        mut times in prop::collection::vec(0u64..3_000_000, 0..12),
        acts in prop::collection::vec(acts(), 12),
    ) {
        let network = network(&capacities);
        times.sort_unstable();
        let acts: Vec<(Ns, Act)> = times.into_iter().zip(acts).collect();
        let mut exact = Fluid::ideal(&Map::new(), &network, SIZES, &[]).unwrap();
        let (ends, bytes) = outcome(&mut exact, &flows, &acts);
        for (tolerance, most) in [(1e-10, 1e-6), (1e-3, 0.03)] {
            let params = json!({"tolerance": tolerance}).as_object().unwrap().clone();
            let mut local = Fluid::repaired(&params, &network, SIZES, &[]).unwrap().unwrap();
            let (local_ends, local_bytes) = outcome(&mut local, &flows, &acts);
            prop_assert_eq!(local.failures(), 0);
            for (f, (a, b)) in ends.iter().zip(&local_ends).enumerate() {
                // A flow that ends just as it is stopped may fall to either side.
                let (Some(a), Some(b)) = (a, b) else { continue };
                let took = |end: Ns| (end.saturating_sub(flows[f].1)) as f64;
                prop_assert!((took(*a) - took(*b)).abs() <= most * took(*a) + 10.0, "flow {f}: {a} and {b} at {tolerance}");
            }
            for (a, b) in bytes.iter().zip(&local_bytes) {
                prop_assert!((*a as f64 - *b as f64).abs() <= 10.0 * most * *a as f64 + 1e4, "{a} and {b} bytes at {tolerance}");
            }
        }
    }
}

#[test]
fn what_is_not_repaired_is_refused() {
    let network = network(&[10; LINKS as usize]);
    let params = json!({"tolerance": 0.01}).as_object().unwrap().clone();
    let local = || Fluid::repaired(&params, &network, SIZES, &[]).unwrap().unwrap();
    let mut pooled = local();
    pooled.add(FlowPlan::new(vec![route(&[0]), route(&[1])]));
    assert!(pooled.fault().unwrap().what.contains("single paths"));
    let mut log = local();
    log.add(FlowPlan { utility: Some(std::sync::Arc::new(Utility::log(1.0))), ..FlowPlan::new(vec![route(&[0])]) });
    assert!(log.fault().unwrap().what.contains("max-min alone"));
    let both = json!({"tolerance": 0.01, "acks": true}).as_object().unwrap().clone();
    assert!(Fluid::repaired(&both, &network, SIZES, &[]).unwrap_err().what.contains("beside ACKs"));
    assert!(Fluid::repaired(&Map::new(), &network, SIZES, &[]).unwrap().is_none());
}
