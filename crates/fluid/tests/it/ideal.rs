//! The fluid simulation compared with results that can be computed by hand.

use proptest::prelude::*;
use subak_core::backend::{Backend, FlowPlan, Injected, PacketSizes, Route};
use subak_core::idle::idle_fct_ns;
use subak_core::{FlowId, Link, LinkId, Network, Ns};
use subak_fluid::{Fluid, Rates};

const SIZES: PacketSizes = PacketSizes { mtu_bytes: 1500, header_bytes: 50, ack_bytes: 64 };

fn network(links: &[(f64, Ns)]) -> Network {
    let mut network = Network::new();
    for (i, &(capacity_bps, delay_ns)) in links.iter().enumerate() {
        let link = Link { id: format!("l{i}"), from: None, to: None, capacity_bps, delay_ns, buffer_bytes: None };
        network.add(link).unwrap();
    }
    network
}

/// A flow over one path, given by link numbers.
fn plan(path: &[u32], start_ns: Ns, size_bytes: Option<u64>) -> FlowPlan {
    FlowPlan { start_ns, size_bytes, ..FlowPlan::new(vec![route(path)]) }
}

fn route(path: &[u32]) -> Route {
    Route { forward: path.iter().map(|&l| LinkId(l)).collect(), back: Vec::new() }
}

fn ideal(network: &Network, faults: &[Injected]) -> Fluid {
    Fluid::ideal(&serde_json::Map::new(), network, SIZES, faults).unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

#[test]
fn the_flows_of_thesis_figure_2_1() {
    // Links of 20, 30 and 12 Gb/s: the flow over the last two gets 12 Gb/s, the one over the first two the remaining
    // 18.
    let network = network(&[(20e9, 0), (30e9, 0), (12e9, 0)]);
    let mut sim = ideal(&network, &[]);
    sim.add(plan(&[0, 1], 0, None));
    sim.add(plan(&[1, 2], 0, None));
    sim.run_until(1_000_000);
    assert!(near(sim.flow(FlowId(0)).assigned_bps, 18e9) && near(sim.flow(FlowId(1)).assigned_bps, 12e9));
    assert_eq!(sim.link(LinkId(1)).data_bytes, 30_000_000 / 8);
    assert_eq!(sim.open_flows(), 2);
}

#[test]
fn acknowledgements_leave_the_rest_of_a_link_to_the_other_way() {
    // Two flows in opposite directions whose ACKs are a tenth of their data: x + x / 10 = C.
    let network = network(&[(11e9, 0), (11e9, 0)]);
    let mut rates = Rates::new(&network, 1.0).beside_acks(0.1);
    for (there, back) in [(0, 1), (1, 0)] {
        let route = Route { forward: vec![LinkId(there)], back: vec![LinkId(back)] };
        rates.add(&FlowPlan { routes: vec![route], ..plan(&[0], 0, None) });
    }
    rates.solve(&FlowId::each([0, 1]));
    assert!((rates.flow_bps(FlowId(0)) / 10e9 - 1.0).abs() < 2e-3, "{}", rates.flow_bps(FlowId(0)));
    rates.solve(&[FlowId(0)]);
    assert!(near(rates.flow_bps(FlowId(0)), 11e9), "alone it has the whole link");
}

#[test]
fn a_second_flow_takes_half_while_it_lasts() {
    let network = network(&[(8e9, 1000)]);
    let mut sim = ideal(&network, &[]);
    // 1000 full packets each: 1.5 MB on the wire, at 1 byte/ns.
    sim.add(plan(&[0], 0, Some(1_450_000)));
    sim.add(plan(&[0], 500_000, Some(1_450_000)));
    sim.run_until_done(Ns::MAX);
    // The first sends 0.5 MB alone and 1 MB at half rate: 2.5 ms; the second then has 0.5 MB left.
    assert_eq!(sim.flow(FlowId(0)).finished_ns, Some(2_500_000 + 1000));
    assert_eq!(sim.flow(FlowId(1)).finished_ns, Some(3_000_000 + 1000));
    assert_eq!(sim.now_ns(), 3_001_000);
    assert_eq!(sim.flow(FlowId(1)).received_bytes, 1_450_000);
}

#[test]
fn weights_demands_and_stops_count() {
    let network = network(&[(10e9, 0)]);
    let mut sim = ideal(&network, &[]);
    sim.add(FlowPlan { weight: 3.0, stop_ns: Some(2000), ..plan(&[0], 0, None) });
    sim.add(FlowPlan { demand_bps: 1e9, ..plan(&[0], 0, None) });
    sim.add(plan(&[0], 1000, None));
    let rates = |sim: &Fluid| [0, 1, 2].map(|f| (sim.flow(FlowId(f)).assigned_bps / 1e6).round());
    sim.run_until(999);
    assert_eq!(rates(&sim), [9000.0, 1000.0, 0.0]);
    sim.run_until(1000);
    assert_eq!(rates(&sim), [6750.0, 1000.0, 2250.0]);
    sim.run_until(2000);
    assert_eq!(rates(&sim), [0.0, 1000.0, 9000.0]);
    assert_eq!(sim.open_flows(), 2);
    assert_eq!(sim.flow(FlowId(0)).finished_ns, None);
}

#[test]
fn nothing_moves_over_a_link_that_is_down() {
    let network = network(&[(8e9, 0)]);
    let mut sim = ideal(&network, &[Injected::Down { link: LinkId(0), down_ns: 500, up_ns: 10_500, keeps: false }]);
    sim.add(plan(&[0], 0, Some(1450)));
    sim.run_until(5000);
    assert_eq!((sim.flow(FlowId(0)).assigned_bps, sim.link(LinkId(0)).data_bytes), (0.0, 500));
    sim.run_until_done(Ns::MAX);
    assert_eq!(sim.flow(FlowId(0)).finished_ns, Some(11_500));
}

#[test]
fn looking_often_changes_nothing() {
    let network = network(&[(10e9, 100), (7e9, 50)]);
    let build = || {
        let mut sim = ideal(&network, &[]);
        for k in 0..40u64 {
            let path: &[u32] = [&[0][..], &[1], &[0, 1]][k as usize % 3];
            sim.add(plan(path, 3000 * k, Some(5000 + 777 * k)));
        }
        sim
    };
    let (mut once, mut often) = (build(), build());
    once.run_until_done(Ns::MAX);
    (0..20_000).for_each(|k| often.run_until(k * 37));
    for f in 0..40 {
        assert_eq!(once.flow(FlowId(f)).finished_ns, often.flow(FlowId(f)).finished_ns);
    }
}

proptest! {
    #[test]
    fn a_lone_flow_takes_the_idle_time(
        links in proptest::collection::vec((1u32..400, 0u64..5000), 1..6),
        size_bytes in 1u64..40_000_000,
        start_ns in 0u64..1_000_000,
        demand in proptest::option::of(1u32..100),
    ) {
        let links: Vec<_> = links.into_iter().map(|(c, d)| (f64::from(c) * 1e8, d)).collect();
        let numbers: Vec<u32> = (0..links.len() as u32).collect();
        let path: Vec<LinkId> = LinkId::first(links.len()).collect();
        let network = network(&links);
        let mut sim = ideal(&network, &[]);
        let demand_bps = demand.map_or(f64::INFINITY, |d| f64::from(d) * 1e8);
        sim.add(FlowPlan { demand_bps, ..plan(&numbers, start_ns, Some(size_bytes)) });
        sim.run_until_done(Ns::MAX);
        let fct_ns = sim.flow(FlowId(0)).finished_ns.unwrap() - start_ns;
        prop_assert_eq!(fct_ns, idle_fct_ns(&network, &path, SIZES, size_bytes, demand_bps));
    }
}

#[test]
fn subflows_are_pooled() {
    // One flow has two disjoint links of 10 and 4 Gb/s, another flow the first of them: each gets 7 of the 14 Gb/s.
    let network = network(&[(10e9, 0), (4e9, 0)]);
    let mut sim = ideal(&network, &[]);
    sim.add(FlowPlan { routes: vec![route(&[0]), route(&[1])], ..plan(&[], 0, None) });
    sim.add(plan(&[0], 0, None));
    sim.run_until(1000);
    let rates = |sim: &Fluid| [0, 1].map(|f| (sim.flow(FlowId(f)).assigned_bps / 1e6).round());
    assert_eq!(rates(&sim), [7000.0, 7000.0]);
    assert_eq!((sim.link(LinkId(0)).data_bytes, sim.link(LinkId(1)).data_bytes), (1250, 500));
    assert_eq!(sim.flow(FlowId(0)).sent_bytes, sim.flow(FlowId(0)).received_bytes);
    assert!(sim.flow(FlowId(0)).sent_bytes > 800);
}

#[test]
fn subflows_are_pooled_whichever_flow_starts_first() {
    let network = network(&[(10e9, 0), (4e9, 0)]);
    let mut sim = ideal(&network, &[]);
    let both = || vec![route(&[0]), route(&[1])];
    for start_ns in [200, 100, 0] {
        sim.add(FlowPlan { routes: both(), ..plan(&[], start_ns, None) });
    }
    sim.run_until(1000);
    for f in 0..3 {
        assert!(
            (sim.flow(FlowId(f)).assigned_bps / (14e9 / 3.0) - 1.0).abs() < 1e-6,
            "{f}: {}",
            sim.flow(FlowId(f)).assigned_bps
        );
    }
}

#[test]
fn subflows_that_a_reroute_puts_on_one_path_are_one() {
    let network = network(&[(10e9, 0), (4e9, 0)]);
    let mut rates = Rates::new(&network, 1.0);
    rates.add(&FlowPlan { routes: vec![route(&[0]), route(&[1])], ..plan(&[], 0, None) });
    rates.add(&FlowPlan { routes: vec![route(&[0]), route(&[1])], ..plan(&[], 0, None) });
    rates.reroute(FlowId(0), &[route(&[0]), route(&[0])]);
    rates.solve(&FlowId::each([0, 1]));
    assert_eq!(rates.failures(), 0);
    assert!(near(rates.flow_bps(FlowId(0)), 7e9) && near(rates.flow_bps(FlowId(1)), 7e9));
}
