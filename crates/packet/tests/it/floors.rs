//! Parking-lot topologies with unequal links: the smallest rate and the minimum RTO of a flow depend on its path.

use crate::common::*;
use serde_json::json;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, Impairment, Injected, Kinds, PacketSizes};
use subak_core::{FlowId, LinkId, Network, Utility};

const MS: u64 = 1_000_000;

/// A parking lot: one flow over all links, and two flows over each link.
fn lot(scheme: &str, params: serde_json::Value, rates_bps: &[f64]) -> Box<dyn Backend> {
    let params = params.as_object().unwrap();
    let network: Network = chain(rates_bps, 2000);
    let mut sim = subak_packet::build(scheme, params, &network, PacketSizes::default(), &[], 1).unwrap();
    let all: Vec<u32> = (0..rates_bps.len() as u32).collect();
    let mut add = |path: &[u32]| {
        let utility = Some(Arc::new(Utility::log(1.0)));
        sim.add(FlowPlan { utility, ..plan(over_chain(path), 0, None) });
    };
    add(&all);
    for link in &all {
        add(&[*link]);
        add(&[*link]);
    }
    sim
}

/// Fraction of data packets dropped at a link within 50 ms; the largest one over all links.
fn dropped(sim: &mut dyn Backend, links: usize) -> f64 {
    sim.run_until(50 * MS);
    let share = |k: u32| {
        let link = sim.link(LinkId(2 * k));
        let (drops, sent) = (link.dropped_packets as f64, link.data_bytes as f64 / 1500.0);
        assert!(sent > 1000.0, "link {k} carries {sent} packets");
        drops / (drops + sent)
    };
    (0..links as u32).map(share).fold(0.0, f64::max)
}

#[test]
fn dgd_and_rcp_star_drop_next_to_nothing_on_unequal_links() {
    let lots: [&[f64]; 4] =
        [&[10e9, 1e9, 5e9, 2e9], &[40e9, 1e9, 10e9, 1e9], &[100e9, 1e9, 25e9], &[1e9, 10e9, 40e9, 100e9]];
    let mut missed = Vec::new();
    for scheme in ["dgd", "rcp-star"] {
        for rates in lots {
            let share = dropped(&mut *lot(scheme, json!({}), rates), rates.len());
            println!("{scheme} over {rates:?}: {share:.4}");
            if share >= 0.01 {
                missed.push(format!("{scheme} over {rates:?}: {share:.4}"));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn the_floor_is_a_share_of_the_slowest_link() {
    // The long flow has the prices of three links, and the slow link has two more flows: without a smallest rate the
    // long flow gets less than a third of the slow link.
    let rates = [10e9, 1e9, 10e9];
    for (scheme, floor) in [("dgd", 0.6), ("rcp-star", 0.6)] {
        let pace = |params: serde_json::Value| {
            let mut sim = lot(scheme, params, &rates);
            sim.run_until(50 * MS);
            sim.flow(FlowId(0)).assigned_bps
        };
        let (free, held) = (pace(json!({})), pace(json!({"floor": floor})));
        assert!(free < 0.4e9 && held >= 0.599e9, "{scheme}: {free} and {held}");
    }
}

#[test]
fn rcp_waits_for_what_its_buffers_delay() {
    // A single packet, which is lost, is retransmitted after the minimum RTO.
    let repaired_ns = |params: serde_json::Value| {
        let faults = [mishap_until(20_000, Kinds { data: true, ack: false, ctl: false })];
        let network = star(2, 10e9, 1000);
        let params = params.as_object().unwrap();
        let mut sim = subak_packet::build("rcp", params, &network, PacketSizes::default(), &faults, 1).unwrap();
        let flow = sim.add(plan(over_star(1, 0), 0, Some(1446)));
        sim.run_until_done(100 * MS);
        sim.flow(flow).finished_ns.unwrap()
    };
    // The RTO covers two full buffers of 360 us on the path, two on the reverse path, and the propagation delay.
    let full = repaired_ns(json!({}));
    assert!((1_440_000..1_460_000).contains(&full), "{full}");
    let short = repaired_ns(json!({"rto_min": 50e-6}));
    assert!((50_000..70_000).contains(&short), "{short}");
}

/// Loses packets of `kinds` until `until_ns`.
fn mishap_until(until_ns: u64, kinds: Kinds) -> Injected {
    Injected::Packets { impairment: Impairment::Lost, kinds, links: None, probability: 1.0, from_ns: 0, until_ns }
}
