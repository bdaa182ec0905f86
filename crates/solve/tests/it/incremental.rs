//! Small changes, solved from the previous answer.

use crate::common;
use crate::common::{Net, close};
use proptest::prelude::*;
use subak_core::rng::Stream;
use subak_core::{Flow, LinkId, Policy};
use subak_solve::{Incremental, SolveOptions, Status, certify, solve};

const G: f64 = 1e9;

fn start(policy: Policy) -> Incremental {
    let mut now = Incremental::new(Net::new(&[12.0 * G, 20.0 * G, 30.0 * G]).case(policy));
    now.add(Flow::over("green", LinkId::each([0, 2]).into())).unwrap();
    now.add(Flow::over("brown", LinkId::each([1, 2]).into())).unwrap();
    now
}

#[test]
fn max_min_changes_and_repairs() {
    let mut now = start(Policy::MaxMin);
    let (_, answer) = now.solve(&SolveOptions::default()).unwrap();
    close(&answer.rates_bps, &[12.0 * G, 18.0 * G], 1e-14);
    now.set_capacity("l2", 10.0 * G).unwrap();
    now.set_weight("green", 4.0).unwrap();
    now.repair(1e-6).unwrap();
    let (_, answer) = now.answer().unwrap();
    close(&answer.rates_bps, &[8.0 * G, 2.0 * G], 1e-6);
    assert_eq!(answer.status, Status::Optimal);
    assert_eq!(answer.bottlenecks.row(0), [2]);
    now.remove("green").unwrap();
    // The rates are those from before the change, and the status says so.
    assert_eq!(now.answer().unwrap().1.status, Status::Inaccurate);
    now.repair(1e-6).unwrap();
    close(&now.answer().unwrap().1.rates_bps, &[10.0 * G], 1e-6);
    assert!((now.rate_bps("brown").unwrap() / (10.0 * G) - 1.0).abs() < 1e-6);
    now.set_demand("brown", Some(1.0 * G)).unwrap();
    close(&now.solve(&SolveOptions::default()).unwrap().1.rates_bps, &[1.0 * G], 1e-14);
}

#[test]
fn prices_carry_over() {
    let mut random = Stream::new(5, "incremental");
    let policy = Policy::AlphaFair { alpha: 1.0 };
    let mut now = Incremental::new(Net::new(&[10.0 * G; 60]).case(policy));
    let path = |random: &mut Stream| {
        let mut path: Vec<LinkId> = (0..4).map(|_| LinkId::from_index(random.below(60))).collect();
        path.sort_unstable();
        path.dedup();
        path
    };
    for f in 0..300 {
        now.add(Flow::over(format!("f{f}"), path(&mut random))).unwrap();
    }
    now.solve(&SolveOptions::default()).unwrap();
    let (mut warm, mut cold) = (0, 0);
    for f in 0..20 {
        now.remove(&format!("f{f}")).unwrap();
        now.add(Flow::over(format!("g{f}"), path(&mut random))).unwrap();
        let (case, answer) = now.solve(&SolveOptions::default()).unwrap();
        assert_eq!(answer.status, Status::Optimal, "{:?}", answer.certificate);
        let fresh = solve(&case, &SolveOptions::default()).unwrap();
        close(&answer.rates_bps, &fresh.rates_bps, 1e-6);
        warm += answer.iterations;
        cold += fresh.iterations;
    }
    assert!(warm < cold, "{warm} iterations warm, {cold} cold");
}

#[test]
fn what_is_not_there_is_refused() {
    let mut now = start(Policy::MaxMin);
    assert!(now.contains("green") && !now.is_empty());
    assert_eq!(now.add(Flow::over("green", vec![LinkId(0)])).unwrap_err().place, "id");
    assert_eq!(now.add(Flow::over("blue", vec![LinkId(7)])).unwrap_err().place, "path[0]");
    assert_eq!(now.remove("blue").unwrap_err().place, "id");
    assert_eq!(now.set_weight("green", -1.0).unwrap_err().place, "weight");
    assert_eq!(now.set_capacity("l9", 1.0).unwrap_err().place, "link");
    assert_eq!(now.set_capacity("l1", f64::NAN).unwrap_err().place, "capacity");
    assert_eq!(start(Policy::AlphaFair { alpha: 1.0 }).repair(0.1).unwrap_err().place, "policy");
    assert_eq!(start(Policy::AlphaFair { alpha: 1.0 }).answer().unwrap_err().place, "policy");
    for tolerance in [0.0, 1.0, -1.0, f64::NAN] {
        assert_eq!(now.repair(tolerance).unwrap_err().place, "tolerance");
    }
    // A refused change leaves no trace.
    assert_eq!((now.len(), now.case().flows.weight()), (2, &[1.0, 1.0][..]));
    close(&now.solve(&SolveOptions::default()).unwrap().1.rates_bps, &[12.0 * G, 18.0 * G], 1e-14);
}

/// Applies one random change to `now` and to `net`, the reference.
fn change(now: &mut Incremental, net: &mut Net, random: &mut Stream, count: &mut usize, paths: usize) {
    let links = net.capacity_bps.len();
    let pick = random.below(net.flows.len().max(1));
    match random.below(6) {
        0 | 1 => {
            let mut flow = Flow::over(format!("new{count}"), Vec::new());
            *count += 1;
            let path = |random: &mut Stream| {
                let mut path: Vec<LinkId> = (0..3).map(|_| LinkId::from_index(random.below(links))).collect();
                path.sort_unstable();
                path.dedup();
                path
            };
            flow.paths = (0..1 + random.below(paths)).map(|_| path(random)).collect();
            flow.paths.sort();
            flow.paths.dedup();
            now.add(flow.clone()).unwrap();
            net.flows.push(flow);
        }
        2 if !net.flows.is_empty() => now.remove(&net.flows.remove(pick).id).unwrap(),
        3 if !net.flows.is_empty() => {
            net.flows[pick].weight = 0.5 + random.unit();
            now.set_weight(&net.flows[pick].id, net.flows[pick].weight).unwrap();
        }
        4 if !net.flows.is_empty() => {
            net.flows[pick].demand_bps = Some(5.0 * G * random.unit()).filter(|_| random.unit() < 0.7);
            now.set_demand(&net.flows[pick].id, net.flows[pick].demand_bps).unwrap();
        }
        _ => {
            let l = random.below(links);
            net.capacity_bps[l] *= 0.5 + random.unit();
            now.set_capacity(&format!("l{l}"), net.capacity_bps[l]).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(common::config(60))]

    #[test]
    fn any_sequence_gives_what_a_solve_from_nothing_gives(seed in 0..10_000u64, links in 2..12usize) {
        for (policy, paths) in [
            (Policy::MaxMin, 1),
            (Policy::MaxMin, 2),
            (Policy::AlphaFair { alpha: 1.0 }, 2),
        ] {
            let mut random = Stream::new(seed, "sequence");
            let mut net = Net::new(&vec![10.0 * G; links]);
            let (mut now, mut count) = (Incremental::new(net.case(policy)), 0);
            for step in 0..60 {
                change(&mut now, &mut net, &mut random, &mut count, paths);
                let fresh = net.case(policy);
                if paths == 1 && step % 3 > 0 {
                    let tolerance = 10f64.powi(-1 - random.below(6) as i32);
                    now.repair(tolerance).unwrap();
                    let (case, answer) = now.answer().unwrap();
                    prop_assert_eq!(answer.status, Status::Optimal, "{:?} {}", answer.certificate, tolerance);
                    prop_assert!(answer.certificate.worst() <= tolerance.max(1e-8));
                    prop_assert!(answer.certificate.infeasibility <= 1e-9);
                    prop_assert_eq!(certify(&fresh, &answer), certify(&case, &answer));
                } else if step % 10 == 0 || paths == 1 {
                    let (case, answer) = now.solve(&SolveOptions::default()).unwrap();
                    prop_assert_eq!(answer.status, Status::Optimal, "{:?}", answer.certificate);
                    let ids: Vec<String> = (0..case.flows.len()).map(|f| case.flows.id(f)).collect();
                    prop_assert_eq!(ids, net.flows.iter().map(|f| f.id.clone()).collect::<Vec<_>>());
                    let exact = solve(&fresh, &SolveOptions::default()).unwrap();
                    let near = if policy == Policy::MaxMin { 1e-7 } else { 1e-4 };
                    close(&answer.rates_bps, &exact.rates_bps, near);
                }
            }
        }
    }
}
