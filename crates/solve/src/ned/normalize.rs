//! Normalizers (Flowtune, section 3): feasible rates from the rates of an iteration that has not converged.

use super::cluster::Cluster;
use super::kernels::CHUNK;
use super::real::Real;

/// Normalization of rates to capacities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalizer {
    /// None.
    None,
    /// U-NORM, equation 5: all by the ratio of the fullest link.
    Uniform,
    /// F-NORM, equation 6: each flow by the ratio of the fullest link on its path.
    #[default]
    Flow,
}

/// Factor by which a sum of `terms` positive numbers is at least its exact value despite rounding.
#[inline(always)]
pub(super) fn margin<T: Real>(terms: usize) -> f64 {
    // A sum of n terms is off by n roundings at most; links sum up in chunks. Four more come with the divisions.
    1.0 + T::EPSILON.f64() / 2.0 * (CHUNK.min(terms) + terms / CHUNK + 5) as f64
}

/// Each link's load over its capacity, rounded up. A failed link has no load and the ratio zero.
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
