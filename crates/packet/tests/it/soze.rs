//! Soze in the packet simulator: weighted max-min over one and two links, changing weights, the paper's signal and
//! others.

use crate::common::*;
use serde_json::json;
use subak_core::backend::{Backend, PacketSizes};
use subak_core::{FlowId, LinkId, Network};

const MS: u64 = 1_000_000;
/// Fraction of a link that `soze-virtual` targets without ACKs on it.
const SHARE: f64 = 0.98;

fn build(scheme: &str, network: &Network, params: &serde_json::Value) -> Box<dyn Backend> {
    let params = params.as_object().unwrap();
    subak_packet::build(scheme, params, network, PacketSizes::default(), &[], 1).unwrap()
}

fn weighted(sim: &mut dyn Backend, links: &[u32], weight: f64) -> FlowId {
    let mut plan = plan(over_chain(links), 0, None);
    plan.weight = weight;
    sim.add(plan)
}

/// Mean received rates over the next 2 ms, Gb/s.
fn received_gbps(sim: &mut dyn Backend, flows: &[FlowId]) -> Vec<f64> {
    let until_ns = sim.now_ns() + 2 * MS;
    let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
    sim.run_until(until_ns);
    flows.iter().zip(before).map(|(&f, b)| (sim.flow(f).received_wire_bytes - b) as f64 * 8.0 / 2e6).collect()
}

fn near(got: &[f64], want: &[f64], within: f64) {
    for (g, w) in got.iter().zip(want) {
        assert!((g / (SHARE * w) - 1.0).abs() < within, "{got:?} Gb/s where {SHARE} of {want:?} is due");
    }
}

/// Figure 17 of the Soze paper: flow 1 on the first link, 2 to 4 on both links, 5 and 6 on the second.
#[test]
fn the_bottleneck_moves_with_a_weight_and_queues_stay_empty() {
    let network = chain(&[100e9, 100e9], 3000);
    let mut sim = build("soze-virtual", &network, &json!({}));
    let paths: [&[u32]; 6] = [&[0], &[0, 1], &[0, 1], &[0, 1], &[1], &[1]];
    let flows = paths.map(|path| weighted(&mut *sim, path, 1.0));
    for weight in [1.0, 2.0, 3.0, 5.0] {
        sim.set_weight(flows[0], weight, None);
        sim.run_until(sim.now_ns() + 3 * MS);
        sim.restart_peaks();
        let through = (100.0 / 5.0f64).min(100.0 / (weight + 3.0));
        let rest = (100.0 - 3.0 * through) / 2.0;
        let want = [100.0 - 3.0 * through, through, through, through, rest, rest];
        near(&received_gbps(&mut *sim, &flows), &want, 0.01);
        for link in [0, 2] {
            let packets = sim.link(LinkId(link)).peak_queued_bytes / 1500;
            assert!(packets <= 10, "{packets} packets wait at link {link} with weight {weight}");
        }
    }
}

#[test]
fn weights_are_real_numbers() {
    let mut sim = build("soze-virtual", &chain(&[100e9], 6000), &json!({}));
    let weights = [1.0, 1.05, 3.7, 16.0];
    let flows = weights.map(|weight| weighted(&mut *sim, &[0], weight));
    sim.run_until(4 * MS);
    near(&received_gbps(&mut *sim, &flows), &weights.map(|w| w * 100.0 / 21.75), 0.01);
}

#[test]
fn every_signal_and_control_shares_one_link_about_by_weight() {
    let cases = [
        json!({"state": "rate", "p": "150us", "m": 1}),
        json!({"state": "window-of-rate", "p": "150us", "m": 1}),
        json!({"state": "rate", "p": "150us", "m": 1, "update": "rtt"}),
        json!({"state": "rate", "signal": "utilization", "filter": "10us"}),
        json!({}),
        json!({"update": "rtt"}),
    ];
    for params in cases {
        let mut sim = build("soze", &chain(&[100e9], 6000), &params);
        let flows = [1.0, 1.0, 2.0, 4.0].map(|weight| weighted(&mut *sim, &[0], weight));
        sim.run_until(6 * MS);
        let got = received_gbps(&mut *sim, &flows);
        let unit = got.iter().sum::<f64>() / 8.0;
        let worst = got.iter().zip([1.0, 1.0, 2.0, 4.0]).map(|(g, w)| (g / (w * unit) - 1.0).abs()).fold(0.0, f64::max);
        println!("{params}: {got:?}");
        assert!(worst < 0.1, "{params}: {got:?}");
    }
}

/// Largest relative error of `got` from `want`, both in Gb/s.
fn worst(got: &[f64], want: &[f64]) -> f64 {
    got.iter().zip(want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
}

/// Figures 2, 3 and 17 of the Soze paper with a congestion window. With a pacing rate instead, rates oscillate
/// permanently, and the largest error of a flow is 24 to 50%.
#[test]
fn a_window_that_is_kept_settles_at_the_papers_parameters() {
    let mut sim = build("soze", &chain(&[100e9], 3000), &json!({}));
    let flows = [1.0, 2.0, 3.0, 4.0].map(|weight| weighted(&mut *sim, &[0], weight));
    sim.run_until(2 * MS);
    let got = received_gbps(&mut *sim, &flows);
    assert!(worst(&got, &[10.0, 20.0, 30.0, 40.0]) < 0.02, "{got:?}");
    // The target delay T at a tenth of the line rate is k + p / 3, or 9.67 us at 100 Gb/s.
    let queued_us = sim.link(LinkId(0)).queued_bytes as f64 * 8.0 / 100e9 * 1e6;
    assert!((queued_us / 9.67 - 1.0).abs() < 0.05, "{queued_us} us wait");

    let mut sim = build("soze", &chain(&[100e9, 100e9], 3000), &json!({}));
    let paths: [&[u32]; 6] = [&[0], &[0, 1], &[0, 1], &[0, 1], &[1], &[1]];
    let flows = paths.map(|path| weighted(&mut *sim, path, 1.0));
    for weight in [1.0, 2.0, 3.0, 5.0] {
        sim.set_weight(flows[0], weight, None);
        sim.run_until(sim.now_ns() + 2 * MS);
        let got = received_gbps(&mut *sim, &flows);
        let through = (100.0 / 5.0f64).min(100.0 / (weight + 3.0));
        let rest = (100.0 - 3.0 * through) / 2.0;
        let off = worst(&got, &[100.0 - 3.0 * through, through, through, through, rest, rest]);
        assert!(off < 0.03, "weight {weight}: {off}, {got:?}");
    }
}

/// With a window, rates converge on links of 10 to 400 Gb/s and at RTTs of 8 and 200 us. They do so with weights
/// that differ by a factor of thirty, and with many flows. The parameter p is the paper's, or larger if the RTT
/// requires it.
#[test]
fn a_window_holds_over_rates_round_trips_weights_and_many_flows() {
    let cases: [(f64, u64, u64, &[f64], &str); 4] = [
        (400e9, 2000, 4, &[1.0, 2.0, 3.0, 4.0], "20us"),
        (40e9, 2000, 8, &[1.0, 10.0, 30.0], "60us"),
        (10e9, 50_000, 20, &[1.0, 2.0, 4.0], "200us"),
        (100e9, 2000, 12, &[1.0; 100], "20us"),
    ];
    for (capacity_bps, delay_ns, after_ms, weights, p) in cases {
        let mut params = json!({});
        params["p"] = json!(p);
        let mut sim = build("soze", &chain(&[capacity_bps], delay_ns), &params);
        let flows: Vec<FlowId> = weights.iter().map(|&weight| weighted(&mut *sim, &[0], weight)).collect();
        sim.run_until(after_ms * MS);
        let got = received_gbps(&mut *sim, &flows);
        let sum: f64 = weights.iter().sum();
        let want: Vec<f64> = weights.iter().map(|w| capacity_bps / 1e9 * w / sum).collect();
        let off = worst(&got, &want);
        println!("{capacity_bps:e} {delay_ns} {p}: {off} {:?}", &got[..got.len().min(4)]);
        assert!(off < 0.1, "{capacity_bps:e} bit/s, {delay_ns} ns a link, p {p}: {off}, {got:?}");
    }
}

/// A window is at least one packet. A flow with an allocation below one packet per RTT (queueing included) therefore
/// gets more. With smaller packets it does not.
#[test]
fn a_window_is_a_packet_at_least() {
    let off = |mtu_bytes: u32| {
        let sizes = PacketSizes { mtu_bytes, ..PacketSizes::default() };
        let params = json!({});
        let network = chain(&[10e9], 2000);
        let mut sim = subak_packet::build("soze", params.as_object().unwrap(), &network, sizes, &[], 1).unwrap();
        let flows = [1.0, 30.0].map(|weight| weighted(&mut *sim, &[0], weight));
        sim.run_until(8 * MS);
        let got = received_gbps(&mut *sim, &flows);
        worst(&got[..1], &[10.0 / 31.0])
    };
    let (large, small) = (off(1500), off(300));
    println!("{large} {small}");
    assert!(large > 0.5 && small < 0.2, "{large} with 1500 bytes, {small} with 300");
}

/// Integer arithmetic has the same rates as floating point: each within 1% if rates converge, and their sum if they
/// oscillate.
#[test]
fn both_arithmetics_come_to_the_same_rates() {
    let settled = json!({"state": "rate", "p": "150us", "m": 1, "sender": "exact", "least_rate": "beta"});
    let filtered = json!({"state": "rate", "filter": "1us", "p": "250us", "sender": "exact", "least_rate": "beta"});
    let cases = [
        ("soze-virtual", json!({}), true),
        ("soze", settled, true),
        ("soze", filtered, true),
        ("soze", json!({"state": "rate", "signal": "wait", "filter": "10us"}), false),
        ("soze", json!({"state": "window-of-rate", "signal": "wait", "filter": "10us"}), false),
        ("soze", json!({}), true),
        ("soze", json!({"state": "rate", "signal": "utilization", "filter": "10us"}), false),
    ];
    for (scheme, params, each) in cases {
        let rates = ["float", "fixed"].map(|arithmetic| {
            let mut params = params.clone();
            params["arithmetic"] = json!(arithmetic);
            let mut sim = build(scheme, &chain(&[100e9, 100e9], 3000), &params);
            let paths: [&[u32]; 5] = [&[0], &[0, 1], &[0, 1], &[1], &[1]];
            let flows = [0, 1, 2, 3, 4].map(|k| weighted(&mut *sim, paths[k], 1.0 + k as f64));
            sim.run_until(4 * MS);
            sim.set_weight(flows[1], 7.0, None);
            sim.run_until(10 * MS);
            received_gbps(&mut *sim, &flows)
        });
        println!("{scheme} {params}: {rates:?}");
        let off = |a: f64, b: f64| (a / b - 1.0).abs();
        let sums = rates.each_ref().map(|rates| rates.iter().sum::<f64>());
        assert!(off(sums[0], sums[1]) < 0.01, "{scheme} {params}: {rates:?}");
        if each {
            let worst = rates[0].iter().zip(&rates[1]).map(|(a, b)| off(*a, *b)).fold(0.0, f64::max);
            assert!(worst < 0.01, "{scheme} {params}: {rates:?}");
        }
    }
}

#[test]
fn the_delay_takes_two_bytes_in_each_packet() {
    // At 1 Gb/s a byte takes 8 ns. The packet has 1446 + 54 bytes.
    let network = chain(&[1e9], 2000);
    for scheme in ["soze", "soze-virtual"] {
        for (params, bytes) in [(json!({}), 2), (json!({"header": 4}), 4), (json!({"header": 0}), 0)] {
            let params = params.as_object().unwrap();
            let mut sim = subak_packet::build(scheme, params, &network, PacketSizes::default(), &[], 1).unwrap();
            let flow = sim.add(plan(over_chain(&[0]), 0, Some(1446)));
            sim.run_until_done(MS);
            assert_eq!(sim.flow(flow).finished_ns, Some(2000 + 8 * (1500 + bytes)), "{scheme}");
        }
    }
}

#[test]
fn parameters_beyond_their_bounds_are_refused_with_the_reason() {
    let network = chain(&[100e9], 1000);
    let cases = [
        ("soze", json!({"m": 2}), "params.m", "lemma 3.1"),
        ("soze", json!({"signal": "utilization"}), "params.filter", "give a time"),
        ("soze", json!({"m": 0}), "params.m", "lemma 3.1"),
        ("soze", json!({"p": "3us"}), "params.p", "lemma 3.2"),
        ("soze", json!({"dt": "6us"}), "params.p", "lemma 3.2"),
        ("soze", json!({"beta_gbps": 0.1}), "params.beta_gbps", "give alpha_gbps"),
        ("soze", json!({"beta_gbps": 6, "alpha_gbps": 10}), "params.beta_gbps", "at most half of alpha_gbps, 5,"),
        ("soze", json!({"beta_gbps": 1e-6, "alpha_gbps": 1e5, "p": "12us"}), "params.p", "lemma 3.2"),
        ("soze-virtual", json!({"integral": 2}), "params.integral", "RTT later"),
        ("soze-virtual", json!({"m": 2.5}), "params.m", "lemma 3.1"),
    ];
    for (scheme, params, place, why) in cases {
        let made = subak_packet::build(scheme, params.as_object().unwrap(), &network, PacketSizes::default(), &[], 1);
        let fault = made.err().unwrap();
        assert_eq!(fault.place, place);
        assert!(fault.hint.contains(why), "{fault}");
    }
}
