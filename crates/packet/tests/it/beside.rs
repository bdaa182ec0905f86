//! Several schemes on one network.

use crate::common::{over_star, plan, star};
use crate::foreign::Mine;
use crate::foreign::boxed_dctcp::BoxedDctcp;
use crate::leaf_spine::MS;
use crate::parts::{scene, seen_of};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, PacketSizes};
use subak_core::{FlowId, InputError, LinkId, Network};
use subak_schemes::foreign::{Foreign, Made};
use subak_schemes::{Chosen, Member};

type Given = (&'static str, Map<String, Value>);

fn given(name: &'static str, params: Value) -> Given {
    (name, params.as_object().cloned().unwrap_or_default())
}

fn member((name, params): &Given) -> Member<'_> {
    Member { label: name, chosen: Chosen::Named(name), params }
}

fn beside(schemes: &[Given], network: &Network) -> Result<Box<dyn Backend>, InputError> {
    let members: Vec<_> = schemes.iter().map(member).collect();
    subak_packet::build_beside(1, &members, network, PacketSizes::default(), &[], 1)
}

/// Schemes that can share links, with parameters by which they can.
fn sharing() -> Vec<Given> {
    let sharing = |info: &&subak_core::scheme::Info| info.shares_links == subak_core::scheme::SharesLinks::Yes;
    let names = subak_schemes::registry::schemes().iter().filter(sharing).map(|info| info.name);
    names.map(|name| given(name, if name == "cubic" { json!({"queue": "fifo"}) } else { json!({}) })).collect()
}

fn as_one(plan: FlowPlan, scheme: usize) -> FlowPlan {
    FlowPlan { scheme: scheme as u8, ..plan }
}

#[test]
fn a_scheme_beside_itself_runs_as_alone_under_every_fault_and_on_two_threads() {
    let sizes = PacketSizes::default();
    let schemes = sharing();
    assert!(schemes.len() >= 4, "{schemes:?}");
    for seed in 0..6 {
        for one in &schemes {
            let mut scene = scene(one.0, seed, 3, 2, seed % 2 == 1);
            let network = &scene.net.network.clone();
            let alone = subak_packet::build(one.0, &one.1, network, sizes, &scene.faults, seed).unwrap();
            let alone = seen_of(&scene, alone);
            scene.plans = scene.plans.into_iter().enumerate().map(|(k, plan)| as_one(plan, k % 2)).collect();
            for threads in [1, 2] {
                let members = [member(one), member(one)];
                let both = subak_packet::build_beside(threads, &members, network, sizes, &scene.faults, seed).unwrap();
                assert!(seen_of(&scene, both) == alone, "{} seed {seed}, {threads} threads", one.0);
            }
        }
    }
}

#[test]
fn two_schemes_give_the_same_results_on_two_threads() {
    let sizes = PacketSizes::default();
    let schemes = [given("dctcp", json!({})), given("cubic", json!({"queue": "fifo"}))];
    for seed in 0..4 {
        let mut scene = scene("dctcp", seed, 3, 2, true);
        scene.plans = scene.plans.into_iter().enumerate().map(|(k, plan)| as_one(plan, k % 2)).collect();
        let on = |threads| {
            let members: Vec<_> = schemes.iter().map(member).collect();
            let network = &scene.net.network;
            seen_of(&scene, subak_packet::build_beside(threads, &members, network, sizes, &scene.faults, seed).unwrap())
        };
        assert!(on(1) == on(2), "seed {seed}");
    }
}

#[test]
fn a_scheme_of_the_users_beside_cubic_is_ours_beside_cubic() {
    let sizes = PacketSizes::default();
    let (dctcp, cubic) = (given("dctcp", json!({})), given("cubic", json!({"queue": "fifo"})));
    let mine = Mine(|faults| Made::Plain(Foreign(Arc::new(BoxedDctcp::new(faults)))));
    let own = Member { label: "mine", chosen: Chosen::Foreign(&mine), params: &Map::new() };
    for seed in 0..4 {
        let mut scene = scene("dctcp", seed, 3, 2, seed % 2 == 1);
        scene.plans = scene.plans.into_iter().enumerate().map(|(k, plan)| as_one(plan, k % 2)).collect();
        let with = |first| {
            let network = &scene.net.network;
            let members = [first, member(&cubic)];
            seen_of(&scene, subak_packet::build_beside(1, &members, network, sizes, &scene.faults, seed).unwrap())
        };
        assert!(with(own) == with(member(&dctcp)), "seed {seed}");
    }
    let other = given("dctcp", json!({"k": 20}));
    let members = [own, member(&other)];
    let refused = subak_packet::build_beside(1, &members, &star(3, 10e9, 1000), sizes, &[], 1).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("schemes \"mine\" and \"dctcp\" mark packets"), "{refused}");
}

/// Rates in Gb/s of one flow of each scheme into one host, and the largest queue there, bytes. The rates are those of
/// 40 ms, after 20 ms.
fn shares(schemes: &[Given]) -> (Vec<f64>, u64) {
    let network = star(schemes.len() + 1, 10e9, 2000);
    let mut sim = beside(schemes, &network).unwrap();
    let flows: Vec<FlowId> =
        (0..schemes.len()).map(|k| sim.add(as_one(plan(over_star(k + 1, 0), 0, None), k))).collect();
    sim.run_until(20 * MS);
    sim.restart_peaks();
    let before: Vec<u64> = flows.iter().map(|&flow| sim.flow(flow).received_wire_bytes).collect();
    sim.run_until(60 * MS);
    let bytes = flows.iter().zip(before).map(|(&flow, before)| sim.flow(flow).received_wire_bytes - before);
    (bytes.map(|bytes| bytes as f64 * 8.0 / 40e6).collect(), sim.link(LinkId(1)).peak_queued_bytes)
}

#[test]
fn cubic_fills_the_buffer_and_takes_the_link_from_dctcp() {
    let dctcp = || given("dctcp", json!({}));
    let cubic = || given("cubic", json!({"queue": "fifo"}));
    let (equal, marked) = shares(&[dctcp(), dctcp()]);
    assert!(equal.iter().all(|rate| (rate - 5.0).abs() < 0.3), "{equal:?}");
    assert!(marked < 130_000, "the threshold is 97,500 bytes: {marked}");
    let (unequal, full) = shares(&[dctcp(), cubic()]);
    // CUBIC sets no ECN and slows down for drops alone, so that the queue is above the threshold nearly always, where
    // all packets of DCTCP are marked: it halves its window in each RTT, and keeps two packets in 360 us, 0.07 Gb/s.
    assert!(full > 440_000, "the buffer has 450,000 bytes: {full}");
    assert!(unequal[1] > 9.0 && unequal[0] < 0.5, "{unequal:?}");
    let used: f64 = unequal.iter().sum();
    assert!(used > 9.4, "{unequal:?}");
}

#[test]
fn schemes_of_nics_share_lossless_switches() {
    let (hpcc, powertcp) = (given("hpcc", json!({})), given("powertcp", json!({})));
    let (equal, _) = shares(&[hpcc.clone(), hpcc.clone()]);
    assert!(equal.iter().all(|&rate| rate > 4.0) && equal.iter().sum::<f64>() > 9.4, "{equal:?}");
    let bare = |name| given(name, json!({"header": 0, "ack_header": 0}));
    // HPCC keeps queues short, and DCQCN keeps them at its thresholds: HPCC then has next to nothing.
    let (unequal, _) = shares(&[bare("hpcc"), given("dcqcn", json!({}))]);
    assert!(unequal[1] > 7.0 && unequal[0] < 2.0, "{unequal:?}");
    let (both, _) = shares(&[hpcc, powertcp]);
    assert!(both.iter().sum::<f64>() > 9.0, "{both:?}");
    let (three, _) = shares(&[bare("hpcc"), given("dcqcn", json!({})), given("timely", json!({}))]);
    assert!(three.iter().sum::<f64>() > 9.0, "{three:?}");
}

#[test]
fn what_cannot_share_a_link_is_refused_with_the_reason() {
    let network = star(3, 10e9, 1000);
    let refused = |schemes: &[Given]| beside(schemes, &network).map(|_| ()).unwrap_err().to_string();
    let dctcp = || given("dctcp", json!({}));
    for (other, why) in [
        (given("pfabric", json!({})), "its queues serve packets by the bytes that their flows have left"),
        (given("hpcc", json!({})), "switches are lossless under one of them alone (PFC)"),
        (given("hpcc", json!({"pfc": "off"})), "their headers add (0, 0) and (42, 28) bytes to data and ACKs"),
        (given("timely", json!({"pfc": "off"})), "set network.nic = \"round-robin\""),
        (given("dctcp", json!({"pfc": "static"})), "set params.pfc and what belongs to it to the same"),
        (given("s-perc", json!({})), "its links divide their capacity among its own flows"),
        (given("xwi/swift", json!({})), "its transport divides links among its own flows"),
        (given("numfabric", json!({})), "scheme \"numfabric\" cannot share links with another"),
        (given("flowtune", json!({})), "its controller divides links among its own flows"),
        (given("cubic", json!({})), "its queue at link"),
        (given("cubic", json!({})), "set params.queue = \"fifo\""),
        (given("dctcp", json!({"k": 20})), "params.k comes to 97500 bytes at link"),
    ] {
        let text = refused(&[dctcp(), other]);
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn every_scheme_is_accepted_or_refused_by_name() {
    let network = star(3, 10e9, 1000);
    let sharing: Vec<_> = sharing().into_iter().map(|given| given.0).collect();
    for name in crate::common::schemes() {
        let made = beside(&[given("reno", json!({})), given(name, json!({}))], &network);
        match made {
            Ok(_) => assert!(sharing.contains(&name), "{name}"),
            Err(fault) => assert!(fault.to_string().contains(&format!("\"{name}\"")), "{fault}"),
        }
    }
}
