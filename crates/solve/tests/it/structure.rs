//! The order of bottlenecks: figures of the PERC thesis, where its text or this project's errata have numbers, and
//! general properties.

use crate::common;
use crate::common::{Net, close};
use proptest::prelude::*;
use subak_core::{IdVec, LinkId, Policy};
use subak_solve::structure::{Degree, EdgeKind, Structure, structure};
use subak_solve::{SolveOptions, freeze_iterations, solve};

const G: f64 = 1e9;

fn of(net: &Net, degree: Degree) -> Structure {
    structure(&net.case(Policy::MaxMin), degree).unwrap()
}

fn edges(found: &Structure) -> Vec<(u32, u32, EdgeKind, Option<u32>)> {
    found.precedence.iter().map(|p| (p.precedent.0, p.link.0, p.kind, p.via.map(|l| l.0))).collect()
}

/// Figure 3.7 of the PERC thesis. Its links 1, 2, 3 are 0, 1, 2 here.
#[test]
fn figure_3_7() {
    // Purple on link 1, blue on 1 and 2, orange on 2, green on 2 and 3.
    let net = Net::new(&[10.0 * G, 15.0 * G, 3.0 * G]).flow(&[0]).flow(&[0, 1]).flow(&[1]).flow(&[1, 2]);
    let two = of(&net, Degree::Two);
    close(&two.rates_bps, &[5.0 * G, 5.0 * G, 7.0 * G, 3.0 * G], 1e-14);
    assert_eq!(two.partition, [vec![2], vec![0], vec![1]]);
    // All links start at rates of 5, 5, 3; link 2 has 6 once green is frozen.
    let shares = |n: usize| two.shares_bps[n].iter().map(|(l, share)| (l.0, *share)).collect::<Vec<_>>();
    assert_eq!(shares(0), [(0, 5.0 * G), (1, 5.0 * G), (2, 3.0 * G)]);
    assert_eq!(shares(1), [(0, 5.0 * G), (1, 6.0 * G)]);
    assert_eq!(edges(&two), [(0, 1, EdgeKind::Direct, None), (2, 0, EdgeKind::SecondDirect, None)]);
    assert_eq!(two.longest_chain, [2, 0, 1]);
    // Link 1 does not wait if it is compared with first-degree neighbors only.
    let one = of(&net, Degree::One);
    assert_eq!(one.partition, [vec![0, 2], vec![1]]);
    assert_eq!(one.depth(), 2);
    // Freeze iterations of the text: link 1 has the lowest rate of its neighbors, with link 2, in iteration 1; WF^2
    // removes it in 2.
    assert_eq!(freeze_iterations(&net.case(Policy::MaxMin), &two), [Some(1), Some(3), Some(1)]);
}

#[test]
fn figure_3_8a() {
    // Purple on 1, blue on 1 and 2, green on 2 and 3, orange on 3 and 4.
    let net = Net::new(&[10.0 * G, 10.0 * G, 6.0 * G, 1.0 * G]).flow(&[0]).flow(&[0, 1]).flow(&[1, 2]).flow(&[2, 3]);
    let two = of(&net, Degree::Two);
    close(&two.rates_bps, &[5.0 * G, 5.0 * G, 5.0 * G, 1.0 * G], 1e-14);
    assert_eq!(two.partition, [vec![3], vec![0, 1, 2]]);
    assert_eq!(
        edges(&two),
        [
            (3, 0, EdgeKind::SecondIndirect, Some(2)),
            (3, 1, EdgeKind::Indirect, Some(2)),
            (3, 2, EdgeKind::Direct, None),
        ]
    );
}

#[test]
fn figure_3_8b() {
    // Figure 3.8a's network with a brown flow on link 2, which is wider.
    let net = Net::new(&[10.0 * G, 18.0 * G, 6.0 * G, 1.0 * G])
        .flow(&[0])
        .flow(&[0, 1])
        .flow(&[1, 2])
        .flow(&[2, 3])
        .flow(&[1]);
    let two = of(&net, Degree::Two);
    close(&two.rates_bps, &[5.0 * G, 5.0 * G, 5.0 * G, 1.0 * G, 8.0 * G], 1e-14);
    assert_eq!(two.partition, [vec![3], vec![0, 2], vec![1]]);
    assert_eq!(
        edges(&two),
        [
            (0, 1, EdgeKind::Direct, None),
            (2, 1, EdgeKind::Direct, None),
            (3, 0, EdgeKind::SecondIndirect, Some(2)),
            (3, 2, EdgeKind::Direct, None),
        ]
    );
}

#[test]
fn figure_2_4() {
    // The text's numbers: link 3 freezes first at 3 Gb/s, when link 2, which shares the green flow, has 5; link 3
    // precedes link 2 directly. The flows and capacities of figure 3.7 have these rates.
    let net = Net::new(&[10.0 * G, 15.0 * G, 3.0 * G]).flow(&[0]).flow(&[0, 1]).flow(&[1]).flow(&[1, 2]);
    let one = of(&net, Degree::One);
    assert_eq!(edges(&one), [(2, 1, EdgeKind::Direct, None)]);
    assert_eq!(one.frozen_in(3), [Some(1), Some(2), Some(1)]);
}

#[test]
fn figure_3_6() {
    // Three algorithms, one allocation: WF^1 needs the fewest iterations, water-filling the most. Link 1 has a higher
    // rate than link 3 when WF^1 freezes it; in WF^2 link 1 waits for link 3. Link 4 shares no flow with the others:
    // only water-filling orders it.
    let net =
        Net::new(&[10.0 * G, 15.0 * G, 3.0 * G, 4.0 * G]).flow(&[0]).flow(&[0, 1]).flow(&[1]).flow(&[1, 2]).flow(&[3]);
    let [one, two, all] = [Degree::One, Degree::Two, Degree::All].map(|k| of(&net, k));
    assert_eq!((one.depth(), two.depth(), all.depth()), (2, 3, 4));
    assert_eq!(one.partition, [vec![0, 2, 3], vec![1]]);
    assert_eq!(two.partition, [vec![2, 3], vec![0], vec![1]]);
    assert_eq!(all.partition, [vec![2], vec![3], vec![0], vec![1]]);
    close(&one.rates_bps, &two.rates_bps, 1e-14);
    close(&one.rates_bps, &all.rates_bps, 1e-14);
}

#[test]
fn figure_2_11() {
    // 60, 30 and 10 Gb/s: A on the first, B on the first two, C on the last two, D on the last.
    let net = Net::new(&[60.0 * G, 30.0 * G, 10.0 * G]).flow(&[0]).flow(&[0, 1]).flow(&[1, 2]).flow(&[2]);
    for degree in [Degree::One, Degree::Two, Degree::All] {
        let found = of(&net, degree);
        close(&found.rates_bps, &[35.0 * G, 25.0 * G, 5.0 * G, 5.0 * G], 1e-14);
        assert_eq!(found.longest_chain, [2, 1, 0]);
    }
    let exact = solve(&net.case(Policy::MaxMin), &SolveOptions::default()).unwrap();
    close(&exact.rates_bps, &[35.0 * G, 25.0 * G, 5.0 * G, 5.0 * G], 1e-14);
}

#[test]
fn only_plain_flows_have_an_order() {
    let net = Net::new(&[1.0]).flow(&[0]).with(|f| f.demand_bps = Some(1.0));
    assert_eq!(structure(&net.case(Policy::MaxMin), Degree::One).unwrap_err().place, "flows[0]");
    let other = Net::new(&[1.0]).flow(&[0]).case(Policy::AlphaFair { alpha: 1.0 });
    assert_eq!(structure(&other, Degree::One).unwrap_err().place, "policy.kind");
    let json = of(&Net::new(&[1.0, 2.0]).flow(&[0]), Degree::Two)
        .to_json(&Net::new(&[1.0, 2.0]).flow(&[0]).case(Policy::MaxMin));
    assert_eq!(json["partition"][0][0], "l0");
    assert_eq!(json["depth"], 1);
}

proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn every_degree_finds_max_min_and_chains_as_deep_as_its_iterations(net in common::mild_nets(1)) {
        let mut net = net;
        net.flows.iter_mut().for_each(|f| f.demand_bps = None);
        let exact = solve(&net.case(Policy::MaxMin), &SolveOptions::default()).unwrap();
        let mut depth = 0;
        for degree in [Degree::One, Degree::Two, Degree::All] {
            let found = of(&net, degree);
            close(&found.rates_bps, &exact.rates_bps, 1e-9);
            // Lemma 3.4.19: every link frozen later has a precedent in the iteration before.
            prop_assert_eq!(found.longest_chain.len(), found.depth());
            prop_assert!(found.depth() >= depth);
            depth = found.depth();
            let frozen = found.frozen_in(net.capacity_bps.len());
            for (n, part) in found.partition.iter().enumerate().skip(1) {
                for l in part {
                    let before = found.precedence.iter().filter(|p| p.link == *l).map(|p| p.precedent);
                    let before: Vec<_> = before.collect();
                    prop_assert!(!before.is_empty(), "{} has no precedent", l);
                    prop_assert!(before.iter().all(|p| frozen[*p] == Some(n)));
                }
            }
        }
    }
}

/// Definition 3.4.5 literally: the first iteration in which a link has the lowest rate among the links that share a
/// remaining flow.
fn freezes_by_the_book(net: &Net, found: &Structure) -> IdVec<LinkId, Option<usize>> {
    let removed = found.frozen_in(net.capacity_bps.len());
    let left = |path: &[LinkId], n: usize| path.iter().all(|&l| removed[l].is_none_or(|at| at >= n));
    let freezes = |l: LinkId| {
        let last = removed[l]?;
        (1..=last).find(|&n| {
            let share = |m: LinkId| found.shares_bps[n - 1].iter().find(|(x, _)| *x == m).map(|(_, share)| *share);
            let around = net.flows.iter().map(|f| &f.paths[0]).filter(|path| path.contains(&l) && left(path, n));
            around.flatten().all(|&m| share(m) >= share(l).map(|own| own * (1.0 - 1e-12)))
        })
    };
    LinkId::first(net.capacity_bps.len()).map(freezes).collect()
}

proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn freeze_iterations_are_those_of_the_definition(net in common::mild_nets(1)) {
        let mut net = net;
        net.flows.iter_mut().for_each(|f| f.demand_bps = None);
        for degree in [Degree::One, Degree::Two, Degree::All] {
            let found = of(&net, degree);
            let freezes = freeze_iterations(&net.case(Policy::MaxMin), &found);
            prop_assert_eq!(&freezes, &freezes_by_the_book(&net, &found));
            let removed = found.frozen_in(net.capacity_bps.len());
            for (freeze, removed) in freezes.iter().zip(&removed) {
                prop_assert_eq!(freeze.is_some(), removed.is_some());
                prop_assert!(freeze <= removed && (degree != Degree::One || freeze == removed));
            }
        }
    }
}
