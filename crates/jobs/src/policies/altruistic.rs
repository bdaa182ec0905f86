//! Altruism (Soze, section 5.1.4). At each sample, a transfer that would end before its job's critical path reduces
//! its weight until both would end together. Its weight is at most 1. The job does not end later, and other jobs may
//! end earlier. Beside a transfer of weight 1, a weight of 1/3 is a quarter of the link, as in the paper's figure 9.

use super::About;
use crate::{JobStatus, Sum, WeightPolicy};
use subak_core::InputError;
use subak_core::keys::{Key, Low, ValueType};

/// Largest factor by which a weight changes at a sample.
const STEP: f64 = 4.0;

/// State of the policy `altruistic`.
#[derive(Debug)]
pub struct Altruistic {
    least: f64,
}

impl Altruistic {
    pub(super) const ABOUT: About = About {
        name: "altruistic",
        about: "transfers off the critical path give up weight, as far as they still end with that path",
        paper: "Soze, section 5.1.4, figure 9",
        params: &[Key::new("least", ValueType::Number(Low::From(1e-6), 1.0), "0.02", "the smallest weight")],
    };

    pub(super) fn new(params: &[f64]) -> Self {
        Altruistic { least: params[0] }
    }
}

impl WeightPolicy for Altruistic {
    fn sum(&self) -> Sum {
        Sum::AtMost
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        let far = standing.least_to_end_s();
        // Pieces after a transfer take at least this time.
        let later_s = |i: usize| far[i] - standing.least_left_s(i);
        let expected_s = |i: usize| standing.expected_s(i).unwrap_or_else(|| standing.least_left_s(i)) + later_s(i);
        let end_s = standing.running().map(expected_s).fold(0.0, f64::max);
        let weight = |i: usize| {
            let now = if standing.progress[i].weight > 0.0 { standing.progress[i].weight.min(1.0) } else { 1.0 };
            let Some(own_s) = standing.expected_s(i).filter(|_| standing.look) else { return now };
            let may_s = end_s - later_s(i);
            let factor = if may_s > 0.0 { own_s / may_s } else { STEP };
            (now * factor.clamp(1.0 / STEP, STEP)).clamp(self.least, 1.0)
        };
        Ok(standing.running().map(weight).collect())
    }
}
