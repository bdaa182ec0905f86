//! The water-filling algorithm WF^k compared with the exact solver, and the properties of its partitions that the
//! PERC thesis proves.

use subak_core::{FlowId, LinkId};
use subak_rounds::{CapacityDraw, Degree, Random};
use subak_solve::freeze_iterations;
use subak_solve::structure::structure;

fn setups() -> impl Iterator<Item = Random> {
    (0..60).map(|seed| Random {
        links: 60,
        flows: 80,
        hops: [2, 3, 5, 10, 30][seed as usize % 5],
        capacities: if seed % 2 == 0 { CapacityDraw::Equal } else { CapacityDraw::Mixed },
        heaviest: [1, 16, 1000][seed as usize % 3],
        seed,
    })
}

#[test]
fn every_degree_finds_the_exact_rates() {
    for random in setups() {
        let setup = random.draw();
        let (exact, _) = setup.exact();
        let counts = [Degree::One, Degree::Two, Degree::All].map(|degree| {
            let levels = setup.levels(degree);
            for (f, rate) in exact.iter().enumerate() {
                let error = levels.rate[FlowId::from_index(f)] * setup.weights[FlowId::from_index(f)] / rate - 1.0;
                assert!(error.abs() < 1e-9, "{random:?}: flow {f} off by {error}");
            }
            levels.count
        });
        assert!(counts[0] <= counts[1] && counts[1] <= counts[2], "D <= W2 <= W: {counts:?}");
    }
}

#[test]
fn every_link_above_the_first_level_has_a_precedent() {
    for random in setups().take(20) {
        let setup = random.draw();
        for degree in [Degree::One, Degree::Two] {
            let levels = setup.levels(degree);
            for l in (0..60).filter(|&l| levels.of_link[LinkId::from_index(l as usize)] > 1) {
                let before = levels.of_link[LinkId::from_index(l as usize)] - 1;
                let rates = levels.link_rates(before);
                let precedents = levels.precedents(&rates, LinkId(l));
                assert!(!precedents.is_empty(), "{random:?}: link {l}");
                assert!(precedents.iter().all(|p| levels.of_link[p.precedent] == before));
            }
        }
    }
}

#[test]
fn rates_rise_until_the_freeze_iteration_and_stay() {
    for random in setups().take(20) {
        let setup = random.draw();
        let levels = setup.levels(Degree::Two);
        let case = setup.to_case().unwrap();
        let freezes = freeze_iterations(&case, &structure(&case, Degree::Two).unwrap());
        for l in (0..60usize).filter(|&l| levels.of_link[LinkId::from_index(l)] > 0) {
            let freeze = freezes[LinkId::from_index(l)].unwrap();
            let rates: Vec<f64> = (1..=levels.of_link[LinkId::from_index(l)])
                .map(|n| levels.link_rates(n)[LinkId::from_index(l)])
                .collect();
            assert!(rates.windows(2).all(|w| w[0] <= w[1] * (1.0 + 1e-9)), "lemma 3.4.1 at link {l}: {rates:?}");
            let frozen = &rates[freeze - 1..];
            assert!(frozen.iter().all(|r| (r / frozen[0] - 1.0).abs() < 1e-8), "lemma 3.4.7 at link {l}: {rates:?}");
        }
    }
}
