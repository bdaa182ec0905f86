//! Options of the solvers.

/// The method that solves a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SolveMethod {
    /// This crate's method for the case's policy, such as water-filling or a Newton method.
    #[default]
    Own,
    /// The interior-point solver Clarabel, as an independent check.
    Clarabel,
}

/// Options of a solve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolveOptions {
    /// Method.
    pub method: SolveMethod,
    /// Largest value of [`Certificate::worst`](crate::Certificate::worst) with which an answer counts as optimal.
    pub tolerance: f64,
    /// Largest number of iterations of an iterative method.
    pub max_iterations: u64,
}

impl Default for SolveOptions {
    fn default() -> Self {
        SolveOptions { method: SolveMethod::Own, tolerance: 1e-8, max_iterations: 1000 }
    }
}
