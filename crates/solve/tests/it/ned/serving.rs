//! Flows that start and end while NED iterates.

use subak_core::generate;
use subak_core::route::Router;
use subak_solve::ned::{Cluster, Ned, NedIteration, ServedFlow, Serving, ServingPlan};

#[test]
fn flows_end_when_their_bytes_are_sent_and_rates_come_near_the_optimum() {
    let star = serde_json::json!({"kind": "star", "hosts": 4, "rate": 10e9});
    let (network, _) = generate::network(&star).unwrap();
    let hosts: Vec<_> = network.hosts().collect();
    let mut router = Router::new(&network, 1, false);
    let mut flow = |src: usize, start_s: f64, size_bytes: u64| ServedFlow {
        path: router.path(hosts[src], hosts[3], 0).unwrap(),
        weight: 1.0,
        start_s,
        size_bytes,
    };
    // The first has 1.25 MB, which is 1 ms alone; the others share the link with it from 0.5 ms on.
    let flows = vec![flow(0, -1.0, 1_250_000), flow(1, 5e-4, 1 << 40), flow(2, 5e-4, 1 << 40)];
    let plan = ServingPlan { interval_s: 1e-5, steps: 3, passes: 1, compare_from: 100, compare_every: 50 };
    let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
    let mut ned = NedIteration::new(Cluster::<f64>::new(&capacity_bps, 1.0).unwrap(), Ned::default());
    let mut serving = Serving::new(flows.clone(), network.clone(), 1.0, plan).unwrap();
    let mut rates = Vec::new();
    let seen: Vec<_> = (0..300).map(|_| serving.step(&mut ned, &mut rates).unwrap()).collect();
    assert_eq!([seen[0], seen[49], seen[60], seen[299]].map(|interval| interval.flows), [1, 1, 3, 2]);
    let ended = seen.iter().position(|interval| interval.flows == 2).unwrap();
    assert!((195..=215).contains(&ended), "half of it takes three times as long: {ended}");
    assert!(seen.iter().all(|interval| interval.overload <= 1e-9));
    let compared: Vec<_> =
        seen.iter().filter_map(|interval| Some((interval.rate_bps, interval.compared_bps?))).collect();
    assert_eq!(compared.len(), 4);
    assert!(compared.iter().all(|(rate, (uniform, best))| *rate > 0.95 * best && *uniform <= rate * 1.000_001));
    serving.end(&mut ned).unwrap();
    assert!(ned.cluster().is_empty());
    let backwards = flows.into_iter().rev().collect();
    assert_eq!(Serving::new(backwards, network, 1.0, plan).err().unwrap().place, "start_s[2]");
}
