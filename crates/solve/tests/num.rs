//! Utility maximization: closed forms, random cases of every alpha, degenerate ones on purpose.

mod common;

use common::{Net, certified, close};
use proptest::prelude::*;
use subak_core::Policy;

#[test]
fn proportional_fairness_on_a_chain() {
    // One long flow over n links, one short flow on each: the long one gets c / (n + 1).
    let mut net = Net::new(&[10e9; 4]).flow(&[0, 1, 2, 3]);
    for l in 0..4 {
        net = net.flow(&[l]);
    }
    let answer = certified(&net.case(Policy::AlphaFair { alpha: 1.0 }));
    close(&answer.rates_bps, &[2e9, 8e9, 8e9, 8e9, 8e9], 1e-8);
}
#[test]
fn survey() {
    use proptest::strategy::ValueTree;
    for paths in [1, 3] {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let (mut bad, mut iterations, mut worst) = (0, 0, 0);
        for i in 0..4000 {
            let net = common::nets(paths).new_tree(&mut runner).unwrap().current();
            let alpha = common::alphas().new_tree(&mut runner).unwrap().current();
            let case = net.case(Policy::AlphaFair { alpha });
            if std::env::var("CASE").ok().and_then(|c| c.parse().ok()).is_some_and(|c: u64| c != i) { continue; }
            let answer = subak_solve::solve(&case, &Default::default()).unwrap();
            iterations += answer.iterations; worst = worst.max(answer.iterations);
            if answer.status != subak_solve::Status::Optimal {
                bad += 1;
                if bad < 12 { println!("{i} alpha {alpha} {:?} {:?} {}", answer.status, answer.certificate, answer.iterations); }
                if std::env::var("CASE").ok().and_then(|c| c.parse().ok()) == Some(i) {
                    println!("{net:#?} {answer:?}");
                    println!("TRACE");
                    subak_solve::solve(&case, &subak_solve::Options { max_iterations: 60, ..Default::default() }).unwrap();
                    return;
                }
            }
        }
        println!("paths {paths} bad {bad} iterations {iterations} worst {worst}");
    }
}
