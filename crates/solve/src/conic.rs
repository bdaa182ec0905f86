//! Linear and quadratic programs, solved by the interior-point solver Clarabel. Input: rows. Output: primal and dual
//! solution.

use crate::simplex;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

/// The program: minimize cost' x + x' quadratic x / 2 subject to rows x <= rhs.
#[derive(Default)]
pub(crate) struct Program {
    pub cost: Vec<f64>,
    /// Entries (row, column, value) of the upper triangle of the positive semidefinite matrix, by columns.
    pub quadratic: Vec<(usize, usize, f64)>,
    /// Entries (column, value) of each row.
    rows: Vec<Vec<(usize, f64)>>,
    rhs: Vec<f64>,
    /// Approximate largest slack of each row.
    room: Vec<f64>,
}

/// The solver's solution.
pub(crate) struct Solution {
    pub x: Vec<f64>,
    /// The dual of each row.
    pub dual: Vec<f64>,
    pub iterations: u64,
    pub solved: bool,
}

impl Program {
    /// Adds a variable with this cost; returns its number.
    pub fn variable(&mut self, cost: f64) -> usize {
        self.cost.push(cost);
        self.cost.len() - 1
    }

    /// Adds the row `row` x <= `rhs`, whose slack is at most about `room`; returns its number.
    pub fn at_most(&mut self, row: Vec<(usize, f64)>, rhs: f64, room: f64) -> usize {
        self.room.push(room);
        self.rows.push(row);
        self.rhs.push(rhs);
        self.rhs.len() - 1
    }

    fn matrix(&self) -> CscMatrix<f64> {
        let entries = || self.rows.iter().enumerate().flat_map(|(r, row)| row.iter().map(move |&(c, a)| (r, c, a)));
        columns(self.rows.len(), self.cost.len(), entries)
    }

    /// Solves to the relative gap and infeasibility `tolerance`, or as closely as possible.
    pub fn solve(&self, tolerance: f64) -> Solution {
        let n = self.cost.len();
        if n == 0 {
            return Solution { x: Vec::new(), dual: vec![0.0; self.rhs.len()], iterations: 0, solved: true };
        }
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .max_iter(400)
            .tol_gap_abs(tolerance * 1e-2)
            .tol_gap_rel(tolerance)
            // With a tighter tolerance, rounding errors look like backward steps and stop the solver.
            .tol_feas(tolerance.max(1e-11))
            .presolve_enable(false)
            .build();
        let failed = || Solution { x: vec![0.0; n], dual: vec![0.0; self.rhs.len()], iterations: 0, solved: false };
        let Ok(settings) = settings else { return failed() };
        let quadratic = columns(n, n, || self.quadratic.iter().copied());
        let cones = [SupportedConeT::NonnegativeConeT(self.rhs.len())];
        let Ok(mut solver) = DefaultSolver::new(&quadratic, &self.cost, &self.matrix(), &self.rhs, &cones, settings)
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
        let (mut x, mut dual) = (found.x.clone(), found.z.clone());
        if self.quadratic.is_empty() {
            self.polish(&mut x, &mut dual, &found.s);
        }
        Solution { x, dual, iterations: u64::from(found.iterations), solved }
    }

    /// Solves a small linear program with non-negative variables by the simplex method in double-double arithmetic. The
    /// solution is at a vertex.
    pub fn solve_exactly(&self) -> Solution {
        let found = simplex::solve(&self.cost, &self.rows, &self.rhs);
        let solved = found.is_some();
        let (x, dual) = found.unwrap_or_else(|| (vec![0.0; self.cost.len()], vec![0.0; self.rhs.len()]));
        Solution { x, dual, iterations: 0, solved }
    }

    /// Moves an interior solution of a linear program to the nearest face: rows whose dual exceeds their slack
    /// (relative to its bound) become equalities, the duals of the others become 0. Changes are minimal relative to
    /// the size of the variables.
    fn polish(&self, x: &mut [f64], dual: &mut [f64], slack: &[f64]) {
        let held: Vec<usize> = (0..self.rows.len()).filter(|&r| dual[r] > slack[r] / self.room[r]).collect();
        let value = |r: usize, x: &[f64]| self.rows[r].iter().map(|&(c, a)| a * x[c]).sum::<f64>();
        let mut at = x.to_vec();
        for _ in 0..POLISH {
            let miss: Vec<f64> = held.iter().map(|&r| self.rhs[r] - value(r, &at)).collect();
            let size: Vec<f64> = at.iter().map(|v| v * v).collect();
            let rows: Vec<&[(usize, f64)]> = held.iter().map(|&r| &self.rows[r][..]).collect();
            least_change(&rows, &size, &miss).into_iter().zip(&mut at).for_each(|(d, x)| *x += d);
        }
        let over = |x: &[f64]| (0..self.rows.len()).map(|r| value(r, x) - self.rhs[r]).fold(0.0, f64::max);
        let short = |x: &[f64]| held.iter().map(|&r| self.rhs[r] - value(r, x)).fold(0.0, f64::max);
        // The face is correct only if all other constraints still hold on it.
        if over(&at).max(short(&at)) <= 1e-12 && at.iter().all(|v| v.is_finite()) {
            x.copy_from_slice(&at);
        }
        let mut columns = vec![Vec::new(); self.cost.len()];
        for (k, &r) in held.iter().enumerate() {
            self.rows[r].iter().for_each(|&(c, a)| columns[c].push((k, a)));
        }
        let columns: Vec<&[(usize, f64)]> = columns.iter().map(|c| &c[..]).collect();
        let mut z: Vec<f64> = held.iter().map(|&r| dual[r]).collect();
        let miss = |z: &[f64]| -> Vec<f64> {
            let paid = |column: &&[(usize, f64)]| column.iter().map(|&(k, a)| a * z[k]).sum::<f64>();
            columns.iter().zip(&self.cost).map(|(column, cost)| -cost - paid(column)).collect()
        };
        for _ in 0..POLISH {
            let size: Vec<f64> = z.iter().map(|v| v * v).collect();
            least_change(&columns, &size, &miss(&z)).into_iter().zip(&mut z).for_each(|(d, z)| *z += d);
        }
        let worst = miss(&z).into_iter().fold(0.0, |a: f64, m| a.max(m.abs()));
        if worst <= 1e-12 && z.iter().all(|z| *z >= 0.0) {
            dual.fill(0.0);
            held.iter().zip(z).for_each(|(&r, z)| dual[r] = z);
        }
    }
}

/// A sparse matrix of `entries` (row, column, value) by columns, each in the order of rows.
fn columns<I: Iterator<Item = (usize, usize, f64)>>(rows: usize, n: usize, entries: impl Fn() -> I) -> CscMatrix<f64> {
    let mut start = vec![0; n + 1];
    entries().for_each(|(_, column, _)| start[column + 1] += 1);
    for column in 0..n {
        start[column + 1] += start[column];
    }
    let mut next = start.clone();
    let (mut row_of, mut value_of) = (vec![0; start[n]], vec![0.0; start[n]]);
    for (row, column, value) in entries() {
        (row_of[next[column]], value_of[next[column]]) = (row, value);
        next[column] += 1;
    }
    CscMatrix::new(rows, n, start, row_of, value_of)
}

/// Number of polishing rounds: the second corrects rounding errors of the first.
const POLISH: usize = 3;

/// The change d with rows d = miss that minimizes sum d_i^2 / size_i. It is d = S rows' y with (rows S rows') y =
/// miss, computed by conjugate gradients.
fn least_change(rows: &[&[(usize, f64)]], size: &[f64], miss: &[f64]) -> Vec<f64> {
    let spread = |y: &[f64]| {
        let mut d = vec![0.0; size.len()];
        rows.iter().zip(y).for_each(|(row, y)| row.iter().for_each(|&(c, a)| d[c] += a * y));
        d.iter_mut().zip(size).for_each(|(d, s)| *d *= s);
        d
    };
    let diagonal = |row: &&[(usize, f64)]| row.iter().map(|&(c, a)| a * a * size[c]).sum::<f64>();
    let inverse: Vec<f64> =
        rows.iter().map(|r| Some(diagonal(r)).filter(|d| *d > 0.0).map_or(0.0, |d| 1.0 / d)).collect();
    let (mut y, mut r) = (vec![0.0; rows.len()], miss.to_vec());
    let mut d: Vec<f64> = r.iter().zip(&inverse).map(|(r, m)| r * m).collect();
    let mut rho: f64 = r.iter().zip(&d).map(|(r, d)| r * d).sum();
    let enough = rho * 1e-24;
    for _ in 0..(3 * rows.len() + 30).min(1000) {
        if rho <= enough || rho == 0.0 {
            break;
        }
        let direction = spread(&d);
        let q: Vec<f64> = rows.iter().map(|row| row.iter().map(|&(c, a)| a * direction[c]).sum()).collect();
        let curvature: f64 = d.iter().zip(&q).map(|(d, q)| d * q).sum();
        if curvature <= 0.0 {
            break;
        }
        let step = rho / curvature;
        let mut next = 0.0;
        for i in 0..r.len() {
            y[i] += step * d[i];
            r[i] -= step * q[i];
            next += r[i] * r[i] * inverse[i];
        }
        for i in 0..r.len() {
            d[i] = r[i] * inverse[i] + next / rho * d[i];
        }
        rho = next;
    }
    spread(&y)
}
