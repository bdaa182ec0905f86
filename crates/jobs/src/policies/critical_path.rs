//! Critical path first (Soze, section 5.1.1): transfers on the longest remaining path have `ratio` times the weight
//! of the others. The paper's weights 4/3 and 2/3 are a ratio of 2 with a constant sum of 2.

use super::About;
use crate::{JobStatus, Sum, WeightPolicy};
use subak_core::InputError;
use subak_core::keys::{Key, Low, ValueType};

/// Relative difference of lengths below which two paths count as equally long.
const TIE: f64 = 1e-9;

/// State of the policy `critical-path`.
#[derive(Debug)]
pub struct CriticalPath {
    ratio: f64,
}

impl CriticalPath {
    pub(super) const ABOUT: About = About {
        name: "critical-path",
        about: "transfers on the longest way that remains have a multiple of the others' weight",
        paper: "Soze, section 5.1.1, figures 5 and 6",
        params: &[Key::new(
            "ratio",
            ValueType::Number(Low::From(1.0), 100.0),
            "2",
            "weight of a transfer on the longest way over that of another",
        )],
    };

    pub(super) fn new(params: &[f64]) -> Self {
        CriticalPath { ratio: params[0] }
    }
}

impl WeightPolicy for CriticalPath {
    fn sum(&self) -> Sum {
        Sum::Constant
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        let far = standing.least_to_end_s();
        let longest = standing.running().map(|i| far[i]).fold(0.0, f64::max);
        Ok(standing.running().map(|i| if far[i] >= longest * (1.0 - TIE) { self.ratio } else { 1.0 }).collect())
    }
}
