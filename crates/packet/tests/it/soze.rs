//! Soze in the packet simulator: weighted max-min over one and two links, changing weights, the paper's signal and
//! others.

use crate::common::*;
use serde_json::json;
use subak_core::backend::{Backend, FlowPlan, PacketSizes};
use subak_core::rng::Stream;
use subak_core::{Case, Flow, FlowId, Flows, LinkId, Network, Policy};
use subak_solve::{SolveOptions, solve};

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

/// One case on one link, and the bound on the error of every flow but the lightest `spared`.
struct Bounded {
    capacity_bps: f64,
    delay_ns: u64,
    after_ms: u64,
    weights: &'static [f64],
    p: &'static str,
    k: &'static str,
    mtu_bytes: u32,
    /// Buffer of the link; `None`: the default.
    buffer_bytes: Option<u64>,
    spared: usize,
    within: f64,
}

const TYPICAL: Bounded = Bounded {
    capacity_bps: 100e9,
    delay_ns: 2000,
    after_ms: 6,
    weights: &[1.0, 2.0, 3.0, 4.0],
    p: "20us",
    k: "3us",
    mtu_bytes: 1500,
    buffer_bytes: None,
    spared: 0,
    within: 0.05,
};

impl Bounded {
    /// Relative errors of the received rates, in the order of weights.
    fn errors(&self) -> Vec<f64> {
        let params = json!({"p": self.p, "k": self.k});
        let mut network = chain(&[self.capacity_bps], self.delay_ns);
        network.link_mut(LinkId(0)).buffer_bytes = self.buffer_bytes;
        let sizes = PacketSizes { mtu_bytes: self.mtu_bytes, ..PacketSizes::default() };
        let mut sim = subak_packet::build("soze", params.as_object().unwrap(), &network, sizes, &[], 1).unwrap();
        let flows: Vec<FlowId> = self.weights.iter().map(|&weight| weighted(&mut *sim, &[0], weight)).collect();
        sim.run_until(self.after_ms * MS);
        let before: Vec<u64> = flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect();
        let (from_ns, sum) = (sim.now_ns(), self.weights.iter().sum::<f64>());
        sim.run_until(from_ns + (self.after_ms * MS / 3).max(2 * MS));
        let passed_ns = (sim.now_ns() - from_ns) as f64;
        let got =
            flows.iter().zip(before).map(|(&f, b)| (sim.flow(f).received_wire_bytes - b) as f64 * 8e9 / passed_ns);
        got.zip(self.weights).map(|(got, w)| got / (self.capacity_bps * w / sum) - 1.0).collect()
    }

    fn check(&self) {
        let errors = self.errors();
        let what = format!(
            "{:e} bit/s, {} ns a link, p {}, {} bytes: {:.3?}",
            self.capacity_bps,
            self.delay_ns,
            self.p,
            self.mtu_bytes,
            &errors[..errors.len().min(4)]
        );
        println!("{what}");
        let worst = errors[self.spared..].iter().map(|e| e.abs()).fold(0.0, f64::max);
        assert!(worst < self.within, "{worst} where {} holds: {what}", self.within);
    }
}

/// Links of 0.1 to 400 Gb/s: below 40 Gb/s with a p and k of as many packets' times.
#[test]
fn a_window_holds_on_links_of_a_tenth_to_400_gbps() {
    for case in [
        Bounded { capacity_bps: 0.1e9, after_ms: 6000, p: "20ms", k: "1ms", within: 0.1, ..TYPICAL },
        Bounded { capacity_bps: 1e9, after_ms: 600, p: "2ms", k: "100us", within: 0.1, ..TYPICAL },
        Bounded { capacity_bps: 10e9, after_ms: 60, p: "200us", k: "10us", within: 0.1, ..TYPICAL },
        Bounded { capacity_bps: 40e9, mtu_bytes: 600, ..TYPICAL },
        TYPICAL,
        Bounded { capacity_bps: 400e9, ..TYPICAL },
    ] {
        case.check();
    }
}

/// RTTs of 2 us to 20 ms. Beyond 17 us p is `ln(alpha / beta) / 6` RTTs, and the buffer has room for (k + p) C.
#[test]
fn a_window_holds_over_round_trips() {
    let slow = Bounded { p: "0us", buffer_bytes: Some(64_000_000), ..TYPICAL };
    for case in [
        Bounded { delay_ns: 900, ..TYPICAL },
        Bounded { delay_ns: 10_000, p: "0us", ..TYPICAL },
        Bounded { delay_ns: 100_000, after_ms: 40, ..slow },
        Bounded { capacity_bps: 10e9, delay_ns: 1_000_000, after_ms: 400, ..slow },
        Bounded { capacity_bps: 1e9, delay_ns: 10_000_000, after_ms: 4000, ..slow },
    ] {
        case.check();
    }
}

/// An RTT of 20 ms makes p 23 ms, or 2.9 MB of 1 Gb/s. With a smaller buffer packets are lost, and rates swing.
#[test]
fn a_window_does_not_hold_where_its_p_overflows_the_buffer() {
    let case = Bounded { capacity_bps: 1e9, delay_ns: 10_000_000, after_ms: 4000, p: "0us", ..TYPICAL };
    let errors = case.errors();
    println!("{errors:.3?}");
    assert!(errors.iter().any(|e| e.abs() > 0.3), "{errors:?}: the limit on the scheme's page no longer holds");
}

#[test]
fn a_window_holds_for_a_hundred_flows() {
    Bounded { weights: &[1.0; 100], after_ms: 12, within: 0.12, ..TYPICAL }.check();
    Bounded { weights: &[1.0; 100], capacity_bps: 400e9, ..TYPICAL }.check();
}

/// Weights that differ by a factor of 1000. With 1500 bytes the flow of weight 1 is below a packet per RTT.
#[test]
fn a_window_holds_for_weights_up_to_a_thousand() {
    let weights = &[1.0, 10.0, 100.0, 1000.0];
    Bounded { weights, spared: 1, within: 0.15, ..TYPICAL }.check();
    Bounded { weights, mtu_bytes: 300, within: 0.15, ..TYPICAL }.check();
    let lightest = Bounded { weights, ..TYPICAL }.errors()[0];
    assert!(lightest > 1.0, "{lightest}: the limit on the scheme's page no longer holds");
}

/// One flow comes or goes each millisecond, between 4 and 16 flows of weights 1 to 4, beside the exact solver.
#[test]
fn a_window_follows_flows_that_come_and_go_each_millisecond() {
    let network = chain(&[100e9, 100e9], 1000);
    let mut sim = build("soze", &network, &json!({}));
    let paths: [&[u32]; 3] = [&[0], &[0, 1], &[1]];
    let mut random = Stream::new(7, "soze comes and goes");
    let mut live: Vec<(FlowId, usize, f64)> = Vec::new();
    let mut errors = Vec::new();
    for ms in 1..=40u64 {
        if live.len() > 15 || (live.len() > 4 && random.unit() < 0.5) {
            let (flow, ..) = live.swap_remove(random.below(live.len()));
            sim.stop_flow(flow);
        } else {
            for _ in 0..if ms == 1 { 4 } else { 1 } {
                let (path, weight) = (random.below(3), 1.0 + 3.0 * random.unit());
                let start = FlowPlan { weight, ..plan(over_chain(paths[path]), sim.now_ns(), None) };
                live.push((sim.add(start), path, weight));
            }
        }
        // The last half of the millisecond counts.
        sim.run_until(ms * MS - MS / 2);
        let before: Vec<u64> = live.iter().map(|&(f, ..)| sim.flow(f).received_wire_bytes).collect();
        sim.run_until(ms * MS);
        let mut flows = Flows::new();
        for (number, &(_, path, weight)) in live.iter().enumerate() {
            let mut flow = Flow::over(number.to_string(), over_chain(paths[path]).forward);
            flow.weight = weight;
            flows.push(flow, &network).unwrap();
        }
        let case = Case { network: network.clone(), flows, policy: Policy::MaxMin };
        let exact = solve(&case, &SolveOptions::default()).unwrap().rates_bps;
        for ((&(flow, ..), before), exact_bps) in live.iter().zip(before).zip(exact) {
            let got_bps = (sim.flow(flow).received_wire_bytes - before) as f64 * 8e9 / (MS / 2) as f64;
            errors.push((got_bps / exact_bps - 1.0).abs());
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |q: f64| errors[(q * (errors.len() - 1) as f64) as usize];
    println!("{} errors: median {:.3}, p95 {:.3}, most {:.3}", errors.len(), at(0.5), at(0.95), at(1.0));
    assert!(at(0.5) < 0.04 && at(0.95) < 0.15, "median {}, p95 {}", at(0.5), at(0.95));
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
        ("soze", json!({"beta_rate": "0.1Gbps"}), "params.beta_rate", "give alpha_rate"),
        (
            "soze",
            json!({"beta_rate": 6e9, "alpha_rate": 1e10}),
            "params.beta_rate",
            "at most half of alpha_rate, 5 Gb/s,",
        ),
        ("soze", json!({"beta_rate": 1e3, "alpha_rate": 1e14, "p": "12us"}), "params.p", "lemma 3.2"),
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
