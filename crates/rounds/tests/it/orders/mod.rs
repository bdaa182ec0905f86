//! Every order of control packets on small networks: after a lost packet s-PERC* is exact again, whatever the order.

mod machines;
mod model;
mod networks;
mod rules;
mod search;

use model::{Explored, Model, OrderLimits, Step};
use rules::{Defective, KeepsEnded, NeverEnds, PropagatesAll};
use search::{Found, search};
use std::collections::BTreeMap;
use subak_core::rng::Stream;
use subak_core::scheme::{Bound, Params};
use subak_rounds::Setup;
use subak_schemes::perc::Rule;
use subak_schemes::s_perc::Stateless;
use subak_schemes::s_perc_star::Robust;

fn rule<R: Rule>() -> R {
    R::new(&Params::resolve(&R::INFO, &serde_json::Map::new()).unwrap()).unwrap()
}

fn explore<R: Explored>(setup: &Setup, limits: OrderLimits) -> Found {
    search(&Model::new(rule::<R>(), setup, limits), 5_000_000)
}

/// Rounds that theory allows once flows are stable: 6 W2.
fn allowed(setup: &Setup) -> f64 {
    setup.bounded(Bound::SixW2).1.unwrap()
}

/// Whether every order is exact again less than 6 W2 + 3 rounds after the last loss: a lost packet's flow is stable again
/// after RTO_ctrl and a round.
fn settles(setup: &Setup, limits: OrderLimits) -> Found {
    let found = explore::<Robust>(setup, limits);
    let rounds = found.rounds.map_or(f64::INFINITY, f64::from);
    assert!(found.complete && rounds + 1.0 <= allowed(setup) + 3.0, "{limits:?} {setup:?}: {found:?}");
    assert!(limits.visits > 1 || found.dead_ends == 0, "{limits:?} {setup:?}: {found:?}");
    found
}

#[test]
fn every_order_of_s_perc_star_is_exact_again_after_a_loss() {
    for setup in networks::all_of_two_links() {
        settles(&setup, OrderLimits { settled: setup.paths.len() > 2, ..OrderLimits::LOSS });
        if setup.paths.len() <= 2 {
            settles(&setup, OrderLimits { visits: 2, ..OrderLimits::LOSS });
            settles(&setup, OrderLimits { leaves: Some(0), ..OrderLimits::LOSS });
        }
    }
    settles(&networks::figure_2_1(), OrderLimits::LOSS);
    settles(&networks::chain(), OrderLimits { settled: true, ..OrderLimits::LOSS });
    settles(&networks::crossing(), OrderLimits { visits: 2, reverse: true, ..OrderLimits::LOSS });
    for seed in 0..4 {
        settles(&networks::random(3, 3, 2, seed), OrderLimits::LOSS);
        settles(&networks::random(4, 4, 2, seed), OrderLimits { common: true, settled: true, ..OrderLimits::LOSS });
    }
}

#[test]
fn s_perc_is_exact_in_every_order_without_a_loss_and_not_after_one() {
    let setups = networks::all_of_two_links().into_iter().filter(|setup| setup.paths.len() <= 2);
    for setup in setups.chain([networks::figure_2_1()]) {
        let none = explore::<Stateless>(&setup, OrderLimits { losses: 0, ..OrderLimits::LOSS });
        assert!(none.rounds.is_some_and(|rounds| f64::from(rounds) <= allowed(&setup)), "{setup:?}: {none:?}");
        assert_eq!(explore::<Stateless>(&setup, OrderLimits::LOSS).rounds, None, "{setup:?}");
    }
}

#[test]
fn planted_defects_are_found() {
    let loss = OrderLimits::LOSS;
    let none = OrderLimits { losses: 0, ..loss };
    let end = OrderLimits { leaves: Some(0), ..none };
    let setup = networks::crossing();
    assert_eq!(explore::<Defective<Robust, NeverEnds>>(&setup, loss).rounds, None);
    assert!(explore::<Stateless>(&setup, end).rounds.is_some());
    assert_eq!(explore::<Defective<Stateless, KeepsEnded>>(&setup, end).rounds, None);
    // The sums over a round's packets are without the flow.
    assert!(explore::<Defective<Robust, KeepsEnded>>(&setup, end).rounds.is_some());
}

#[test]
#[ignore = "takes a minute and a gigabyte"]
fn a_link_that_propagates_every_rate_is_found() {
    let (setup, settled) = (networks::random(3, 3, 3, 26), OrderLimits { settled: true, ..OrderLimits::LOSS });
    assert_eq!(explore::<Defective<Robust, PropagatesAll>>(&setup, settled).rounds, None);
    settles(&setup, settled);
}

/// A random order of `count` steps, with the allocations that it writes.
fn walk<R: Explored>(model: &Model<R>, count: usize, seed: u64) -> (Vec<Step>, Vec<Option<f64>>) {
    let (mut random, mut state) = (Stream::new(seed, "order"), model.first());
    let (mut steps, mut allocated) = (Vec::new(), Vec::new());
    while steps.len() < count {
        let mut possible = Vec::new();
        model.steps(&state, |step| possible.push(step));
        if possible.is_empty() {
            break;
        }
        // A loss is possible at every step: most are left out, so that it is not always the first.
        let rare = |step: &Step| matches!(step, Step::Lose(_) | Step::Leave(_));
        if random.unit() < 0.9 {
            possible.retain(|step| !rare(step));
        }
        let Some(&step) = (!possible.is_empty()).then(|| &possible[random.below(possible.len())]) else { continue };
        let taken = model.take(&state, step);
        if matches!(step, Step::Pass(_)) {
            allocated.push(taken.allocated_bps);
        }
        steps.push(step);
        state = taken.state;
    }
    (steps, allocated)
}

fn agree<R: Explored>(setup: &Setup, limits: OrderLimits, seed: u64) {
    let (steps, allocated) = walk(&Model::new(rule::<R>(), setup, limits), 300, seed);
    assert_eq!(machines::allocations::<R>(setup, limits, &steps), allocated, "{limits:?} {setup:?}: {steps:?}");
}

#[test]
fn the_machines_write_what_the_search_sees() {
    for seed in 0..50 {
        let setup = networks::random(4, 4, 3, seed);
        for reverse in [false, true] {
            let loss = OrderLimits { reverse, visits: if reverse { 2 } else { 1 }, ..OrderLimits::LOSS };
            let end = OrderLimits { losses: 0, leaves: Some(0), ..loss };
            agree::<Robust>(&setup, loss, seed);
            agree::<Robust>(&setup, end, seed);
            agree::<Stateless>(&setup, loss, seed);
            agree::<Stateless>(&setup, end, seed);
        }
    }
}

/// Networks under the same limits.
struct Family {
    name: &'static str,
    setups: Vec<Setup>,
    limits: OrderLimits,
}

fn families(count: u64) -> Vec<Family> {
    let two = |most: usize| networks::all_of_two_links().into_iter().filter(|s| s.paths.len() <= most).collect();
    let random = |links, flows, hops, count| (0..count).map(|s| networks::random(links, flows, hops, s)).collect();
    let (loss, common) = (OrderLimits::LOSS, OrderLimits { common: true, ..OrderLimits::LOSS });
    let settled = |limits| OrderLimits { settled: true, ..limits };
    let family = |name, setups, limits| Family { name, setups, limits };
    vec![
        family("2 links, 3 flows", two(3), loss),
        family("2 links, 3 flows, one ends", two(3), OrderLimits { leaves: Some(0), ..loss }),
        family("2 links, 3 flows, RTO of a round", two(3), OrderLimits { rto: 1, ..loss }),
        family("2 links, 2 flows, two passes", two(2), OrderLimits { visits: 2, ..loss }),
        family("2 links, 2 flows, two passes, reverse", two(2), OrderLimits { visits: 2, reverse: true, ..loss }),
        family("3 links, 3 flows of 2 links", random(3, 3, 2, count), loss),
        family("3 links, 3 flows, exact before", random(3, 3, 3, count), settled(loss)),
        family("4 links, 4 flows, a chain", vec![networks::chain()], loss),
        family("4 links, 4 flows of 2 links, exact before", random(4, 4, 2, count), settled(loss)),
        family("4 links, 4 flows of 2 links, common ends", random(4, 4, 2, count / 2), common),
    ]
}

/// The numbers on the page of the experiment s-perc-loss.
#[test]
#[ignore = "takes ten minutes"]
fn survey() {
    let mut all = (0, 0, 0.0);
    for Family { name, setups, limits } in families(200) {
        let start = std::time::Instant::now();
        let (mut complete, mut states, mut orders, mut dead_ends) = (0, 0, 0.0, 0);
        let mut most: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        for setup in &setups {
            let found = explore::<Robust>(setup, limits);
            if !found.complete {
                continue;
            }
            complete += 1;
            states += found.states;
            orders += found.orders;
            dead_ends += found.dead_ends;
            let most = most.entry(allowed(setup) as u32 / 6).or_insert(Some(0));
            *most = most.and_then(|most| found.rounds.map(|rounds| rounds.max(most)));
        }
        let (of, took) = (setups.len(), start.elapsed());
        println!("{name}: {complete} of {of} networks, {states} states, {orders:.1e} orders, {dead_ends} dead ends");
        println!("    rounds by W2: {most:?}; {took:.0?}");
        all = (all.0 + complete, all.1 + states, all.2 + orders);
    }
    println!("{} searches, {} states, {:.1e} orders", all.0, all.1, all.2);
}
