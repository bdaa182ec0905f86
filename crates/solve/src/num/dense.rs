//! Dense symmetric positive definite matrix with Cholesky factorization.

/// Upper triangle of the matrix, row by row.
#[derive(Debug, Default)]
pub(super) struct Dense {
    n: usize,
    rows: Vec<f64>,
}

/// Smallest ratio of a pivot to its row's largest initial entry: a smaller pivot is a rounding error.
const LEAST_PIVOT: f64 = 1e-14;

impl Dense {
    /// Sets the matrix to a diagonal.
    pub fn reset(&mut self, diagonal: &[f64]) {
        self.n = diagonal.len();
        self.rows.clear();
        self.rows.resize(self.n * self.n, 0.0);
        for (i, value) in diagonal.iter().enumerate() {
            self.rows[i * self.n + i] = *value;
        }
    }

    /// Adds to one entry; entries below the diagonal are ignored.
    #[inline]
    pub fn add(&mut self, i: usize, j: usize, value: f64) {
        if i <= j {
            self.rows[i * self.n + j] += value;
        }
    }

    /// Solves "matrix times x = rhs" into `x`, overwriting the matrix. `scale` is one over the square root of each
    /// diagonal entry. If the matrix is singular up to rounding, undetermined entries of `x` are 0.
    pub fn solve(&mut self, scale: impl Fn(usize) -> f64, rhs: &[f64], x: &mut Vec<f64>) {
        let n = self.n;
        let scale: Vec<f64> = (0..n).map(scale).collect();
        for (i, row) in self.rows.chunks_exact_mut(n.max(1)).enumerate() {
            row.iter_mut().zip(&scale).for_each(|(value, s)| *value *= s * scale[i]);
        }
        let mut left = &mut self.rows[..];
        for i in 0..n {
            let (row, below) = left.split_at_mut(n);
            left = below;
            let pivot = if row[i] > LEAST_PIVOT { row[i].sqrt() } else { f64::INFINITY };
            row[i] = pivot;
            row[i + 1..].iter_mut().for_each(|value| *value /= pivot);
            for (k, other) in left.chunks_exact_mut(n).enumerate() {
                let j = i + 1 + k;
                let factor = row[j];
                if factor != 0.0 {
                    other[j..].iter_mut().zip(&row[j..]).for_each(|(value, own)| *value -= factor * own);
                }
            }
        }
        x.clear();
        x.extend(rhs.iter().zip(&scale).map(|(value, s)| value * s));
        for i in 0..n {
            let row = &self.rows[i * n..(i + 1) * n];
            x[i] /= row[i];
            let own = x[i];
            x[i + 1..].iter_mut().zip(&row[i + 1..]).for_each(|(value, factor)| *value -= factor * own);
        }
        for i in (0..n).rev() {
            let row = &self.rows[i * n..(i + 1) * n];
            let rest: f64 = row[i + 1..].iter().zip(&x[i + 1..]).map(|(factor, value)| factor * value).sum();
            x[i] = (x[i] - rest) / row[i];
        }
        x.iter_mut().zip(&scale).for_each(|(value, s)| *value *= s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_what_is_regular_and_leaves_out_what_is_not() {
        // Badly scaled: the first unknown is about a million times the others.
        let mut matrix = Dense::default();
        matrix.reset(&[4e-12, 3.0, 2.0]);
        [(0, 1, 2e-6), (1, 0, 2e-6), (1, 2, 1.0), (2, 1, 1.0)].iter().for_each(|&(i, j, v)| matrix.add(i, j, v));
        let root = [4e-12f64, 3.0, 2.0].map(|d| 1.0 / d.sqrt());
        let mut x = Vec::new();
        matrix.solve(|i| root[i], &[8e-6, 11.0, 8.0], &mut x);
        let miss = x.iter().zip([1e6, 2.0, 3.0]).map(|(x, right)| (x / right - 1.0).abs()).fold(0.0, f64::max);
        assert!(miss < 1e-12, "{x:?}");

        // The second row equals the first: the matrix is singular.
        matrix.reset(&[1.0, 1.0]);
        matrix.add(0, 1, 1.0);
        matrix.solve(|_| 1.0, &[2.0, 2.0], &mut x);
        assert_eq!(x, [2.0, 0.0]);
    }
}
