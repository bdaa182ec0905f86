//! Flows that start and end: after each change rates become exact again.

use serde_json::{Map, json};
use subak_core::scheme::Scheme;
use subak_core::{FlowId, Ns};
use subak_rounds::{CapacityDraw, Conditions, Random, Rounds, Setup};
use subak_schemes::{Visitor, with_scheme};

const ROUND_NS: Ns = 2 * 4 * 10_020;

/// Forty flows start, ten more follow, then every third one ends.
struct ComeAndGo {
    name: &'static str,
    setup: Setup,
}

impl ComeAndGo {
    /// Exact rates if only the flows `present` exist.
    fn ideal(&self, present: &[bool]) -> Vec<f64> {
        let chosen: Vec<usize> = (0..present.len()).filter(|&f| present[f]).collect();
        let setup = Setup {
            wires: self.setup.wires.clone(),
            paths: chosen.iter().map(|&f| self.setup.paths[FlowId::from_index(f)].clone()).collect(),
            weights: chosen.iter().map(|&f| self.setup.weights[FlowId::from_index(f)]).collect(),
        };
        let mut ideal = vec![0.0; present.len()];
        for (f, rate) in chosen.iter().zip(setup.exact().0) {
            ideal[*f] = rate;
        }
        ideal
    }
}

impl Visitor for ComeAndGo {
    type Out = ();
    const CONTROL_ONLY: bool = true;

    fn visit<S: Scheme>(self, scheme: S) {
        let conditions = Conditions { jitter_ns: 20, drop: 0.0, drop_until_ns: 0, rtt_ns: ROUND_NS, seed: 5 };
        let mut rounds = Rounds::new(scheme, &self.setup.wires, conditions, false);
        let mut present = vec![false; 50];
        let mut now = 3 * ROUND_NS;
        for phase in 0..3 {
            match phase {
                0 => present[..40].fill(true),
                1 => present[40..].fill(true),
                _ => present.iter_mut().step_by(3).for_each(|p| *p = false),
            }
            for f in rounds.flow_count()..present.iter().rposition(|p| *p).unwrap() + 1 {
                rounds.add(
                    self.setup.paths[FlowId::from_index(f)].clone(),
                    self.setup.weights[FlowId::from_index(f)],
                    now + f as Ns * 977,
                    0.0,
                );
            }
            for f in (0..50).filter(|&f| phase == 2 && !present[f]) {
                rounds.stop(FlowId::from_index(f), now + f as Ns * 977);
            }
            let ideal = self.ideal(&present);
            for (f, rate) in ideal.iter().enumerate().take(rounds.flow_count()) {
                rounds.set_ideal(FlowId::from_index(f), *rate);
            }
            now += 120 * ROUND_NS;
            rounds.run_until(now);
            let wrong_ns = rounds.last_wrong_ns().unwrap();
            assert!(wrong_ns + 30 * ROUND_NS < now, "{}: phase {phase} did not settle", self.name);
            for f in (0..50).filter(|&f| present[f]) {
                let rate = rounds.seen(FlowId::from_index(f)).rate_bps;
                assert!((rate / ideal[f] - 1.0).abs() < 1e-9, "{}: phase {phase}, flow {f}", self.name);
            }
        }
    }
}

#[test]
fn rates_are_exact_again_after_every_change() {
    for reverse in [true, false] {
        for name in subak_rounds::names() {
            let random =
                Random { links: 20, flows: 50, hops: 4, capacities: CapacityDraw::Mixed, heaviest: 8, seed: 3 };
            let mut params = Map::new();
            params.insert("control".into(), json!(0));
            params.insert("headroom".into(), json!(0));
            params.insert("reverse".into(), json!(reverse));
            if name.starts_with("s-perc") {
                params.insert("round".into(), json!(ROUND_NS as f64 / 1e9));
            }
            with_scheme(name, &params, ComeAndGo { name, setup: random.draw() }).unwrap();
        }
    }
}
