//! Swift, NUMFabric, DGD and RCP* against exact rates.

mod leaf_spine;

use leaf_spine::*;
use serde_json::json;
use subak_core::rng::Stream;
use subak_core::{Policy, Utility};

#[test]
fn swift_reaches_weighted_max_min_with_short_queues() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    for seed in 0..3 {
        let mut rng = Stream::new(seed, "flows");
        let plans: Vec<_> = (0..40)
            .map(|_| {
                let weight = [1.0, 2.0, 3.0, 5.0][rng.below(4)];
                plan(vec![net.one_way(&mut rng)], weight, None)
            })
            .collect();
        let want = exact(&net.network, &plans, Policy::MaxMin);
        let mut sim = start("swift", json!({}), &net.network);
        let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
        sim.run_until(MS);
        let got = received_bps(&mut *sim, &flows, 5 * MS);
        let worst = got.iter().zip(&want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max);
        let queue = (0..net.network.links().len() as u32).map(|l| sim.link(l).queued_packets).max().unwrap();
        eprintln!("seed {seed}: worst {worst}, within 5% {}, queue {queue}", share_within(&got, &want, 0.05));
    }
}

#[test]
fn numfabric_reaches_proportional_fairness() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    for scheme in ["numfabric", "xwi-s-perc", "dgd", "rcp-star"] {
        for seed in 0..3 {
            let mut rng = Stream::new(seed, "flows");
            let plans: Vec<_> =
                (0..60).map(|_| plan(vec![net.one_way(&mut rng)], 1.0, Some(Utility::log(1.0)))).collect();
            let want = exact(&net.network, &plans, Policy::AlphaFair { alpha: 1.0 });
            let mut sim = start(scheme, json!({}), &net.network);
            let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
            for k in 0..6 {
                let got = received_bps(&mut *sim, &flows, MS);
                let queue = (0..net.network.links().len() as u32).map(|l| sim.link(l).queued_packets).max().unwrap();
                let sum = got.iter().sum::<f64>() / want.iter().sum::<f64>();
                eprintln!(
                    "{scheme} seed {seed} {k} ms: within 10% {:.3} 5% {:.3}, sum {sum:.3} queue {queue}",
                    share_within(&got, &want, 0.1),
                    share_within(&got, &want, 0.05)
                );
            }
        }
    }
}
