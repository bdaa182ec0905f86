//! With default parameters, schemes with a goal converge to it, whatever the RTT.

use crate::common::{data_share, over_star, star};
use crate::leaf_spine::{MS, US, exact, plan, received_bps, start};
use serde_json::{Map, json};
use subak_core::backend::FlowPlan;
use subak_core::scheme::{Goal, Info};
use subak_core::{LinkId, Network, Policy, Utility};
use subak_schemes::registry;

/// Relative tolerance of the scheme's rates. It is larger for some schemes: RCP* advertises a price at links that are
/// not full; Flowtune sends only changes above a threshold; RCP is inexact at links with a BDP of a few packets; xWI
/// over slow transports states 1000 RTTs to converge.
fn tolerance(info: &Info) -> f64 {
    match info.name {
        "rcp-star" => 0.1,
        "rcp" | "flowtune" => 0.05,
        name if name.starts_with("rcp-star/") => 0.05,
        "xwi-soze" | "xwi/levels" => 0.06,
        _ => 0.03,
    }
}

/// Whether the scheme converges to max-min if no policy is set.
fn is_max_min(info: &Info) -> bool {
    matches!(info.goal, Goal::MaxMin | Goal::EqualMaxMin | Goal::Any)
}

/// Largest relative distance of a flow's rate from the exact rate, after `rtts` RTTs.
fn worst_off(info: &Info, network: &Network, plans: Vec<FlowPlan>, rtt_ns: u64, rtts: u64) -> f64 {
    let share = data_share(info.name, &Map::new());
    let mut scaled = network.clone();
    network.links().ids().for_each(|l| scaled.link_mut(l).capacity_bps *= share);
    let want = exact(&scaled, &plans, Policy::MaxMin);
    let mut sim = start(info.name, json!({}), network);
    let running: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
    sim.run_until(rtts * rtt_ns);
    let got = received_bps(&mut *sim, &running, (40 * rtt_ns).max(2 * MS));
    got.iter().zip(&want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
}

fn check(case: impl Fn(&Info) -> (Network, Vec<FlowPlan>), rtt_ns: u64, rtts: u64) {
    let mut wrong = Vec::new();
    for info in registry::all().into_iter().filter(|info| info.goal != Goal::Own) {
        let (network, plans) = case(&info);
        let off = worst_off(&info, &network, plans, rtt_ns, rtts);
        println!("{:<28} {:6.2}%", info.name, 100.0 * off);
        if off > tolerance(&info) {
            wrong.push(format!("{} {:.2}%", info.name, 100.0 * off));
        }
    }
    assert!(wrong.is_empty(), "off the exact rates after {rtts} RTTs: {wrong:?}");
}

/// Four flows over two bottlenecks of a star, with unequal weights if the goal supports weights. The controller is at
/// the last host.
fn two_bottlenecks(info: &Info, rate_bps: f64, rtt_ns: u64) -> (Network, Vec<FlowPlan>) {
    let one = |(src, dst, weight)| {
        let weight = if info.goal == Goal::EqualMaxMin { 1.0 } else { weight };
        plan(vec![over_star(src, dst)], weight, (!is_max_min(info)).then(|| Utility::log(weight)))
    };
    let plans = [(0, 3, 1.0), (1, 3, 2.0), (2, 3, 2.0), (0, 2, 4.0)].map(one);
    (star(5, rate_bps, rtt_ns / 4), plans.into())
}

#[test]
fn rates_are_right_at_4_us() {
    check(|info| two_bottlenecks(info, 10e9, 4 * US), 4 * US, 2000);
}

#[test]
fn rates_are_right_at_200_us() {
    check(|info| two_bottlenecks(info, 10e9, 200 * US), 200 * US, 400);
}

#[test]
fn rates_are_right_at_2_ms() {
    check(|info| two_bottlenecks(info, 10e9, 2 * MS), 2 * MS, 300);
}

/// Two flows at one bottleneck: one with a short RTT, one with `rtt_ns`.
fn unequal(info: &Info, rtt_ns: u64) -> (Network, Vec<FlowPlan>) {
    let mut network = star(4, 10e9, 500);
    for l in [2, 3].map(LinkId) {
        network.link_mut(l).delay_ns = rtt_ns / 2 - 500;
    }
    let one = |src| plan(vec![over_star(src, 2)], 1.0, (!is_max_min(info)).then(|| Utility::log(1.0)));
    (network, [0, 1].map(one).into())
}

/// The packets of the flow with the long RTT fill the queue before prices rise, and packets of the other flow are
/// dropped. The price must rise all the same.
#[test]
fn a_full_queue_is_a_load() {
    let info = registry::find("ned/paced").unwrap();
    let (network, plans) = unequal(info, MS);
    for rtt_ns in [MS, 2 * MS, 5 * MS] {
        let mut network = network.clone();
        for l in [2, 3].map(LinkId) {
            network.link_mut(l).delay_ns = rtt_ns / 2 - 1000;
        }
        let off = worst_off(info, &network, plans.clone(), rtt_ns, 200);
        assert!(off < 0.03, "{rtt_ns} ns: {off}");
    }
}

#[test]
fn flows_of_unequal_rtts_have_equal_rates() {
    for rtt_ns in [20 * US, 200 * US, MS] {
        check(|info| unequal(info, rtt_ns), rtt_ns, 300);
    }
}

/// Bottlenecks are fully used even if the transmission time of a packet there exceeds the base RTT of other paths.
#[test]
fn slow_bottlenecks_are_used() {
    for (nic_bps, slow_bps) in [(10e9, 1e9), (100e9, 1e9), (10e9, 0.5e9)] {
        let mut wrong = Vec::new();
        for info in registry::all().into_iter().filter(|info| info.goal != Goal::Own) {
            if !["levels", "rcp-star", "ned/"].iter().any(|part| info.name.contains(part)) {
                continue;
            }
            let mut network = star(4, nic_bps, 1000);
            for l in [4, 5].map(LinkId) {
                network.link_mut(l).capacity_bps = slow_bps;
            }
            let one = |src| plan(vec![over_star(src, 2)], 1.0, (!is_max_min(&info)).then(|| Utility::log(1.0)));
            let off = worst_off(&info, &network, [0, 1].map(one).into(), 40 * US, 2000);
            println!("{nic_bps} {slow_bps} {} {off}", info.name);
            if off > 0.15 {
                wrong.push(format!("{} {off:.2}", info.name));
            }
        }
        assert!(wrong.is_empty(), "{nic_bps} {slow_bps}: {wrong:?}");
    }
}
