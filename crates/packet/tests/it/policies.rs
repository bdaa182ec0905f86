//! NUMFabric's policies in the packet simulator: FCTs, deadlines, resource pooling, bandwidth functions.

use crate::leaf_spine::*;
use serde_json::json;
use subak_core::backend::{FlowPlan, Route};
use subak_core::rng::Stream;
use subak_core::utility::{BandwidthFunction, Urgency};
use subak_core::{LinkId, Network, NodeKind, Policy, Utility};

/// Separate links of `rates_bps` with an RTT of about 16 us: link k forward is `2 k`, its reverse link `2 k + 1`.
fn parallel(rates_bps: &[f64]) -> Network {
    let mut network = Network::new();
    for (k, &rate) in rates_bps.iter().enumerate() {
        let a = network.node(&format!("a{k}"), NodeKind::Switch);
        let b = network.node(&format!("b{k}"), NodeKind::Switch);
        network.connect(a, b, rate, 7 * US, None).unwrap();
    }
    network
}

fn over(link: u32) -> Route {
    Route { forward: vec![LinkId(2 * link)], back: vec![LinkId(2 * link + 1)] }
}

fn urgent(routes: Vec<Route>, per: f64, size_bytes: u64) -> FlowPlan {
    let utility = Utility::Power { alpha: 0.125, ln_gain: -per.ln() };
    FlowPlan { size_bytes: Some(size_bytes), ..plan(routes, 1.0, Some(utility)) }
}

/// FCTs, ms, of flows that share one link of 10 Gb/s.
fn completion_ms(params: serde_json::Value, plans: Vec<FlowPlan>) -> Vec<f64> {
    let network = parallel(&[10e9]);
    let mut sim = start("numfabric", params, &network);
    let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
    sim.run_until_done(200 * MS);
    flows.iter().map(|&f| sim.flow(f).finished_ns.expect("it is done") as f64 / MS as f64).collect()
}

#[test]
fn short_flows_go_first() {
    let sizes = [8_000_000, 1_000_000, 4_000_000, 2_000_000];
    let plans: Vec<_> = sizes.iter().map(|&s| urgent(vec![over(0)], s as f64, s)).collect();
    let got = completion_ms(json!({"time_scale": 2.0}), plans);
    // Flows in order of size need 0.83, 2.49, 5.8 and 12.4 ms, plus the time in which prices converge from zero.
    let ideal = [15.0, 1.0, 7.0, 3.0].map(|mb| mb * 1e6 * 8.0 / 10e9 * 1500.0 / 1446.0 * 1e3);
    for (g, &w) in got.iter().zip(&ideal) {
        assert!((w..w + 1.5).contains(g), "{got:?} beside {ideal:?}");
    }
}

#[test]
fn what_remains_counts_for_srpt() {
    // When the late flow starts, the long flow has fewer remaining bytes: by size, the late flow would be served
    // first.
    let mut late = urgent(vec![over(0)], 3e6, 3_000_000);
    late.start_ns = 4 * MS;
    let plans = vec![urgent(vec![over(0)], 6e6, 6_000_000), late];
    let by_size = completion_ms(json!({"time_scale": 2.0}), plans.clone());
    let hurried =
        plans.into_iter().map(|p| FlowPlan { urgency: Urgency::Remaining { size_bytes: p.size_bytes.unwrap() }, ..p });
    let by_remaining = completion_ms(json!({"time_scale": 2.0}), hurried.collect());
    assert!(by_size[1] < by_size[0] && by_remaining[0] < by_remaining[1], "{by_size:?} {by_remaining:?}");
    assert!(by_remaining[0] < 5.6, "{by_remaining:?}: 4.98 ms alone");
}

#[test]
fn early_deadlines_go_first() {
    let deadlines_s = [9e-3, 3e-3, 6e-3];
    let plans: Vec<_> = deadlines_s.iter().map(|&d| urgent(vec![over(0)], d, 2_000_000)).collect();
    let hurried = plans
        .iter()
        .zip(deadlines_s)
        .map(|(p, d)| FlowPlan { urgency: Urgency::Deadline { after_ns: (d * 1e9) as u64 }, ..p.clone() });
    for plans in [hurried.collect(), plans.clone()] {
        let got = completion_ms(json!({"time_scale": 2.0}), plans);
        // With fair shares, all of them would end after 5 ms.
        for (g, d) in got.iter().zip(deadlines_s) {
            assert!(*g <= d * 1e3, "{got:?} beside {deadlines_s:?}");
        }
    }
}

/// Sum of the rates from 16 hosts to 16 others, relative to their links, and Jain's index of the rates. Each flow has
/// four subflows over random ones of eight spines; all links have 10 Gb/s.
fn pooled_permutation(scheme: &str, seed: u64, share: f64, settle_ns: u64) -> (f64, f64) {
    let net = LeafSpine::new(4, 8, 8, 10e9);
    let mut rng = Stream::new(seed, "permutation");
    let mut to: Vec<usize> = (16..32).collect();
    rng.shuffle(&mut to);
    let mut plans = Vec::new();
    for (src, &dst) in to.iter().enumerate() {
        let mut spines: Vec<usize> = (0..8).collect();
        rng.shuffle(&mut spines);
        let routes = spines[..4].iter().map(|&s| net.route(src, dst, s)).collect();
        plans.push(plan(routes, 1.0, Some(Utility::log(1.0))));
    }
    let want = exact(&net.network, &plans, Policy::AlphaFair { alpha: 1.0 });
    let mut sim = start(scheme, json!({}), &net.network);
    let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
    sim.run_until(settle_ns);
    let got = received_bps(&mut *sim, &flows, 5 * MS);
    let (sum, best) = (got.iter().sum::<f64>(), share * want.iter().sum::<f64>());
    (sum / best, sum * sum / (got.len() as f64 * got.iter().map(|g| g * g).sum::<f64>()))
}

#[test]
fn subflows_pool_the_links_they_take() {
    for (scheme, share, settle_ns) in
        [("numfabric", 1.0, 5 * MS), ("xwi-s-perc", 0.94, 5 * MS), ("xwi-soze", 0.98, 40 * MS)]
    {
        for seed in 0..2 {
            let (of_best, jain) = pooled_permutation(scheme, seed, share, settle_ns);
            println!("{scheme} {seed} {of_best} {jain}");
            assert!(of_best >= 0.95 && jain >= 0.98, "{scheme}, seed {seed}: {of_best} of the best, Jain {jain}");
        }
    }
}

/// Two pooled flows over three links: one over the first and second link, one over the second and third.
#[test]
fn pooled_flows_share_three_links() {
    for (scheme, share, settle_ns) in
        [("numfabric", 1.0, 10 * MS), ("xwi-s-perc", 0.94, 10 * MS), ("xwi-soze", 0.98, 60 * MS)]
    {
        let network = parallel(&[6e9, 6e9, 6e9]);
        let mut sim = start(scheme, json!({}), &network);
        let flows = [[0, 1], [1, 2]].map(|links| sim.add(plan(links.map(over).to_vec(), 1.0, Some(Utility::log(1.0)))));
        sim.run_until(settle_ns);
        for _ in 0..4 {
            let got = received_bps(&mut *sim, &flows, 10 * MS);
            println!("{scheme} {got:?}");
            for bps in got {
                assert!((bps / (9e9 * share) - 1.0).abs() < 0.05, "{scheme}: {bps}, not {}", 9e9 * share);
            }
        }
    }
}

/// Bandwidth functions of figure 2 in the NUMFabric paper: flow 1 has priority up to 10 Gb/s; then flow 2 rises twice
/// as fast as flow 1, up to 10 Gb/s.
fn figure_2() -> [Utility; 2] {
    let function = |points: &[(f64, f64)]| BandwidthFunction::new(points).unwrap();
    let one = function(&[(0.0, 0.0), (2.0, 10e9), (2.5, 15e9), (5.0, 40e9)]);
    let two = function(&[(0.0, 0.0), (2.0, 0.0), (2.5, 10e9)]);
    [one, two].map(|function| Utility::BandwidthFunction { alpha: 5.0, function })
}

#[test]
fn bandwidth_functions_as_in_figure_9() {
    for gbps in (5..=35).step_by(5).map(f64::from) {
        let network = parallel(&[gbps * 1e9]);
        let mut sim = start("numfabric", json!({}), &network);
        let flows = figure_2().map(|u| sim.add(plan(vec![over(0)], 1.0, Some(u))));
        sim.run_until(5 * MS);
        let got = received_bps(&mut *sim, &flows, 5 * MS);
        let beyond = (gbps - 10.0).clamp(0.0, 15.0);
        let two = beyond * 2.0 / 3.0;
        assert!((got[0] / 1e9 - (gbps - two)).abs() <= 0.25, "{gbps} Gb/s: {got:?}");
        assert!((got[1] / 1e9 - two).abs() <= 0.25, "{gbps} Gb/s: {got:?}");
    }
}

#[test]
fn bandwidth_functions_with_pooling_as_in_figure_10() {
    // Flow 1 has paths over the top (5 Gb/s) and the middle link, flow 2 over the middle and the bottom link (3
    // Gb/s).
    for (middle, want) in [(5e9, [10e9, 3e9]), (17e9, [15e9, 10e9])] {
        let network = parallel(&[5e9, middle, 3e9]);
        let mut sim = start("numfabric", json!({}), &network);
        let [one, two] = figure_2();
        let flows = [
            sim.add(plan(vec![over(0), over(1)], 1.0, Some(one))),
            sim.add(plan(vec![over(1), over(2)], 1.0, Some(two))),
        ];
        sim.run_until(6 * MS);
        let got = received_bps(&mut *sim, &flows, 5 * MS);
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() <= 0.25e9, "middle {middle}: {got:?} beside {want:?}");
        }
    }
}
