//! Longest distance (Soze, section 5.1.6): the weight is proportional to the longest path from the transfer to the
//! end of the job, at line rate, the transfer included. The paper gives no unit for the distance; here it is time, so
//! that computations count.

use super::About;
use crate::{JobStatus, Sum, WeightPolicy};
use subak_core::InputError;

/// State of the policy `longest-distance`.
#[derive(Debug)]
pub struct LongestDistance {
    far_s: Vec<f64>,
}

impl LongestDistance {
    pub(super) const ABOUT: About = About {
        name: "longest-distance",
        about: "the weight follows the longest way from the transfer to the end of the job; their sum stays",
        paper: "Soze, section 5.1.6, figure 11",
        params: &[],
    };

    pub(super) fn new(_: &[f64]) -> Self {
        LongestDistance { far_s: Vec::new() }
    }
}

impl WeightPolicy for LongestDistance {
    fn sum(&self) -> Sum {
        Sum::Constant
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        if self.far_s.is_empty() {
            let job = standing.job;
            self.far_s = job.to_end(|i| job.pieces()[i].work.least_s());
        }
        Ok(standing.running().map(|i| self.far_s[i]).collect())
    }
}
