//! Constant sum (Soze, section 5.1.3). At each sample the weights are proportional to the remaining bytes of each
//! transfer, so that transfers over one bottleneck end together. Their sum is constant, so that other jobs keep their
//! share. Before the first sample all weights are equal: the paper's example sets weights only in the middle of the
//! run.

use super::About;
use crate::{JobStatus, Sum, WeightPolicy};
use subak_core::InputError;

/// State of the policy `constant-sum`.
#[derive(Debug)]
pub struct ConstantSum {
    /// Remaining bytes at the last sample, by piece.
    left: Vec<f64>,
}

impl ConstantSum {
    pub(super) const ABOUT: About = About {
        name: "constant-sum",
        about: "weights follow what remained of each transfer at the last look; their sum stays",
        paper: "Soze, section 5.1.3, figure 8",
        params: &[],
    };

    pub(super) fn new(_: &[f64]) -> Self {
        ConstantSum { left: Vec::new() }
    }
}

impl WeightPolicy for ConstantSum {
    fn sum(&self) -> Sum {
        Sum::Constant
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        if standing.look {
            self.left = (0..standing.progress.len()).map(|i| standing.left_bytes(i).max(1) as f64).collect();
        }
        Ok(standing.running().map(|i| self.left.get(i).copied().unwrap_or(1.0)).collect())
    }
}
