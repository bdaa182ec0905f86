//! Equal weights, as in fair sharing. With a budget, it is the simplest policy within that budget.

use super::About;
use crate::{JobStatus, Sum, WeightPolicy};
use subak_core::InputError;

/// The policy `even`.
#[derive(Debug)]
pub struct Even;

impl Even {
    pub(super) const ABOUT: About = About {
        name: "even",
        about: "every running transfer has the same weight: the budget over their number, or 1",
        paper: "Soze, section 5.1 (fair allocation)",
        params: &[],
    };

    pub(super) fn new(_: &[f64]) -> Self {
        Even
    }
}

impl WeightPolicy for Even {
    fn sum(&self) -> Sum {
        Sum::Constant
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        Ok(standing.running().map(|_| 1.0).collect())
    }
}
