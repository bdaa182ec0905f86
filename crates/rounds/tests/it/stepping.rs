//! A run that its caller advances gives what a run at once gives.

use serde_json::json;
use subak_core::scheme::Bound;
use subak_core::{FlowId, LinkId, Ns};
use subak_rounds::{CapacityDraw, Conditions, Random, Recorded, RoundsPlan, SteppedRounds, run};

#[test]
fn a_stepped_run_gives_the_rounds_of_a_run_at_once() {
    for (scheme, drop) in [("s-perc", 0.0), ("fair", 0.0), ("s-perc-star", 1e-3)] {
        let random = Random { links: 40, flows: 60, hops: 5, capacities: CapacityDraw::Mixed, heaviest: 4, seed: 9 };
        let setup = random.draw();
        let (ideal_bps, _) = setup.exact();
        let plan = RoundsPlan { seed: 9, stagger_rounds: 0.0, drop, drop_rounds: 20.0, ..RoundsPlan::default() };
        let outcome = run(scheme, &setup, &ideal_bps, &plan).unwrap();
        let rtt_ns = setup.rtt_ns(plan.jitter_ns);
        let conditions = Conditions {
            jitter_ns: plan.jitter_ns,
            drop,
            drop_until_ns: outcome.start_ns + 20 * rtt_ns,
            rtt_ns,
            seed: plan.seed,
        };
        let network = setup.to_case().unwrap().network;
        let mut stepped = SteppedRounds::new(network, scheme, &plan, conditions, Recorded::default()).unwrap();
        let start_ns = 3 * rtt_ns;
        let flow = |f: FlowId| (setup.paths[f].clone(), setup.weights[f], start_ns);
        assert_eq!(stepped.add_all(setup.paths.ids().map(flow).collect()).unwrap(), FlowId(0));
        let mut steps = 0;
        for until_ns in (0..400).map(|k: Ns| 1 + k * 77_777) {
            stepped.run_until(until_ns, || true);
            steps += 1;
        }
        assert_eq!(steps, 400);
        let wrong_ns = stepped.last_wrong_ns().unwrap_or(0);
        let rounds = wrong_ns.saturating_sub(outcome.start_ns) as f64 / rtt_ns as f64;
        assert!(outcome.converged && outcome.rounds == rounds, "{scheme}: {} {rounds}", outcome.rounds);
        assert_eq!(stepped.drops().0, outcome.drops, "{scheme}");
        assert!(stepped.flows().zip(&ideal_bps).all(|(row, ideal)| row.4.ideal_bps == *ideal));
        assert!((scheme == "fair") == (stepped.bound_rounds() != setup.bounded(Bound::SixW2).1));
    }
}

#[test]
fn flows_are_added_all_or_none() {
    let random = Random { links: 4, flows: 4, hops: 2, capacities: CapacityDraw::Equal, heaviest: 1, seed: 1 };
    let network = random.draw().to_case().unwrap().network;
    let conditions = Conditions { jitter_ns: 0, drop: 0.0, drop_until_ns: 0, rtt_ns: 40_000, seed: 1 };
    let plan = RoundsPlan { params: json!({"reverse": false}).as_object().cloned().unwrap(), ..RoundsPlan::default() };
    let mut stepped = SteppedRounds::new(network, "s-perc", &plan, conditions, Recorded::default()).unwrap();
    let flow = |links: &[u32], weight: f64| (links.iter().map(|&l| LinkId(l)).collect(), weight, 0);
    let fault = stepped.add_all(vec![flow(&[0, 1], 1.0), flow(&[1, 2], -1.0)]).unwrap_err();
    assert!(fault.place.starts_with("flows[1]"), "{fault}");
    let fault = stepped.add_all(vec![flow(&[0, 1, 2], 1.0)]).unwrap_err();
    assert_eq!((fault.place.as_str(), stepped.flows().count()), ("flows[0].path", 0));
    assert_eq!(stepped.add_all(vec![flow(&[0, 1], 1.0)]).unwrap(), FlowId(0));
    // It stops only when it is told to.
    let mut asked = 0;
    stepped.run_until(10_000_000_000, || {
        asked += 1;
        asked < 3
    });
    assert_eq!(asked, 3);
    assert!(stepped.now_ns() < 10_000_000_000);
}
