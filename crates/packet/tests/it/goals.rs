//! Every scheme settles within the distance of its goal that it states, after the time that it states.

use crate::leaf_spine::*;
use serde_json::{Map, json};
use subak_core::driver::FlowPlan;
use subak_core::rng::Stream;
use subak_core::scheme::{Goal, Scheme};
use subak_core::{LinkId, Network, Policy, Utility};
use subak_schemes::{Visitor, registry};

/// The round trip of the longest path, full packets and acknowledgements included, is somewhat below this.
const RTT_NS: u64 = 20 * US;
/// Rates are averages over so long.
const SPAN_NS: u64 = 100 * RTT_NS;

struct Share;

impl Visitor for Share {
    type Out = f64;
    fn visit<S: Scheme>(self, scheme: S) -> f64 {
        scheme.data_share()
    }
}

/// 24 flows from one half of a leaf-spine network to the other, of weights 1 to 3 where the goal knows weights, with
/// utilities where it knows them.
fn flows(net: &LeafSpine, seed: u64, goal: Goal) -> Vec<FlowPlan> {
    let mut rng = Stream::new(seed, "flows");
    let one = |k: u64| {
        let weight = if goal == Goal::EqualMaxMin { 1.0 } else { 1.0 + (k % 3) as f64 };
        let max_min = matches!(goal, Goal::MaxMin | Goal::EqualMaxMin);
        plan(vec![net.one_way(&mut rng)], weight, (!max_min).then(|| Utility::log(weight)))
    };
    (0..24).map(one).collect()
}

fn scaled(network: &Network, share: f64) -> Network {
    let mut scaled = network.clone();
    (0..network.links().len() as LinkId).for_each(|l| scaled.link_mut(l).capacity_bps *= share);
    scaled
}

#[test]
fn rates_come_as_near_the_goal_as_the_scheme_says_and_as_soon() {
    let net = LeafSpine::new(4, 2, 4, 20e9);
    let mut missed = Vec::new();
    for info in registry::all() {
        if info.goal == Goal::Own {
            continue;
        }
        let share = subak_schemes::with_scheme(info.name, &Map::new(), Share).unwrap();
        let mut worst: f64 = 0.0;
        for seed in 0..3 {
            let plans = flows(&net, seed, info.goal);
            let want = exact(&scaled(&net.network, share), &plans, Policy::MaxMin);
            let mut sim = start(info.name, json!({}), &net.network);
            let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
            sim.run_until((info.settles.rtts * RTT_NS as f64) as u64);
            let got = received_bps(&mut *sim, &flows, SPAN_NS);
            let off = got.iter().zip(&want).map(|(g, w)| (g / w - 1.0).abs());
            worst = off.fold(worst, f64::max);
        }
        let line =
            format!("{:<14} {:.4} of {:.4} after {} RTTs", info.name, worst, info.settles.within, info.settles.rtts);
        println!("{line}");
        if worst > info.settles.within {
            missed.push(line);
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
