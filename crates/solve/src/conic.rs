//! Conic programs, by the interior-point solver Clarabel: rows in, primal and dual out.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

pub(crate) use clarabel::solver::SupportedConeT as Cone;

/// minimize cost' x subject to rhs - rows x in the cones, which the rows follow in order.
#[derive(Default)]
pub(crate) struct Program {
    pub cost: Vec<f64>,
    /// Entries (column, value) of each row.
    rows: Vec<Vec<(usize, f64)>>,
    rhs: Vec<f64>,
    cones: Vec<SupportedConeT<f64>>,
}

/// What the solver found.
pub(crate) struct Solution {
    pub x: Vec<f64>,
    /// The dual of each row.
    pub dual: Vec<f64>,
    pub iterations: u64,
    pub solved: bool,
}

impl Program {
    /// A variable of the given cost.
    pub fn variable(&mut self, cost: f64) -> usize {
        self.cost.push(cost);
        self.cost.len() - 1
    }

    /// Adds one row; `at_most` rows make up one cone with the ones before. Returns its number.
    pub fn at_most(&mut self, row: Vec<(usize, f64)>, rhs: f64) -> usize {
        if let Some(SupportedConeT::NonnegativeConeT(n)) = self.cones.last_mut() {
            *n += 1;
        } else {
            self.cones.push(SupportedConeT::NonnegativeConeT(1));
        }
        self.push(row, rhs)
    }

    /// Adds the rows of one cone.
    pub fn cone(&mut self, cone: SupportedConeT<f64>, rows: impl IntoIterator<Item = (Vec<(usize, f64)>, f64)>) {
        self.cones.push(cone);
        for (row, rhs) in rows {
            self.push(row, rhs);
        }
    }

    fn push(&mut self, row: Vec<(usize, f64)>, rhs: f64) -> usize {
        self.rows.push(row);
        self.rhs.push(rhs);
        self.rhs.len() - 1
    }

    fn matrix(&self) -> CscMatrix<f64> {
        let n = self.cost.len();
        let mut start = vec![0; n + 1];
        self.rows.iter().flatten().for_each(|&(column, _)| start[column + 1] += 1);
        for column in 0..n {
            start[column + 1] += start[column];
        }
        let mut next = start.clone();
        let (mut row_of, mut value_of) = (vec![0; start[n]], vec![0.0; start[n]]);
        for (r, row) in self.rows.iter().enumerate() {
            for &(column, value) in row {
                (row_of[next[column]], value_of[next[column]]) = (r, value);
                next[column] += 1;
            }
        }
        CscMatrix::new(self.rows.len(), n, start, row_of, value_of)
    }

    /// Solves to a relative gap and infeasibility of `tolerance`; what it could reach where it cannot.
    pub fn solve(&self, tolerance: f64) -> Solution {
        let n = self.cost.len();
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .max_iter(400)
            .tol_gap_abs(tolerance * 1e-2)
            .tol_gap_rel(tolerance)
            .tol_feas(tolerance)
            .presolve_enable(false)
            .build();
        let failed = || Solution { x: vec![0.0; n], dual: vec![0.0; self.rhs.len()], iterations: 0, solved: false };
        let Ok(settings) = settings else { return failed() };
        let none = CscMatrix::<f64>::zeros((n, n));
        let Ok(mut solver) = DefaultSolver::new(&none, &self.cost, &self.matrix(), &self.rhs, &self.cones, settings)
        else {
            return failed();
        };
        solver.solve();
        let found = &solver.solution;
        let solved = matches!(found.status, SolverStatus::Solved | SolverStatus::AlmostSolved)
            || found.status == SolverStatus::InsufficientProgress;
        if found.x.iter().chain(&found.z).any(|v| !v.is_finite()) {
            return failed();
        }
        Solution { x: found.x.clone(), dual: found.z.clone(), iterations: u64::from(found.iterations), solved }
    }
}
