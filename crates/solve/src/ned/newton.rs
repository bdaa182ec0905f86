//! The full Newton method (Flowtune, appendix B): the whole Hessian, solved by conjugate gradients with NED's
//! diagonal as preconditioner. Links at price zero with spare capacity stay out of the system. It converges in few,
//! expensive steps; far from the optimum it may cycle, since it has no line search.

use super::real::Real;
use super::{LawInput, PriceUpdate};

/// Largest number of conjugate gradient rounds.
const MOST_ROUNDS: usize = 200;

/// Newton's method on the dual.
#[derive(Debug, Clone, Copy)]
pub struct Newton {
    gamma: f64,
}

impl Default for Newton {
    fn default() -> Self {
        Newton { gamma: 1.0 }
    }
}

impl Newton {
    /// Sets the fraction of each step that is taken.
    pub fn with_gamma(gamma: f64) -> Self {
        Newton { gamma }
    }
}

impl<T: Real> PriceUpdate<T> for Newton {
    fn update(&mut self, seen: &LawInput<'_, T>, price: &mut [T]) {
        let gap = |l: usize| seen.sums[l][0].f64() - seen.capacity[l].f64();
        let free = |l: usize| seen.capacity[l] > T::ZERO && seen.sums[l][1] > T::TINY;
        let moves: Vec<bool> = (0..price.len()).map(|l| free(l) && (price[l] > T::ZERO || gap(l) > 0.0)).collect();
        let right: Vec<f64> = (0..price.len()).map(|l| if moves[l] { gap(l) } else { 0.0 }).collect();
        let change = conjugate_gradients(seen, &moves, &right);
        let mean = |l: usize| seen.sums[l][0].f64() / seen.sums[l][1].f64();
        // The whole step is shortened so that no price changes by more than its flows' mean path price, which is
        // NED's upper bound.
        let reach = |l: usize| (mean(l) / change[l].abs()).min(1.0);
        let length = self.gamma * (0..price.len()).filter(|&l| moves[l]).map(reach).fold(1.0, f64::min);
        for (l, price) in price.iter_mut().enumerate().filter(|(l, _)| moves[*l]) {
            let mean = mean(l);
            let moved = (price.f64() + length * change[l]).max(0.25 * price.f64());
            *price = T::of(if moved > T::EPSILON.f64() * mean { moved } else { 0.0 });
        }
    }
}

/// (H + a small multiple of its diagonal)^-1 `right`, on the links that `moves` selects.
fn conjugate_gradients<T: Real>(seen: &LawInput<'_, T>, moves: &[bool], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let diagonal: Vec<f64> = seen.sums.iter().map(|s| s[1].f64().max(f64::MIN_POSITIVE)).collect();
    let (mut x, mut residual) = (vec![0.0; n], right.to_vec());
    let precondition = |r: &[f64]| -> Vec<f64> { r.iter().zip(&diagonal).map(|(r, d)| r / d).collect() };
    let mut z = precondition(&residual);
    let (mut p, mut rz) = (z.clone(), dot(&residual, &z));
    let target = 1e-12 * rz;
    let (mut narrow, mut product) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    for _ in 0..MOST_ROUNDS {
        if rz <= target {
            break;
        }
        narrow.iter_mut().zip(&p).for_each(|(narrow, &p)| *narrow = T::of(p));
        seen.hessian_times(&narrow, &mut product);
        let hp: Vec<f64> =
            (0..n).map(|l| if moves[l] { product[l].f64() + 1e-6 * diagonal[l] * p[l] } else { 0.0 }).collect();
        let curvature = dot(&p, &hp);
        if curvature.is_nan() || curvature <= 0.0 {
            break;
        }
        let length = rz / curvature;
        for l in 0..n {
            x[l] += length * p[l];
            residual[l] -= length * hp[l];
        }
        z = precondition(&residual);
        let next = dot(&residual, &z);
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + next / rz * *p);
        rz = next;
    }
    x
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
