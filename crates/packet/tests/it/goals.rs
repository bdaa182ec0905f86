//! Every scheme converges to its goal within the tolerance and the time that its metadata states.

use crate::common::data_share;
use crate::leaf_spine::*;
use serde_json::{Map, json};
use subak_core::backend::{FlowPlan, Route};
use subak_core::rng::Stream;
use subak_core::scheme::{Goal, Info, Settles};
use subak_core::{LinkId, Network, Nic, NodeKind, Policy, Utility};
use subak_schemes::registry;

/// Slightly above the RTT of the longest path, with full packets and ACKs.
const RTT_NS: u64 = 20 * US;
/// Time over which rates are averaged, ns.
const SPAN_NS: u64 = 100 * RTT_NS;

/// 24 flows from one half of a leaf-spine network to the other, with weights 1 to 3 or utility functions if the
/// goal supports them.
fn flows(net: &LeafSpine, seed: u64, goal: Goal) -> Vec<FlowPlan> {
    let mut rng = Stream::new(seed, "flows");
    let one = |k: u64| {
        let weight = if goal == Goal::EqualMaxMin { 1.0 } else { 1.0 + (k % 3) as f64 };
        let max_min = matches!(goal, Goal::Any | Goal::MaxMin | Goal::EqualMaxMin);
        plan(vec![net.one_way(&mut rng)], weight, (!max_min).then(|| Utility::log(weight)))
    };
    (0..24).map(one).collect()
}

fn scaled(network: &Network, share: f64) -> Network {
    let mut scaled = network.clone();
    network.links().ids().for_each(|l| scaled.link_mut(l).capacity_bps *= share);
    scaled
}

/// Largest relative distance of random flows' rates from the goal of the scheme `info`, `rtts` RTTs after the
/// flows start.
fn worst_off(info: &Info, nic: Nic, rtts: f64) -> f64 {
    let mut net = LeafSpine::new(4, 2, 4, 20e9);
    net.network.set_nic(nic);
    let share = data_share(info.name, &Map::new());
    let off = |seed| {
        let plans = flows(&net, seed, info.goal);
        let want = exact(&scaled(&net.network, share), &plans, Policy::MaxMin);
        let mut sim = start(info.name, json!({}), &net.network);
        let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
        sim.run_until((rtts * RTT_NS as f64) as u64);
        let got = received_bps(&mut *sim, &flows, SPAN_NS);
        got.iter().zip(&want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
    };
    (0..3).map(off).fold(0.0, f64::max)
}

#[test]
fn rates_come_as_near_the_goal_as_the_scheme_says_and_as_soon() {
    let mut missed = Vec::new();
    for info in registry::all().into_iter().filter(|info| info.goal != Goal::Own) {
        let Settles { within, rtts } = info.settles;
        for (nic_name, nic) in Nic::ALL {
            // Under round robin, the link of an overloaded NIC measures no more than its capacity, so that
            // convergence may take longer.
            let later: &[f64] = if nic == Nic::Queue { &[1.0] } else { &[1.0, 10.0] };
            let mut line = String::new();
            let settled = later.iter().any(|by| {
                let off = worst_off(&info, nic, by * rtts);
                line = format!("{:<14} {nic_name} {off:.4} of {within:.4} after {} RTTs", info.name, by * rtts);
                println!("{line}");
                off <= within
            });
            if !settled {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "further from their goals than they say:\n{}", missed.join("\n"));
}

#[test]
fn a_scheme_at_half_its_goal_would_be_noticed() {
    for info in registry::all().iter().filter(|info| info.goal != Goal::Own) {
        assert!(info.settles.within < 0.5, "{} promises nothing", info.name);
    }
}

/// Two hosts with NICs of 10 and 40 Gb/s, which both send to a third over a link of 10 Gb/s.
fn unequal() -> (Network, Vec<FlowPlan>) {
    let mut network = Network::new();
    let middle = network.node("middle", NodeKind::Switch);
    let mut link = |name: &str, gbps: f64| {
        let host = network.node(name, NodeKind::Host);
        network.connect(host, middle, gbps * 1e9, US, None).unwrap()
    };
    let (slow, fast, into) = (link("slow", 10.0), link("fast", 40.0), link("into", 10.0));
    let route = |up: (LinkId, LinkId)| Route { forward: vec![up.0, into.1], back: vec![into.0, up.1] };
    let plans = [slow, fast].map(|up| FlowPlan { utility: None, ..FlowPlan::new(vec![route(up)]) });
    (network, plans.into())
}

/// Flows of equal weight get equal rates at a bottleneck, whatever the rates of their NICs. Schemes without a goal
/// that the solver can compute are excluded. On one link, max-min and alpha-fair rates of equal weights are the
/// same.
#[test]
fn flows_of_unequal_nics_share_a_link_equally() {
    let (mut network, plans) = unequal();
    let mut missed = Vec::new();
    let with_goal = registry::all().into_iter().filter(|info| info.goal != Goal::Own);
    for (info, (nic_name, nic)) in with_goal.flat_map(|info| Nic::ALL.map(|nic| (info, nic))) {
        network.set_nic(nic);
        let max_min = matches!(info.goal, Goal::Any | Goal::MaxMin | Goal::EqualMaxMin);
        let mut sim = start(info.name, json!({}), &network);
        let flows: Vec<_> = plans.iter().map(|p| sim.add(p.clone())).collect();
        // Prices converge more slowly for two flows than for the many flows for which convergence times are
        // stated.
        let rtts = info.settles.rtts * if max_min { 1.0 } else { 10.0 };
        sim.run_until((rtts * RTT_NS as f64) as u64);
        let got = received_bps(&mut *sim, &flows, SPAN_NS);
        let line = format!("{:<14} {nic_name} {:.3} and {:.3} Gb/s", info.name, got[0] / 1e9, got[1] / 1e9);
        println!("{line}");
        if (got[0] / got[1] - 1.0).abs() > 0.05 || max_min && got[0] + got[1] < 9e9 {
            missed.push(line);
        }
    }
    assert!(missed.is_empty(), "flows of equal weights do not share equally:\n{}", missed.join("\n"));
}
