//! Simplex method in double-double arithmetic: solutions of linear programs at a vertex, exact up to the rounding of
//! the result. The solvers use it where numbers differ by so many orders of magnitude that an interior-point solution
//! is inaccurate. The tableau is dense, so that only small programs are solved.

use crate::double_double::DoubleDouble;
use std::cmp::Ordering;

/// Largest number of entries of a tableau.
const MOST_ENTRIES: usize = 20_000;

/// Largest number of pivots.
const MOST_STEPS: usize = 5_000;

/// Phase 1 maximizes a factor of the negative right-hand sides from 0 to 1 (the feasibility variable). The program
/// counts as feasible if the maximum is within this distance of 1, since right-hand sides have rounding errors.
const ROUNDING: f64 = 1e-15;

/// The tableau without its unit columns: each row expresses a basic variable by the others.
struct Tableau {
    entries: Vec<Vec<DoubleDouble>>,
    rhs: Vec<DoubleDouble>,
    /// Reduced costs of the nonbasic variables: for phase 1 (feasibility), then for the program's objective.
    gains: [Vec<DoubleDouble>; 2],
    /// Basic variables. Numbering: those of the program, the feasibility variable, then one slack per row.
    basic: Vec<usize>,
    outside: Vec<usize>,
}

/// Minimizes cost' x over x >= 0 with rows x <= rhs. Returns x and the duals of the rows. `None` if the program is
/// too large, has a number that is not finite, is infeasible or is unbounded.
pub(crate) fn solve(cost: &[f64], rows: &[Vec<(usize, f64)>], rhs: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
    let numbers = || cost.iter().chain(rhs).chain(rows.iter().flatten().map(|(_, a)| a));
    if numbers().any(|x| !x.is_finite()) {
        return None;
    }
    // A row with only negative entries is implied by x >= 0.
    let real: Vec<usize> = (0..rows.len()).filter(|&r| rhs[r] < 0.0 || rows[r].iter().any(|e| e.1 > 0.0)).collect();
    let (n, m) = (cost.len(), real.len());
    if (m + 1) * (n + 1) > MOST_ENTRIES {
        return None;
    }
    // Negative right-hand sides are multiplied by a feasibility variable, which phase 1 maximizes from 0 to 1.
    let mut entries = vec![vec![DoubleDouble::default(); n + 1]; m + 1];
    for (entries, &r) in entries.iter_mut().zip(&real) {
        rows[r].iter().for_each(|&(c, a)| entries[c] += a.into());
        entries[n] = DoubleDouble::from((-rhs[r]).max(0.0));
    }
    entries[m][n] = 1.0.into();
    let unit = cost.iter().fold(f64::MIN_POSITIVE, |a: f64, c| a.max(c.abs()));
    let mut gains = [vec![DoubleDouble::default(); n + 1], vec![DoubleDouble::default(); n + 1]];
    gains[0][n] = 1.0.into();
    cost.iter().zip(&mut gains[1]).for_each(|(c, gain)| *gain = DoubleDouble::from(-c) / unit.into());
    let right = real.iter().map(|&r| rhs[r].max(0.0)).chain([1.0]).map(DoubleDouble::from).collect();
    let mut tableau =
        Tableau { entries, rhs: right, gains, basic: (n + 1..n + m + 2).collect(), outside: (0..=n).collect() };
    tableau.run()?;
    if tableau.value(n) < 1.0 - ROUNDING {
        return None;
    }
    let mut duals = vec![0.0; rows.len()];
    real.iter().zip(tableau.duals(n, m)).for_each(|(&r, y)| duals[r] = y * unit);
    Some((tableau.solution(n), duals))
}

impl Tableau {
    /// Pivots until the optimum. Degenerate pivots follow Bland's rule, so that no basis repeats.
    fn run(&mut self) -> Option<()> {
        let mut stays = false;
        for _ in 0..MOST_STEPS {
            let Some(column) = self.entering(stays) else { return Some(()) };
            let row = self.leaving(column)?;
            stays = self.rhs[row].is_zero();
            self.pivot(row, column);
        }
        None
    }

    fn entering(&self, first: bool) -> Option<usize> {
        let gains = |j: &usize| {
            let gain = self.gains[0][*j];
            gain.is_positive() || gain.is_zero() && self.gains[1][*j].is_positive()
        };
        let candidates = (0..self.outside.len()).filter(gains);
        if first {
            return candidates.min_by_key(|&j| self.outside[j]);
        }
        let more = |a: &usize, b: &usize| {
            let by = |k: usize| self.gains[k][*a].0.total_cmp(&self.gains[k][*b].0);
            by(0).then(by(1)).then(self.outside[*b].cmp(&self.outside[*a]))
        };
        candidates.max_by(more)
    }

    fn leaving(&self, column: usize) -> Option<usize> {
        let ratio = |i: usize| self.rhs[i] / self.entries[i][column];
        let order = |&a: &usize, &b: &usize| match (ratio(a), ratio(b)) {
            (x, y) if x.below(y) => Ordering::Less,
            (x, y) if y.below(x) => Ordering::Greater,
            _ => self.basic[a].cmp(&self.basic[b]),
        };
        (0..self.basic.len()).filter(|&i| self.entries[i][column].is_positive()).min_by(order)
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let pivot = self.entries[row][column];
        let mut with = std::mem::take(&mut self.entries[row]);
        with[column] = 1.0.into();
        with.iter_mut().for_each(|a| *a = *a / pivot);
        let rhs = self.rhs[row] / pivot;
        let eliminate = |entries: &mut [DoubleDouble]| {
            let factor = std::mem::take(&mut entries[column]);
            if factor != DoubleDouble::default() {
                entries.iter_mut().zip(&with).for_each(|(a, b)| *a -= factor * *b);
            }
            factor
        };
        for (entries, value) in self.entries.iter_mut().zip(&mut self.rhs).filter(|(e, _)| !e.is_empty()) {
            *value -= eliminate(entries) * rhs;
        }
        self.gains.iter_mut().for_each(|gains| {
            eliminate(gains);
        });
        self.entries[row] = with;
        self.rhs[row] = rhs;
        std::mem::swap(&mut self.basic[row], &mut self.outside[column]);
    }

    fn solution(&self, n: usize) -> Vec<f64> {
        let mut x = vec![0.0; n];
        for (&variable, value) in self.basic.iter().zip(&self.rhs) {
            if variable < n {
                x[variable] = value.0.max(0.0);
            }
        }
        x
    }

    /// Value of `variable`: zero unless it is basic.
    fn value(&self, variable: usize) -> f64 {
        self.basic.iter().position(|&v| v == variable).map_or(0.0, |row| self.rhs[row].0)
    }

    /// Duals of the rows, from the reduced costs of the objective. To these is added the smallest multiple of phase 1's
    /// reduced costs with which no nonbasic variable would improve the objective.
    fn duals(&self, n: usize, m: usize) -> Vec<f64> {
        let [feasible, gain] = &self.gains;
        let needed = |j: usize| if feasible[j].is_zero() { 0.0 } else { (gain[j] / -feasible[j]).0 };
        let share = DoubleDouble::from((0..self.outside.len()).map(needed).fold(0.0, f64::max));
        let mut duals = vec![0.0; m];
        for (j, &variable) in self.outside.iter().enumerate() {
            if variable > n && variable <= n + m {
                duals[variable - n - 1] = (-(gain[j] + share * feasible[j])).0.max(0.0);
            }
        }
        duals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_by_hand() {
        // max x + 2 y with x + y <= 4, x + 3 y <= 6: at (3, 1), where the duals are both one half.
        let rows = [vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0), (1, 3.0)], vec![(0, -1.0)]];
        let (x, dual) = solve(&[-1.0, -2.0], &rows, &[4.0, 6.0, 0.0]).unwrap();
        assert_eq!((x, dual), (vec![3.0, 1.0], vec![0.5, 0.5, 0.0]));
    }

    #[test]
    fn what_must_be_counts_before_what_pays() {
        // max x with x + y <= 4 and y >= 3.
        let rows = [vec![(0, 1.0), (1, 1.0)], vec![(1, -1.0)]];
        let (x, dual) = solve(&[-1.0, 0.0], &rows, &[4.0, -3.0]).unwrap();
        assert_eq!((x, dual), (vec![1.0, 3.0], vec![1.0, 1.0]));
    }

    #[test]
    fn no_end_and_too_large() {
        assert!(solve(&[-1.0], &[vec![(0, -1.0)]], &[0.0]).is_none());
        assert!(solve(&vec![-1.0; 200], &vec![vec![(0, 1.0)]; 200], &vec![1.0; 200]).is_none());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        // x <= 1 and x >= 2; and sums that contradict each other.
        assert!(solve(&[-1.0], &[vec![(0, 1.0)], vec![(0, -1.0)]], &[1.0, -2.0]).is_none());
        let sums = [vec![(0, 1.0), (1, 1.0)], vec![(0, -1.0), (1, -1.0)]];
        assert!(solve(&[0.0, 0.0], &sums, &[1.0, -1.0 - 1e-9]).is_none());
        assert!(solve(&[0.0, 0.0], &sums, &[0.3, -0.1 - 0.2]).is_some());
        assert!(solve(&[f64::NAN], &[vec![(0, 1.0)]], &[1.0]).is_none());
        assert!(solve(&[1.0], &[vec![(0, f64::INFINITY)]], &[1.0]).is_none());
    }

    /// The determinant of `matrix`.
    fn determinant(matrix: &[Vec<i64>]) -> i64 {
        let minor = |column: usize| -> Vec<Vec<i64>> {
            let without = |row: &Vec<i64>| [&row[..column], &row[column + 1..]].concat();
            matrix[1..].iter().map(without).collect()
        };
        match matrix {
            [] => 1,
            [first, ..] => (first.iter().enumerate())
                .map(|(j, a)| if j % 2 == 0 { a * determinant(&minor(j)) } else { -a * determinant(&minor(j)) })
                .sum(),
        }
    }

    /// All vertices of x >= 0 with rows x <= rhs, each as numerators and a denominator. For every choice of as many
    /// equalities as there are variables, Cramer's rule in integers gives one.
    fn vertices(rows: &[Vec<i64>], rhs: &[i64], n: usize) -> Vec<(Vec<i64>, i64)> {
        let unit = |j: usize| (0..n).map(|k| -i64::from(j == k)).collect::<Vec<i64>>();
        let rows: Vec<Vec<i64>> = rows.iter().cloned().chain((0..n).map(unit)).collect();
        let rhs: Vec<i64> = rhs.iter().copied().chain(vec![0; n]).collect();
        let mut found = Vec::new();
        for chosen in (0..1_u32 << rows.len()).filter(|chosen| chosen.count_ones() as usize == n) {
            let held: Vec<usize> = (0..rows.len()).filter(|r| chosen >> r & 1 == 1).collect();
            let matrix: Vec<Vec<i64>> = held.iter().map(|&r| rows[r].clone()).collect();
            let below = determinant(&matrix);
            if below == 0 {
                continue;
            }
            let at = |j: usize| -> i64 {
                let mut matrix = matrix.clone();
                matrix.iter_mut().zip(&held).for_each(|(row, &r)| row[j] = rhs[r]);
                determinant(&matrix) * below.signum()
            };
            let (x, below): (Vec<i64>, i64) = ((0..n).map(at).collect(), below.abs());
            let holds = |r: usize| rows[r].iter().zip(&x).map(|(a, x)| a * x).sum::<i64>() <= rhs[r] * below;
            if (0..rows.len()).all(holds) {
                found.push((x, below));
            }
        }
        found
    }

    /// Minimum cost over all vertices; `None` if the program is infeasible or unbounded.
    fn by_vertices(cost: &[i64], rows: &[Vec<i64>], rhs: &[i64]) -> Option<f64> {
        let n = cost.len();
        let of = |x: &[i64]| cost.iter().zip(x).map(|(c, x)| c * x).sum::<i64>();
        // Unbounded: there is a direction, with entries that sum to at most 1, along which every row still holds and
        // the cost decreases.
        let bounded: Vec<Vec<i64>> = rows.iter().cloned().chain([vec![1; n]]).collect();
        let ahead: Vec<i64> = vec![0; rows.len()].into_iter().chain([1]).collect();
        if vertices(&bounded, &ahead, n).iter().any(|(x, _)| of(x) < 0) {
            return None;
        }
        let costs = vertices(rows, rhs, n).into_iter().map(|(x, below)| of(&x) as f64 / below as f64);
        costs.min_by(f64::total_cmp)
    }

    #[test]
    fn as_every_vertex_tried() {
        let mut rng = subak_core::rng::Stream::new(1, "programs");
        let (mut solved, mut refused) = (0, 0);
        for _ in 0..10_000 {
            let (n, m) = (1 + rng.below(3), 1 + rng.below(5));
            let mut draw = |low: i64, high: i64| low + rng.below((high - low + 1) as usize) as i64;
            let cost: Vec<i64> = (0..n).map(|_| draw(-3, 3)).collect();
            let rows: Vec<Vec<i64>> = (0..m).map(|_| (0..n).map(|_| draw(-3, 3)).collect()).collect();
            let rhs: Vec<i64> = (0..m).map(|_| draw(-4, 6)).collect();
            let sparse: Vec<Vec<(usize, f64)>> =
                rows.iter().map(|row| row.iter().map(|&a| a as f64).enumerate().collect()).collect();
            let floats = |v: &[i64]| v.iter().map(|&x| x as f64).collect::<Vec<f64>>();
            let found = solve(&floats(&cost), &sparse, &floats(&rhs));
            let Some(least) = by_vertices(&cost, &rows, &rhs) else {
                assert_eq!(found, None, "{cost:?} {rows:?} {rhs:?}");
                refused += 1;
                continue;
            };
            let (x, duals) = found.unwrap_or_else(|| panic!("{cost:?} {rows:?} {rhs:?} has {least}"));
            let product = |a: &[i64], x: &[f64]| a.iter().zip(x).map(|(a, x)| *a as f64 * x).sum::<f64>();
            assert!((product(&cost, &x) - least).abs() < 1e-12, "{cost:?} {rows:?} {rhs:?}: {x:?}, not {least}");
            assert!(
                x.iter().all(|x| *x >= 0.0) && rows.iter().zip(&rhs).all(|(a, b)| product(a, &x) <= *b as f64 + 1e-12)
            );
            // The duals prove the optimum: they are feasible, and their objective is equal.
            assert!(duals.iter().all(|y| *y >= 0.0));
            assert!((product(&rhs, &duals) + least).abs() < 1e-12, "{cost:?} {rows:?} {rhs:?}: {duals:?}");
            for j in 0..n {
                let column: Vec<i64> = rows.iter().map(|row| row[j]).collect();
                assert!(cost[j] as f64 + product(&column, &duals) > -1e-12, "{cost:?} {rows:?} {rhs:?}: {duals:?}");
            }
            solved += 1;
        }
        assert!(solved > 3000 && refused > 3000, "{solved} solved, {refused} refused");
    }

    #[test]
    fn twenty_orders_apart() {
        // Right-hand sides differ by 20 orders of magnitude: x0 = 1 leaves nothing for x1 and x2.
        let rows = [vec![(0, 1.0)], vec![(0, 1.0), (1, 1.0), (2, 1.0)], vec![(2, 1.0)]];
        let (x, _) = solve(&[-1.0, -1e-6, -1e-3], &rows, &[1.0, 1.0, 1e-20]).unwrap();
        assert_eq!(x, [1.0, 0.0, 0.0]);
        let product = DoubleDouble::from(1.0 / 3.0) * DoubleDouble::from(3.0);
        assert_eq!((product / DoubleDouble::from(3.0)).0, 1.0 / 3.0);
        assert!((DoubleDouble::from(1.0) + DoubleDouble::from(1e-20) - DoubleDouble::from(1.0)).0 == 1e-20);
    }
}
