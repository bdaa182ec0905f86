//! A handshake brings the price of a path before the first data, and fair queues protect flows from those without one.

use crate::common::*;
use crate::leaf_spine::{self, LeafSpine, MS, US, received_bps, share_within};
use serde_json::json;
use subak_core::backend::{Backend, FlowPlan, Impairment, Injected, Kinds, PacketSizes};
use subak_core::rng::Stream;
use subak_core::{FlowId, Network, Policy, Utility};

const SYNS: [&str; 6] = ["dgd", "rcp-star", "ned/paced", "numfabric", "xwi-s-perc", "dgd/swift"];

fn built(scheme: &str, params: &serde_json::Value, network: &Network, faults: &[Injected]) -> Box<dyn Backend> {
    subak_packet::build(scheme, params.as_object().unwrap(), network, PacketSizes::default(), faults, 1).unwrap()
}

fn log_plan(src: usize, dst: usize, start_ns: u64) -> FlowPlan {
    FlowPlan { utility: Some(std::sync::Arc::new(Utility::log(1.0))), ..plan(over_star(src, dst), start_ns, None) }
}

#[test]
fn a_packet_takes_one_rtt_longer() {
    let network = star(2, 10e9, 2000);
    for scheme in SYNS {
        let fct_ns = |handshake: bool| {
            let mut sim = built(scheme, &json!({"handshake": handshake}), &network, &[]);
            let flow = sim.add(plan(over_star(0, 1), 0, Some(1000)));
            sim.run_until_done(10 * MS);
            sim.flow(flow).finished_ns.unwrap()
        };
        let more_ns = fct_ns(true) - fct_ns(false);
        // Two links there and back of 2 us each, and four times 51.2 ns for 64 bytes.
        assert!((8_000..8_400).contains(&more_ns), "{scheme}: {more_ns}");
    }
}

#[test]
fn rates_are_as_without_one() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    for (scheme, share, tolerance) in [("numfabric", 1.0, 0.1), ("xwi-s-perc", 0.9, 0.1), ("dgd", 1.0, 0.05)] {
        let mut rng = Stream::new(7, "flows");
        let mut one = || leaf_spine::plan(vec![net.one_way(&mut rng)], 1.0, Some(Utility::log(1.0)));
        let plans: Vec<FlowPlan> = (0..60).map(|_| one()).collect();
        let want = leaf_spine::exact(&net.network, &plans, Policy::AlphaFair { alpha: 1.0 });
        let mut sim = leaf_spine::start(scheme, json!({"handshake": true}), &net.network);
        let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
        sim.run_until(4 * MS);
        let got = received_bps(&mut *sim, &flows, 4 * MS);
        let want: Vec<f64> = want.iter().map(|w| w * share).collect();
        assert!(share_within(&got, &want, tolerance) >= 0.95, "{scheme}: {got:?} beside {want:?}");
    }
}

/// Bytes that a newcomer to a full link of three other flows receives in its first 20 us of data.
fn at_first(params: &serde_json::Value) -> u64 {
    let network = star(5, 10e9, 2000);
    let mut sim = built("dgd", params, &network, &[]);
    for k in 0..3 {
        sim.add(log_plan(k, 4, 0));
    }
    let start_ns = 20 * MS;
    let newcomer = sim.add(log_plan(3, 4, start_ns));
    sim.run_until(start_ns + 8 * US);
    while sim.flow(newcomer).received_wire_bytes == 0 {
        let next_ns = sim.now_ns() + US;
        sim.run_until(next_ns);
    }
    let until_ns = sim.now_ns() + 20 * US;
    sim.run_until(until_ns);
    sim.flow(newcomer).received_wire_bytes
}

#[test]
fn a_newcomer_begins_at_its_price() {
    // 20 us of a link of 10 Gb/s are 25,000 bytes, a third of which are 8333.
    let (told, untold) = (at_first(&json!({"handshake": true})), at_first(&json!({})));
    assert!((5_000..12_000).contains(&told), "{told}");
    assert!(
        untold > 12_000 && 4 * untold > 5 * told,
        "at line rate it takes half of the link: {untold}, {told} with one"
    );
    // A fair queue serves it a quarter, whatever it sends.
    let fair = at_first(&json!({"queue": "fair"}));
    assert!((5_000..9_500).contains(&fair), "{fair}");
}

#[test]
fn lost_syns_are_repeated() {
    let network = star(2, 10e9, 2000);
    let kinds = Kinds { data: false, ack: false, ctl: true };
    let lost = Injected::Packets {
        impairment: Impairment::Lost,
        kinds,
        links: None,
        probability: 1.0,
        from_ns: 0,
        until_ns: 1500 * US,
    };
    for scheme in ["dgd", "numfabric"] {
        let mut sim = built(scheme, &json!({"handshake": true}), &network, std::slice::from_ref(&lost));
        let flow = sim.add(plan(over_star(0, 1), 0, Some(1000)));
        let stopped = sim.add(FlowPlan { stop_ns: Some(US), ..plan(over_star(1, 0), 0, None) });
        sim.run_until_done(10 * MS);
        let fct_ns = sim.flow(flow).finished_ns.unwrap();
        assert!((2 * MS..2 * MS + 50 * US).contains(&fct_ns), "{scheme}: {fct_ns}, after the SYN of 2 ms");
        assert_eq!(sim.flow(stopped).received_bytes, 0, "{scheme}");
        assert_eq!(sim.flow(FlowId(0)).received_bytes, 1000);
    }
}
