//! Jobs of transfers and computations with dependencies, and the policies that set the weights of a job's transfers
//! while it runs (Soze, sections 3.4 and 5.1).
//!
//! A [`WeightPolicy`] is a pure state machine without clock or I/O. A [`Keeper`] tracks one job: it records starts,
//! progress and ends, applies the policy, enforces the job's budget, and returns the weights that change. Simulations
//! use it, and an agent on a host can too.

mod job;
mod keeper;
pub mod policies;
mod standing;

pub use job::{Job, Piece, Work};
pub use keeper::Keeper;
pub use standing::{JobStatus, TransferProgress, TransferState};

use subak_core::InputError;

/// Constraint on the sum of the weights of a job's running transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// The sum equals the budget; without a budget it equals the number of running transfers.
    Constant,
    /// The sum is at most the budget; without a budget it has no limit.
    AtMost,
}

/// Sets the weights of one job's transfers. The policy is called after every start and end of a transfer, and at
/// every sample of the progress, if the job is sampled.
pub trait WeightPolicy: Send {
    /// The constraint on the sum of the policy's weights.
    fn sum(&self) -> Sum;

    /// A weight for each running transfer, in the order of [`JobStatus::running`]. If the sum is constant, only the
    /// ratios matter. An error ends the run.
    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError>;
}
