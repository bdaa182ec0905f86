//! Lost control packets: s-PERC* recovers from any number of them, s-PERC from none.

use subak_core::scheme::Bound;
use subak_rounds::{CapacityDraw, Random, RoundsPlan, run};

fn random(seed: u64) -> Random {
    Random { links: 50, flows: 100, hops: 4, capacities: CapacityDraw::Equal, heaviest: 1, seed }
}

fn plan(drop: f64, seed: u64) -> RoundsPlan {
    RoundsPlan { drop, drop_rounds: 20.0, seed, max_rounds: 200.0, ..RoundsPlan::default() }
}

#[test]
fn s_perc_star_is_exact_again_within_6_w2_rounds_of_the_last_drop() {
    for drop in [1e-4, 1e-3, 1e-2] {
        let mut losses = 0;
        for seed in 0..200 {
            let setup = random(seed).draw();
            let (ideal_bps, _) = setup.exact();
            let outcome = run("s-perc-star", &setup, &ideal_bps, &plan(drop, seed)).unwrap();
            let allowed = setup.bounded(Bound::SixW2).1.unwrap();
            let took = outcome.rounds_after_drop.unwrap_or(0.0);
            assert!(outcome.converged, "drop {drop}, seed {seed}: not exact again");
            assert!(took <= allowed, "drop {drop}, seed {seed}: {took} rounds of {allowed}");
            losses += outcome.drops;
        }
        assert!(losses as f64 > 200.0 * 10_000.0 * drop, "{losses} losses at {drop}");
    }
}

#[test]
fn s_perc_without_the_shadow_does_not_recover() {
    let recovered = (0..10).filter(|&seed| {
        let setup = random(seed).draw();
        let (ideal_bps, _) = setup.exact();
        run("s-perc", &setup, &ideal_bps, &plan(1e-2, seed)).unwrap().converged
    });
    assert_eq!(recovered.count(), 0);
}
