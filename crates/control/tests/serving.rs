//! Flows under an allocator and its endpoints, without packets.

use subak_control::{Allocation, AllocationPlan, AnnouncedFlow};
use subak_core::generate;

fn plan(group: usize) -> AllocationPlan {
    AllocationPlan { seed: 1, tick_ns: 10_000, gamma: None, group, compare_from: 0, compare_every: 100 }
}

fn flows() -> Vec<AnnouncedFlow> {
    let flow = |src, dst, start_s, size_bytes| AnnouncedFlow { src, dst, start_s, size_bytes };
    vec![flow(0, 4, 0.0, 1 << 40), flow(1, 4, 0.0, 1 << 40), flow(2, 5, 1e-3, 10_000), flow(3, 4, 2e-3, 1 << 40)]
}

#[test]
fn endpoints_come_to_have_the_optimal_rates_and_bundles_cost_less() {
    let star = serde_json::json!({"kind": "star", "hosts": 6, "rate": 10e9});
    let (network, _) = generate::network(&star).unwrap();
    let bytes = [1, 3].map(|group| {
        let mut allocation = Allocation::new(network.clone(), flows(), plan(group)).unwrap();
        let ticks: Vec<_> = (0..=500).map(|_| allocation.tick().unwrap()).collect();
        let (rate_bps, best_bps) = ticks[500].compared_bps.unwrap();
        assert!((rate_bps / best_bps - 1.0).abs() < 0.02, "{rate_bps} {best_bps}");
        assert!(ticks.iter().any(|tick| tick.flows == 3) && ticks[500].flows == 3, "the short flow has ended");
        assert!(ticks.iter().all(|tick| tick.datagrams > 0 || (tick.rates, tick.bytes) == (0, 0)));
        ticks.iter().map(|tick| tick.bytes).sum::<usize>()
    });
    assert!(bytes[1] < bytes[0], "{bytes:?}");
}

#[test]
fn flows_between_hosts_in_the_order_of_their_starts_are_taken() {
    let star = serde_json::json!({"kind": "star", "hosts": 6});
    let (network, _) = generate::network(&star).unwrap();
    let place = |change: fn(&mut Vec<AnnouncedFlow>)| {
        let mut flows = flows();
        change(&mut flows);
        Allocation::new(network.clone(), flows, plan(1)).err().map(|fault| fault.place)
    };
    assert_eq!(place(|_| ()), None);
    assert_eq!(place(|flows| flows[1].dst = 6).as_deref(), Some("flows[1]"));
    assert_eq!(place(|flows| flows[2].dst = 2).as_deref(), Some("flows[2]"));
    assert_eq!(place(|flows| flows.reverse()).as_deref(), Some("start_s"));
}
