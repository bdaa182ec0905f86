//! Jobs: transfers and computations that wait for each other, and the policies that set the weights of a job's transfers
//! while it runs (Soze, sections 3.4 and 5.1).
//!
//! A [`WeightPolicy`] is a plain state machine without clock or I/O. A [`Keeper`] holds one job's state: it is told of starts,
//! progress and ends, asks the policy, keeps the job's budget, and answers with the weights that change. The backends of a
//! simulation use it, and so can an agent on a real host.

mod job;
mod keeper;
pub mod policies;
mod standing;

pub use job::{Job, Piece, Work};
pub use keeper::Keeper;
pub use standing::{JobStatus, TransferProgress, TransferState};

use subak_core::InputError;

/// Constraint on the sum of a job's running transfers' weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// To the budget; where the job has none, to the number of running transfers.
    Constant,
    /// To the budget at most; where the job has none, to anything.
    AtMost,
}

/// Sets the weights of one job's transfers. It is asked after every start and end of a transfer, and at every look at
/// the progress, if the job has looks.
pub trait WeightPolicy: Send {
    /// The constraint on the sum of its weights.
    fn sum(&self) -> Sum;

    /// A weight for each running transfer, in the order of [`JobStatus::running`]. Only their ratios matter where the sum is
    /// constant. Whoever answers with an error ends the run.
    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError>;
}
