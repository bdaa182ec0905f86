//! Status of a job: the input of its policy.

use crate::Job;
use subak_core::Ns;

/// Phase of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferState {
    /// The transfer has not started.
    #[default]
    Waiting,
    /// The transfer is sending.
    Running,
    /// The transfer's last byte has arrived.
    Ended,
}

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransferProgress {
    /// Phase of the transfer.
    pub state: TransferState,
    /// Payload received, bytes, as last sampled.
    pub received_bytes: u64,
    /// Payload rate between the last two samples, or from the start to the first sample, bit/s; 0 before that.
    pub rate_bps: f64,
    /// Current weight; 0 before the start and after the end.
    pub weight: f64,
}

/// Status of a job. A transfer is identified by its piece's number.
#[derive(Debug, Clone, Copy)]
pub struct JobStatus<'a> {
    /// Current time, ns.
    pub now_ns: Ns,
    /// The structure of the job.
    pub job: &'a Job,
    /// Progress by piece, never updated for computations.
    pub progress: &'a [TransferProgress],
    /// Whether this is a sample of the progress; otherwise a transfer started or ended.
    pub look: bool,
}

impl<'a> JobStatus<'a> {
    /// Numbers of the running transfers.
    pub fn running(self) -> impl Iterator<Item = usize> + 'a {
        let progress = self.progress;
        (0..progress.len()).filter(move |&i| progress[i].state == TransferState::Running)
    }

    /// Payload of piece `i` that has not arrived, bytes.
    pub fn left_bytes(&self, i: usize) -> u64 {
        self.job.pieces()[i].work.bytes().saturating_sub(self.progress[i].received_bytes)
    }

    /// Shortest time that piece `i` still takes, s.
    pub fn least_left_s(&self, i: usize) -> f64 {
        let work = self.job.pieces()[i].work;
        match (self.progress[i].state, work.bytes()) {
            (TransferState::Ended, _) => 0.0,
            (_, 0) => work.least_s(),
            (_, bytes) => work.least_s() * (self.left_bytes(i) as f64 / bytes as f64),
        }
    }

    /// For each piece, the shortest time from now to the end of the job along a path through it, s.
    pub fn least_to_end_s(&self) -> Vec<f64> {
        self.job.to_end(|i| self.least_left_s(i))
    }

    /// Time until transfer `i` ends at its present rate, s; `None` if it has no rate yet.
    pub fn expected_s(&self, i: usize) -> Option<f64> {
        let rate = self.progress[i].rate_bps;
        (rate > 0.0).then(|| self.left_bytes(i) as f64 * 8.0 / rate)
    }
}
