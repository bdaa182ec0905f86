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

proptest! {
    #![proptest_config(common::config(1000))]

    #[test]
    fn random_single_path_cases_are_certified(net in common::nets(1), alpha in common::alphas()) {
        certified(&net.case(Policy::AlphaFair { alpha }));
    }

    #[test]
    fn random_pooled_cases_are_certified(net in common::nets(3), alpha in common::alphas()) {
        certified(&net.case(Policy::AlphaFair { alpha }));
    }
}
