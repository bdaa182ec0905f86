//! Parking lots of unequal links: the least rate of a flow is sized to its path, and so is the least timeout.

use crate::common::*;
use serde_json::json;
use std::sync::Arc;
use subak_core::driver::{Driver, FlowPlan, PacketSizes};
use subak_core::{Network, Utility};

const MS: u64 = 1_000_000;

/// A flow over all links, and two on each.
fn lot(scheme: &str, params: serde_json::Value, rates_bps: &[f64]) -> Box<dyn Driver> {
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

/// The share of the data packets that a run of 50 ms dropped.
fn dropped(sim: &mut dyn Driver, links: usize) -> f64 {
    sim.run_until(50 * MS);
    let links: Vec<_> = (0..links as u32).map(|k| sim.link(2 * k)).collect();
    let drops: u64 = links.iter().map(|l| l.dropped_packets).sum();
    let sent: u64 = links.iter().map(|l| l.data_bytes / 1500).sum();
    println!("{drops} of {sent}");
    drops as f64 / (drops + sent) as f64
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
fn the_floor_is_a_parameter() {
    // A third of the slowest link each, and there are three flows: a floor of a half overloads it.
    let rates = [10e9, 1e9, 10e9];
    let share = dropped(&mut *lot("dgd", json!({"floor": 0.5}), &rates), 3);
    assert!(share > 0.01, "{share}");
}

#[test]
fn rcp_waits_for_what_its_buffers_delay() {
    // Ten flows start at half the rate each: the buffer of 360 us fills, and nothing of it is sent again.
    let again = |params: serde_json::Value| {
        let network = star(11, 10e9, 1000);
        let mut sim =
            subak_packet::build("rcp", params.as_object().unwrap(), &network, PacketSizes::default(), &[], 1).unwrap();
        let flows: Vec<_> = (1..11).map(|h| sim.add(plan(over_star(h, 0), 0, Some(1_000_000)))).collect();
        sim.run_until_done(100 * MS);
        let views: Vec<_> = flows.into_iter().map(|f| sim.flow(f)).collect();
        assert!(views.iter().all(|v| v.finished_ns.is_some()));
        let needless: u64 = views.iter().map(|v| v.retransmissions.saturating_sub(v.drops)).sum();
        println!("{params} {needless}");
        needless
    };
    assert!(again(json!({})) <= 10, "a probe a flow at most");
    assert!(again(json!({"rto_min": 50e-6})) > again(json!({})), "a timeout below the delay of the buffers");
}
