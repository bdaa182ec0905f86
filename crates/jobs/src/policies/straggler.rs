//! Stragglers (Soze, section 5.1.2). At each sample, every transfer of a job is compared with the one that would end
//! first. The weight of a later transfer grows in proportion to the delay, and shrinks again once the transfer is
//! early. The weight is never below 1. The paper does not say by how much a weight grows.

use super::About;
use crate::{JobStatus, Sum, WeightPolicy};
use subak_core::InputError;
use subak_core::keys::{Key, Low, ValueType};

/// Largest factor by which a weight changes at a sample.
const STEP: f64 = 2.0;

/// State of the policy `straggler`.
#[derive(Debug)]
pub struct Straggler {
    most: f64,
}

impl Straggler {
    pub(super) const ABOUT: About = About {
        name: "straggler",
        about: "transfers that would end after the first one get more weight, so that all end together",
        paper: "Soze, section 5.1.2, figure 7",
        params: &[Key::new("most", ValueType::Number(Low::From(1.0), 1e6), "16", "the largest weight")],
    };

    pub(super) fn new(params: &[f64]) -> Self {
        Straggler { most: params[0] }
    }
}

impl WeightPolicy for Straggler {
    fn sum(&self) -> Sum {
        Sum::AtMost
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        let first_s = standing.running().filter_map(|i| standing.expected_s(i)).fold(f64::INFINITY, f64::min);
        let weight = |i: usize| {
            let now = standing.progress[i].weight.max(1.0);
            match standing.expected_s(i).filter(|_| standing.look && first_s > 0.0 && first_s.is_finite()) {
                Some(expected_s) => (now * (expected_s / first_s).clamp(1.0 / STEP, STEP)).clamp(1.0, self.most),
                None => now,
            }
        };
        Ok(standing.running().map(weight).collect())
    }
}
