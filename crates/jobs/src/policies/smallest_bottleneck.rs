//! Smallest effective bottleneck first (SEBF) with rates for a common end (MADD), as in Varys (Chowdhury et al.,
//! SIGCOMM 2014, section 5.3), by weights: Varys serves jobs in strict order, weights share links in proportion.
//!
//! A job's effective bottleneck is the longest time that one of its ports, in or out, takes for what remains,
//! transfers that wait included. At that port, the weights of all transfers, had they started, sum up to `(over /
//! bottleneck)^power`; each is in proportion to what remains of its transfer, so that all end together.

use super::About;
use crate::{JobStatus, Sum, TransferState, WeightPolicy, Work};
use std::collections::BTreeMap;
use subak_core::InputError;
use subak_core::keys::{Key, Low, ValueType};

/// Smallest weight of a transfer and largest sum of a port's weights.
const WEIGHTS: (f64, f64) = (1e-6, 1e6);

/// Largest value of the parameter `over`, ns: 100 days.
const LONGEST_NS: u64 = 8_640_000_000_000_000;

/// State of the policy `smallest-bottleneck`.
#[derive(Debug)]
pub struct SmallestBottleneck {
    power: f64,
    over_s: f64,
}

impl SmallestBottleneck {
    pub(super) const ABOUT: About = About {
        name: "smallest-bottleneck",
        about: "jobs weigh more, the sooner their busiest port could be done; their transfers end together",
        paper: "Varys, section 5.3 (SEBF and MADD)",
        params: &[
            Key::new("power", ValueType::Number(Low::Above(0.0), 8.0), "1", "exponent of the priority"),
            Key::new("over", ValueType::Span(1, LONGEST_NS), "1s", "bottleneck of a job whose priority is 1"),
        ],
    };

    pub(super) fn new(params: &[f64]) -> Self {
        SmallestBottleneck { power: params[0], over_s: params[1] }
    }
}

impl WeightPolicy for SmallestBottleneck {
    fn sum(&self) -> Sum {
        Sum::AtMost
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        let mut ports: BTreeMap<(bool, u32), f64> = BTreeMap::new();
        for (i, piece) in standing.job.pieces().iter().enumerate() {
            if let Work::Transfer { ends: [from, to], .. } = piece.work
                && standing.progress[i].state != TransferState::Ended
            {
                *ports.entry((false, from)).or_default() += standing.least_left_s(i);
                *ports.entry((true, to)).or_default() += standing.least_left_s(i);
            }
        }
        let bottleneck_s = ports.values().copied().fold(f64::MIN_POSITIVE, f64::max);
        let priority = (self.over_s / bottleneck_s).powf(self.power).clamp(WEIGHTS.0, WEIGHTS.1);
        let weight = |i| (priority * standing.least_left_s(i) / bottleneck_s).max(WEIGHTS.0);
        Ok(standing.running().map(weight).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, Piece, TransferProgress};

    /// Into host 9 come 3 GB and 1 GB at 8 Gb/s, 4 s in all; 2 GB more leave host 1 for host 8.
    #[test]
    fn weights_at_the_busiest_port_sum_up_to_the_priority() {
        let piece = |bytes, ends| Piece { work: Work::Transfer { bytes, line_bps: 8e9, ends }, after: Vec::new() };
        let pieces = vec![piece(3_000_000_000, [0, 9]), piece(1_000_000_000, [1, 9]), piece(2_000_000_000, [1, 8])];
        let job = Job::new(pieces).unwrap();
        let mut progress = vec![TransferProgress { state: TransferState::Running, ..Default::default() }; 3];
        let weights = |progress: &[TransferProgress], power| {
            let status = JobStatus { now_ns: 0, job: &job, progress, look: true };
            SmallestBottleneck::new(&[power, 1.0]).weigh(&status).unwrap()
        };
        assert_eq!(weights(&progress, 1.0), [0.25 * 0.75, 0.25 * 0.25, 0.25 * 0.5]);
        assert_eq!(weights(&progress, 2.0)[0], 0.0625 * 0.75);
        // Once the first has all but 1 GB, 3 s at the port of host 1 are the longest.
        progress[0].received_bytes = 2_000_000_000;
        assert_eq!(weights(&progress, 1.0), [1.0, 1.0, 2.0].map(|left| left / 9.0));
        progress[2].state = TransferState::Ended;
        assert_eq!(weights(&progress, 1.0), [0.25, 0.25]);
    }
}
