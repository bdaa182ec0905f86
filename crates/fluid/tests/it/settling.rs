//! A scheme with a stated convergence time under the fluid backend.

use proptest::prelude::*;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, Injected, PacketSizes, Route};
use subak_core::scheme::{Goal, Settles, Utilities};
use subak_core::{FlowId, Link, LinkId, Network, Ns, Utility};
use subak_fluid::{Fluid, Stated};

const SIZES: PacketSizes = PacketSizes { mtu_bytes: 1500, header_bytes: 50, ack_bytes: 64 };
/// Convergence to within a tenth after 23 RTTs: a time constant of ten RTTs.
const SETTLES: Settles = Settles { within: 0.1, rtts: 23.025_850_929_940_457 };

fn network(links: &[(f64, Ns)]) -> Network {
    let mut network = Network::new();
    for (i, &(capacity_bps, delay_ns)) in links.iter().enumerate() {
        let link = Link { id: format!("l{i}"), from: None, to: None, capacity_bps, delay_ns, buffer_bytes: None };
        network.add(link).unwrap();
    }
    network
}

/// One link of 12 Gb/s and 9 us of delay. The RTT is 10 us, so that the time constant is 100 us.
fn one_link() -> Network {
    network(&[(12e9, 9000)])
}

/// A flow over one path, given by link numbers.
fn plan(path: &[u32], start_ns: Ns, size_bytes: Option<u64>) -> FlowPlan {
    FlowPlan { start_ns, size_bytes, ..FlowPlan::new(vec![route(path)]) }
}

fn route(path: &[u32]) -> Route {
    Route { forward: path.iter().map(|&l| LinkId(l)).collect(), back: Vec::new() }
}

fn fluid(goal: Goal, network: &Network, faults: &[Injected]) -> Fluid {
    Fluid::settling(Stated { goal, settles: SETTLES, data_share: 1.0 }, network, SIZES, faults).unwrap()
}

fn gbps(sim: &Fluid, flow: FlowId) -> f64 {
    sim.flow(flow).assigned_bps / 1e9
}

#[test]
fn a_rate_rises_from_nothing_by_the_time_constant() {
    let mut sim = fluid(Goal::MaxMin, &one_link(), &[]);
    sim.add(plan(&[0], 50_000, None));
    sim.run_until(50_000);
    assert_eq!(gbps(&sim, FlowId(0)), 0.0);
    for (at_ns, want) in [(150_000, 1.0 - (-1.0f64).exp()), (350_000, 1.0 - (-3.0f64).exp())] {
        sim.run_until(at_ns);
        assert!((gbps(&sim, FlowId(0)) / 12.0 - want).abs() < 1e-9, "{} at {at_ns}", gbps(&sim, FlowId(0)));
    }
    // The bytes are the integral of the rate: C (t - T (1 - e^(-t/T))).
    let want = 12e9 / 8.0 * (300e-6 - 100e-6 * (1.0 - (-3.0f64).exp()));
    assert!((sim.flow(FlowId(0)).received_wire_bytes as f64 - want).abs() < 2.0);
}

#[test]
fn rates_move_when_flows_come_and_go_and_weights_change_and_not_before() {
    let mut sim = fluid(Goal::MaxMin, &one_link(), &[]);
    let (a, b) = (sim.add(plan(&[0], 0, None)), sim.add(FlowPlan { stop_ns: Some(4_000_000), ..plan(&[0], 0, None) }));
    sim.run_until(2_000_000);
    assert!((gbps(&sim, a) - 6.0).abs() < 1e-6 && (gbps(&sim, b) - 6.0).abs() < 1e-6);
    sim.set_weight(a, 3.0, None);
    sim.run_until(2_000_001);
    assert!((gbps(&sim, a) - 6.0).abs() < 1e-3, "it has only begun to move: {}", gbps(&sim, a));
    sim.run_until(2_100_000);
    assert!((gbps(&sim, a) - (9.0 - 3.0 * (-1.0f64).exp())).abs() < 1e-6);
    sim.run_until(4_000_000);
    assert!((gbps(&sim, a) - 9.0).abs() < 1e-6);
    sim.run_until(6_000_000);
    assert!((gbps(&sim, a) - 12.0).abs() < 1e-6 && gbps(&sim, b) == 0.0);
}

#[test]
fn what_a_link_no_longer_carries_is_cut_at_once() {
    let faults = [
        Injected::Capacity { link: LinkId(0), capacity_bps: 3e9, at_ns: 1_000_000 },
        Injected::Down { link: LinkId(0), down_ns: 2_000_000, up_ns: 3_000_000, keeps: false },
    ];
    let mut sim = fluid(Goal::MaxMin, &one_link(), &faults);
    sim.add(plan(&[0], 0, None));
    sim.run_until(999_999);
    let before = sim.link(LinkId(0)).data_bytes;
    sim.run_until(2_000_000);
    let carried = (sim.link(LinkId(0)).data_bytes - before) as f64;
    assert!((carried / (3e9 / 8.0 * 1e-3) - 1.0).abs() < 1e-4, "{carried}");
    let before = sim.link(LinkId(0)).data_bytes;
    sim.run_until(3_000_000);
    assert_eq!((sim.link(LinkId(0)).data_bytes, gbps(&sim, FlowId(0))), (before, 0.0));
    sim.run_until(3_100_000);
    assert!((gbps(&sim, FlowId(0)) / 3.0 - (1.0 - (-1.0f64).exp())).abs() < 1e-3, "and then it rises from nothing");
}

#[test]
fn a_flow_ends_when_its_bytes_are_sent() {
    let mut sim = fluid(Goal::MaxMin, &one_link(), &[]);
    let flow = sim.add(plan(&[0], 0, Some(1_450_000)));
    sim.run_until_done(Ns::MAX);
    // 1.5 MB are 1 ms at full rate; t - T (1 - e^(-t/T)) = 1 ms is solved by t = 1.1 ms, to within 1.7 ns.
    let fct_ns = sim.flow(flow).finished_ns.unwrap() as f64;
    assert!((fct_ns - 1_100_000.0 - 9000.0).abs() < 5.0, "{fct_ns}");
    assert_eq!(sim.flow(flow).received_bytes, 1_450_000);
}

#[test]
fn each_goal_has_its_own_exact_rates() {
    // One flow over both links, one over each: max-min gives halves, the sum of logarithms a third to the long one.
    let line = network(&[(12e9, 1000), (12e9, 1000)]);
    for (goal, weight, want) in [
        (Goal::MaxMin, 1.0, 6.0),
        (Goal::MaxMin, 2.0, 8.0),
        (Goal::EqualMaxMin, 2.0, 6.0),
        (Goal::Utility(Utilities::ALL), 1.0, 4.0),
        (Goal::Any, 1.0, 6.0),
    ] {
        let mut sim = fluid(goal, &line, &[]);
        let long = sim.add(FlowPlan { weight, ..plan(&[0, 1], 0, None) });
        for l in [0, 1] {
            sim.add(plan(&[l], 0, None));
        }
        sim.run_until(10_000_000);
        assert!((gbps(&sim, long) - want).abs() < 1e-3, "{goal:?}: {}", gbps(&sim, long));
    }
    let mut sim = fluid(Goal::Utility(Utilities::ALL), &line, &[]);
    let fixed = FlowPlan { utility: Some(Arc::new(Utility::log(2.0))), ..plan(&[0, 1], 0, None) };
    let long = sim.add(fixed);
    for l in [0, 1] {
        sim.add(plan(&[l], 0, None));
    }
    sim.run_until(10_000_000);
    assert!((gbps(&sim, long) - 6.0).abs() < 1e-3, "2 / (2 + 2) of each link: {}", gbps(&sim, long));
}

#[test]
fn what_states_nothing_is_refused() {
    let made = |goal, settles| Fluid::settling(Stated { goal, settles, data_share: 1.0 }, &one_link(), SIZES, &[]);
    assert!(made(Goal::MaxMin, Settles::NEVER).is_none() && made(Goal::Own, SETTLES).is_none());
    assert!(made(Goal::MaxMin, Settles { within: 1.0, rtts: 3.0 }).is_none());
    let mut at_once = made(Goal::MaxMin, Settles::AT_ONCE).unwrap();
    at_once.add(plan(&[0], 0, None));
    at_once.run_until(1);
    assert_eq!(gbps(&at_once, FlowId(0)), 12.0);
}

#[test]
fn minutes_take_as_many_events_as_flows() {
    let mut sim = fluid(Goal::MaxMin, &one_link(), &[]);
    for k in 0..10 {
        sim.add(plan(&[0], k * 1_000_000_000, (k % 2 == 1).then_some(1_000_000_000)));
    }
    sim.run_until(60_000_000_000);
    assert!(sim.events() < 50, "{} events", sim.events());
    let sent = sim.link(LinkId(0)).data_bytes as f64;
    assert!((sent / (12e9 / 8.0 * 60.0) - 1.0).abs() < 1e-4, "{sent}");
}

proptest! {
    /// No link ever carries more than its capacity, whichever flows start and end.
    #[test]
    fn links_carry_no_more_than_they_can(
        capacities in prop::collection::vec(1u32..40, 3..5),
        flows in prop::collection::vec((0u64..2_000_000, 1u64..3_000_000, 0usize..3, 1usize..3, 1u32..9), 1..8),
        cut in 1u32..10,
    ) {
        let links: Vec<_> = capacities.iter().map(|&c| (f64::from(c) * 1e9, 2000)).collect();
        let faults = [Injected::Capacity { link: LinkId(0), capacity_bps: f64::from(cut) * 1e8, at_ns: 700_000 }];
        let mut sim = fluid(Goal::MaxMin, &network(&links), &faults);
        let mut plans = Vec::new();
        for &(start_ns, size, first, length, weight) in &flows {
            let path: Vec<u32> = (first..(first + length).min(links.len())).map(|l| l as u32).collect();
            plans.push(path.clone());
            sim.add(FlowPlan { weight: f64::from(weight), ..plan(&path, start_ns, Some(size)) });
        }
        for at_us in (0..4000).step_by(50) {
            sim.run_until(at_us * 1000);
            for (l, &(whole_bps, _)) in links.iter().enumerate() {
                let capacity_bps = if l == 0 && at_us >= 700 { f64::from(cut) * 1e8 } else { whole_bps };
                let on: f64 = (0..plans.len()).filter(|&f| plans[f].contains(&(l as u32)))
                    .map(|f| sim.flow(FlowId::from_index(f)).assigned_bps).sum();
                prop_assert!(on <= capacity_bps * (1.0 + 1e-9), "{on} on {capacity_bps} at {at_us} us");
            }
        }
        sim.run_until_done(Ns::MAX);
        for (f, &(_, size, ..)) in flows.iter().enumerate() {
            prop_assert_eq!(sim.flow(FlowId::from_index(f)).received_bytes, size);
        }
    }
}
