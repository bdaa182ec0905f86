//! Weighted max-min over single paths: the papers' examples, a textbook reference, and answers that the certificate
//! refuses.

use crate::common;
use crate::common::{Net, certified, close, max_min_by_the_book};
use proptest::prelude::*;
use subak_core::rng::Stream;
use subak_core::{FlowId, LinkId, Policy};
use subak_solve::{MaxMin, SolveOptions, Status, certify, max_min, solve};

const G: f64 = 1e9;

#[test]
fn thesis_figure_2_1() {
    // Links l12, l20, l30; the green flow over l12 and l30, the brown one over l20 and l30.
    let case = Net::new(&[12.0 * G, 20.0 * G, 30.0 * G]).flow(&[0, 2]).flow(&[1, 2]).case(Policy::MaxMin);
    let answer = solve(&case, &SolveOptions::default()).unwrap();
    close(&answer.rates_bps, &[12.0 * G, 18.0 * G], 1e-15);
    assert_eq!(
        (answer.bottlenecks.row(0), answer.bottlenecks.row(1)),
        (&LinkId::each([0])[..], &LinkId::each([2])[..])
    );
    assert_eq!(answer.status, Status::Optimal);
}

#[test]
fn a_demand_leaves_its_rest_to_others_and_weights_share() {
    let case = Net::new(&[10.0 * G])
        .flow(&[0])
        .with(|f| f.demand_bps = Some(1.0 * G))
        .flow(&[0])
        .with(|f| f.weight = 2.0)
        .flow(&[0])
        .case(Policy::MaxMin);
    let answer = solve(&case, &SolveOptions::default()).unwrap();
    close(&answer.rates_bps, &[1.0 * G, 6.0 * G, 3.0 * G], 1e-15);
    assert!(answer.bottlenecks.row(0).is_empty());
}

#[test]
fn nothing_to_share() {
    let answer = solve(&Net::new(&[]).case(Policy::MaxMin), &SolveOptions::default()).unwrap();
    assert_eq!((answer.status, answer.rates_bps.len()), (Status::Optimal, 0));
    let idle = Net::new(&[1.0, 2.0]).flow(&[1]).with(|f| f.demand_bps = Some(0.0)).case(Policy::MaxMin);
    let answer = solve(&idle, &SolveOptions::default()).unwrap();
    assert_eq!((answer.status, answer.rates_bps[0]), (Status::Optimal, 0.0));
}

#[test]
fn the_certificate_refuses_what_is_not_max_min() {
    let case = Net::new(&[10.0, 4.0]).flow(&[0]).flow(&[0, 1]).case(Policy::MaxMin);
    let right = solve(&case, &SolveOptions::default()).unwrap();
    close(&right.rates_bps, &[6.0, 4.0], 1e-15);
    let with = |rates: [f64; 2]| {
        let mut wrong = right.clone();
        wrong.rates_bps = rates.to_vec();
        wrong.path_rates_bps = rates.to_vec();
        certify(&case, &wrong)
    };
    assert!(with([5.0, 5.0]).infeasibility > 0.2);
    assert!(with([7.0, 3.0]).worst() > 0.2);
    assert!(with([5.0, 4.0]).gap > 0.05);
    assert_eq!(with([f64::NAN, 4.0]).worst(), f64::INFINITY);
}

#[test]
fn rates_as_json() {
    let case = Net::new(&[12.0 * G, 20.0 * G, 30.0 * G]).flow(&[0, 2]).flow(&[1, 2]).case(Policy::MaxMin);
    let json = solve(&case, &SolveOptions::default()).unwrap().to_json(&case);
    assert_eq!(json["schema"], 1);
    assert_eq!(json["status"], "optimal");
    assert_eq!(json["flows"][1]["id"], "f1");
    assert_eq!(json["flows"][1]["rate"], 18e9);
    assert_eq!(json["flows"][1]["paths"][0], 18e9);
    assert_eq!(json["flows"][1]["bottlenecks"][0], "l2");
    assert_eq!(json["links"][2]["utilization"], 1.0);
    assert!(json["certificate"]["gap"].as_f64().unwrap() < 1e-12);
}

#[test]
fn a_solver_used_again_remembers_nothing() {
    let capacity_bps = [10.0, 6.0, 1.0];
    let (link_ptr, links) = ([0, 2, 3, 4, 5], LinkId::each([0, 1, 0, 1, 2]));
    let (weight, demand_bps) = ([1.0; 4], [f64::INFINITY; 4]);
    let rows = max_min::PathRows {
        capacity_bps: &capacity_bps,
        link_ptr: &link_ptr,
        links: &links,
        weight: &weight,
        demand_bps: &demand_bps,
        active: None,
    };
    let mut solver = MaxMin::new();
    let mut rates = [0.0; 4];
    solver.solve(&rows, &mut rates, &mut []);
    assert_eq!(rates, [3.0, 7.0, 3.0, 1.0]);
    solver.solve(&max_min::PathRows { active: Some(&FlowId::each([0, 1])), ..rows }, &mut rates, &mut []);
    assert_eq!(rates, [5.0, 5.0, 3.0, 1.0]);
    solver.solve(&max_min::PathRows { active: Some(&FlowId::each([3, 2])), ..rows }, &mut rates, &mut []);
    assert_eq!(rates, [5.0, 5.0, 6.0, 1.0]);
    solver.solve(&rows, &mut rates, &mut []);
    assert_eq!(rates, [3.0, 7.0, 3.0, 1.0]);
}

#[test]
fn one_long_path_among_many_short_ones() {
    let n = 64u32;
    let path: Vec<u32> = (0..n).collect();
    let mut net = Net::new(&path.iter().map(|_| 10.0).collect::<Vec<_>>()).flow(&path);
    for l in 0..n {
        net = net.flow(&[l]).flow(&[l]);
    }
    let case = net.case(Policy::MaxMin);
    close(&certified(&case).rates_bps, &max_min_by_the_book(&case), 1e-14);
}

#[test]
fn a_chain_of_links_that_wait_for_one_another() {
    // Link i has capacity 2 i + 1 and carries flows i - 1 and i: flow i gets i + 1, once flow i - 1 has i.
    let n = 200;
    let capacity_bps: Vec<f64> = (0..=n).map(|i| f64::from(2 * i + 1)).collect();
    let net = (0..n).fold(Net::new(&capacity_bps), |net, i| net.flow(&[i, i + 1]));
    let want: Vec<f64> = (0..n).map(|i| f64::from(i + 1)).collect();
    close(&certified(&net.case(Policy::MaxMin)).rates_bps, &want, 1e-14);
}

#[test]
fn thousands_of_flows_weighted_and_bounded_over_long_and_short_paths() {
    let mut random = Stream::new(2, "max-min");
    let links = 300;
    let capacity_bps: Vec<f64> =
        (0..links).map(|_| [1e9, 1e10, 4e10][random.below(3)] * (0.5 + random.unit())).collect();
    let mut net = Net::new(&capacity_bps);
    for _ in 0..3000 {
        let mut path: Vec<u32> = (0..1 + random.below(14)).map(|_| random.below(links) as u32).collect();
        path.sort_unstable();
        path.dedup();
        net = net.flow(&path).with(|f| f.weight = 10f64.powf(4.0 * random.unit() - 2.0));
        if random.unit() < 0.2 {
            net = net.with(|f| f.demand_bps = Some(10f64.powf(5.0 + 4.0 * random.unit())));
        }
    }
    certified(&net.case(Policy::MaxMin));
}

proptest! {
    #![proptest_config(common::config(300))]
    #[test]
    fn random_cases_are_certified_and_agree_with_the_textbook(net in common::nets(1)) {
        let case = net.case(Policy::MaxMin);
        let answer = certified(&case);
        close(&answer.rates_bps, &max_min_by_the_book(&case), 1e-9);
    }
}
