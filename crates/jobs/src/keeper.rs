//! State of one running job: applies its policy and enforces its weight budget.

use crate::{Job, JobStatus, Sum, TransferProgress, TransferState, WeightPolicy};
use subak_core::{InputError, Ns};

/// Smallest weight of a running transfer, as a fraction of the mean weight of its job; prevents starvation.
const LEAST_SHARE: f64 = 0.01;

/// Tracks a job's progress and determines which weights change.
pub struct Keeper {
    job: Job,
    policy: Box<dyn WeightPolicy>,
    budget: Option<f64>,
    progress: Vec<TransferProgress>,
    /// Time and received bytes at the last sample of each transfer.
    looked: Vec<(Ns, u64)>,
}

impl Keeper {
    /// Runs `job` under `policy`; `budget` bounds the sum of the weights of the job's running transfers.
    pub fn new(job: Job, policy: Box<dyn WeightPolicy>, budget: Option<f64>) -> Self {
        let n = job.pieces().len();
        Keeper { job, policy, budget, progress: vec![TransferProgress::default(); n], looked: vec![(0, 0); n] }
    }

    /// Records that transfer `piece` starts.
    pub fn started(&mut self, piece: usize, now_ns: Ns) {
        self.progress[piece].state = TransferState::Running;
        self.looked[piece] = (now_ns, 0);
    }

    /// Records the received bytes of transfer `piece`. `look`: also computes the transfer's rate since the last sample.
    pub fn progressed(&mut self, piece: usize, received_bytes: u64, now_ns: Ns, look: bool) {
        let one = &mut self.progress[piece];
        if one.state != TransferState::Running {
            return;
        }
        one.received_bytes = received_bytes;
        let (since_ns, had_bytes) = self.looked[piece];
        if look && now_ns > since_ns {
            one.rate_bps = received_bytes.saturating_sub(had_bytes) as f64 * 8e9 / (now_ns - since_ns) as f64;
            self.looked[piece] = (now_ns, received_bytes);
        }
    }

    /// Records that the last byte of transfer `piece` has arrived.
    pub fn ended(&mut self, piece: usize) {
        let bytes = self.job.pieces()[piece].work.bytes();
        self.progress[piece] =
            TransferProgress { state: TransferState::Ended, received_bytes: bytes, rate_bps: 0.0, weight: 0.0 };
    }

    /// Numbers of the running transfers.
    pub fn running(&self) -> Vec<usize> {
        self.standing(0, false).running().collect()
    }

    /// Whether any transfer runs.
    pub fn is_running(&self) -> bool {
        self.progress.iter().any(|p| p.state == TransferState::Running)
    }

    /// Applies the policy; returns the transfers whose weights change, with their new weights. `look`: progress was
    /// sampled; otherwise a transfer started or ended.
    pub fn weigh(&mut self, now_ns: Ns, look: bool) -> Result<Vec<(usize, f64)>, InputError> {
        let running = self.running();
        if running.is_empty() {
            return Ok(Vec::new());
        }
        let standing = JobStatus { now_ns, job: &self.job, progress: &self.progress, look };
        let mut weights = self.policy.weigh(&standing)?;
        check(&weights, running.len())?;
        hold(&mut weights, self.policy.sum(), self.budget);
        let mut changed = Vec::new();
        for (&i, &weight) in running.iter().zip(&weights) {
            if self.progress[i].weight != weight {
                self.progress[i].weight = weight;
                changed.push((i, weight));
            }
        }
        Ok(changed)
    }

    fn standing(&self, now_ns: Ns, look: bool) -> JobStatus<'_> {
        JobStatus { now_ns, job: &self.job, progress: &self.progress, look }
    }
}

fn check(weights: &[f64], running: usize) -> Result<(), InputError> {
    if weights.len() != running {
        let what = format!("the policy gave {} weights to {running} running transfers", weights.len());
        return Err(InputError::new("policy", what, "give a weight to each running transfer"));
    }
    match weights.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
        None => Ok(()),
        Some(weight) => {
            let what = format!("the policy gave the weight {weight}");
            Err(InputError::new("policy", what, "give finite, positive weights"))
        }
    }
}

/// Scales the weights to satisfy the constraint on their sum.
fn hold(weights: &mut [f64], sum: Sum, budget: Option<f64>) {
    let n = weights.len() as f64;
    match (sum, budget) {
        (Sum::Constant, budget) => shares(weights, budget.unwrap_or(n)),
        (Sum::AtMost, Some(budget)) if weights.iter().sum::<f64>() > budget => shares(weights, budget),
        (Sum::AtMost, _) => {}
    }
}

/// Scales the weights to the sum `total`, with each at least [`LEAST_SHARE`] of the mean.
fn shares(weights: &mut [f64], total: f64) {
    let least = LEAST_SHARE / weights.len() as f64;
    // Relative to the largest, so that no sum overflows.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    weights.iter_mut().for_each(|w| *w /= largest);
    let (mut small, mut others) = (0.0, weights.iter().sum::<f64>());
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    let mut raised = vec![false; weights.len()];
    for i in order {
        if weights[i] * (1.0 - least * small) >= least * others {
            break;
        }
        raised[i] = true;
        small += 1.0;
        others -= weights[i];
    }
    let rest = 1.0 - least * small;
    for (w, raised) in weights.iter_mut().zip(raised) {
        *w = total * if raised { least } else { *w / others * rest };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::NAMES;
    use crate::{Piece, Work, policies};
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn shares_keep_sum_order_and_least(
            raw in prop::collection::vec(1e-12..1e12f64, 1..40),
            total in 1e-3..1e3f64,
        ) {
            let mut weights = raw.clone();
            shares(&mut weights, total);
            let least = total * LEAST_SHARE / raw.len() as f64;
            prop_assert!((weights.iter().sum::<f64>() / total - 1.0).abs() < 1e-9);
            prop_assert!(weights.iter().all(|&w| w >= least * (1.0 - 1e-9)));
            for (i, j) in (1..raw.len()).map(|i| (i - 1, i)) {
                prop_assert!(raw[i] <= raw[j] || weights[i] >= weights[j] * (1.0 - 1e-12));
            }
        }

        /// Whatever happens to a job, every policy gives finite, positive weights within the budget.
        #[test]
        fn budgets_are_kept(
            sizes in prop::collection::vec(1u64..1_000_000_000_000, 1..12),
            budget in prop::option::of(0.1..100.0f64),
            events in prop::collection::vec((0usize..12, 0u64..2_000_000_000, 0.0..1.0f64, any::<bool>()), 1..40),
        ) {
            for name in NAMES {
                let policy = policies::read(&json!(name)).unwrap().make();
                let constant = policy.sum() == Sum::Constant;
                let pieces = sizes.iter().enumerate().map(|(i, &bytes)| Piece {
                    work: Work::Transfer { bytes, line_bps: 1e9, ends: [i as u32 % 2, 2] },
                    after: if i % 3 == 2 { vec![i - 1] } else { Vec::new() },
                });
                let mut keeper = Keeper::new(Job::new(pieces.collect()).unwrap(), policy, budget);
                let mut now_ns = 0;
                for &(i, later_ns, share, look) in &events {
                    now_ns += later_ns;
                    let i = i % sizes.len();
                    match keeper.progress[i].state {
                        TransferState::Waiting => keeper.started(i, now_ns),
                        TransferState::Running if share > 0.9 => keeper.ended(i),
                        _ => keeper.progressed(i, (sizes[i] as f64 * share) as u64, now_ns, look),
                    }
                    keeper.weigh(now_ns, look).unwrap();
                    let running = keeper.running();
                    let weights: Vec<f64> = running.iter().map(|&i| keeper.progress[i].weight).collect();
                    prop_assert!(weights.iter().all(|w| w.is_finite() && *w > 0.0), "{name}: {weights:?}");
                    let sum: f64 = weights.iter().sum();
                    let wanted = budget.unwrap_or(running.len() as f64);
                    if constant && !running.is_empty() {
                        prop_assert!((sum / wanted - 1.0).abs() < 1e-9, "{name}: {sum} of {wanted}");
                    }
                    prop_assert!(budget.is_none_or(|most| sum <= most * (1.0 + 1e-9)), "{name}: {sum}");
                }
            }
        }
    }
}
