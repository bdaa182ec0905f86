//! Normalizers (Flowtune, section 3): feasible rates from the rates of an iteration that has not converged.

use super::cluster::Cluster;
use super::kernels::CHUNK;
use super::real::Real;

/// Normalization of rates to capacities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalizer {
    /// No normalization.
    None,
    /// U-NORM, equation 5: divides all rates by the load ratio of the most loaded link.
    Uniform,
    /// F-NORM, equation 6: divides each rate by the load ratio of the most loaded link on its path.
    #[default]
    Flow,
}

/// Factor that makes a floating-point sum of `terms` positive numbers at least their exact sum.
#[inline(always)]
pub(super) fn margin<T: Real>(terms: usize) -> f64 {
    // A sum of n terms has at most n rounding errors, fewer in chunks. The divisions add four more.
    1.0 + T::EPSILON.f64() / 2.0 * (CHUNK.min(terms) + terms / CHUNK + 5) as f64
}

/// Load over capacity of each link, rounded up; 0 for a failed link, which has no load.
#[inline(always)]
pub(super) fn ratios<T: Real>(cluster: &Cluster<T>, sums: &[[T; 2]]) -> Vec<T> {
    let mut ratios = vec![T::ZERO; cluster.table()];
    let links = sums.iter().zip(&cluster.capacity).zip(&cluster.slices.degree);
    for (ratio, ((&[load, _], &capacity), &degree)) in ratios.iter_mut().zip(links) {
        let margin = T::of(margin::<T>(degree as usize));
        *ratio = if capacity > T::ZERO { load / capacity * margin } else { T::ZERO };
    }
    ratios
}
