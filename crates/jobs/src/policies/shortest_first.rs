//! Shortest first (Soze, section 5.1.5): a transfer's weight is the largest size in the job over its own size.

use super::About;
use crate::{JobStatus, Sum, WeightPolicy};
use subak_core::InputError;
use subak_core::keys::{Key, ValueType};

/// State of the policy `shortest-first`.
#[derive(Debug)]
pub struct ShortestFirst {
    largest: f64,
}

impl ShortestFirst {
    pub(super) const ABOUT: About = About {
        name: "shortest-first",
        about: "the weight is the largest size over the transfer's own",
        paper: "Soze, section 5.1.5, figure 10",
        params: &[Key::open("largest", ValueType::Size, "that of the job's own transfers", "the largest size")],
    };

    pub(super) fn new(params: &[f64]) -> Self {
        ShortestFirst { largest: params[0] }
    }
}

impl WeightPolicy for ShortestFirst {
    fn sum(&self) -> Sum {
        Sum::AtMost
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        let size = |i: usize| standing.job.pieces()[i].work.bytes().max(1) as f64;
        let largest = match self.largest {
            0.0 => (0..standing.progress.len()).map(size).fold(1.0, f64::max),
            largest => largest,
        };
        Ok(standing.running().map(|i| largest / size(i)).collect())
    }
}
