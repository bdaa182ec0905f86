//! Options of the solvers.

/// Which method solves the case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SolveMethod {
    /// The method of our own that fits the policy.
    #[default]
    Own,
    /// The interior-point solver Clarabel, as an independent second opinion.
    Clarabel,
}

/// Options of a solve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolveOptions {
    /// By which method.
    pub method: SolveMethod,
    /// A certificate whose every number is at most this counts as optimal.
    pub tolerance: f64,
    /// Iterations after which an iterative method stops and says how far it got.
    pub max_iterations: u64,
}

impl Default for SolveOptions {
    fn default() -> Self {
        SolveOptions { method: SolveMethod::Own, tolerance: 1e-8, max_iterations: 1000 }
    }
}
