//! A job as it stands: what its policy is told.

use crate::Job;
use subak_core::Ns;

/// Phase of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferState {
    /// It has not started.
    #[default]
    Waiting,
    /// It sends.
    Running,
    /// Its last byte has arrived.
    Ended,
}

/// A transfer as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransferProgress {
    /// Phase.
    pub state: TransferState,
    /// Payload that has arrived, as far as the job was told.
    pub received_bytes: u64,
    /// Rate of the payload between the last two looks, or from its start to the first, bit/s; 0 before.
    pub rate_bps: f64,
    /// Its weight; 0 before it starts and after its end.
    pub weight: f64,
}

/// A job as it stands. Transfers are known by the number of their piece.
#[derive(Debug, Clone, Copy)]
pub struct JobStatus<'a> {
    /// The time.
    pub now_ns: Ns,
    /// The structure of the job.
    pub job: &'a Job,
    /// By piece; computations stay as they were made.
    pub progress: &'a [TransferProgress],
    /// Whether this is a look at the progress, and not a start or an end.
    pub look: bool,
}

impl<'a> JobStatus<'a> {
    /// The transfers that run.
    pub fn running(self) -> impl Iterator<Item = usize> + 'a {
        let progress = self.progress;
        (0..progress.len()).filter(move |&i| progress[i].state == TransferState::Running)
    }

    /// Payload of piece `i` that has not arrived.
    pub fn left_bytes(&self, i: usize) -> u64 {
        self.job.pieces()[i].work.bytes().saturating_sub(self.progress[i].received_bytes)
    }

    /// The least time that piece `i` still takes, s.
    pub fn least_left_s(&self, i: usize) -> f64 {
        let work = self.job.pieces()[i].work;
        match (self.progress[i].state, work.bytes()) {
            (TransferState::Ended, _) => 0.0,
            (_, 0) => work.least_s(),
            (_, bytes) => work.least_s() * (self.left_bytes(i) as f64 / bytes as f64),
        }
    }

    /// The least time from now to the end of the job by way of piece `i`, s, by piece.
    pub fn least_to_end_s(&self) -> Vec<f64> {
        self.job.to_end(|i| self.least_left_s(i))
    }

    /// When transfer `i` ends at its present rate, s from now; none while that is unknown.
    pub fn expected_s(&self, i: usize) -> Option<f64> {
        let rate = self.progress[i].rate_bps;
        (rate > 0.0).then(|| self.left_bytes(i) as f64 * 8.0 / rate)
    }
}
