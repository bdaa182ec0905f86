//! Normalizers (Flowtune, section 3): feasible rates from the rates of an iteration that has not converged.

use super::cluster::Cluster;
use super::kernels::CHUNK;
use super::real::Real;
use super::team::Team;

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

/// Number of links for each thread, below which one thread is as fast.
const LEAST: usize = 1024;

/// Load over capacity of each link, rounded up; 0 for a failed link, which has no load.
pub(super) fn ratios<T: Real>(cluster: &Cluster<T>, sums: &[[T; 2]], team: &Team) -> Vec<T> {
    let mut ratios = vec![T::ZERO; cluster.table()];
    let part = team.part(sums.len(), LEAST);
    let links =
        sums.chunks(part).zip(cluster.capacity.raw().chunks(part)).zip(cluster.slices.degree.raw().chunks(part));
    team.each(ratios.chunks_mut(part).zip(links), |(ratios, ((sums, capacity), degree))| {
        let links = sums.iter().zip(capacity).zip(degree);
        for (ratio, ((&[load, _], &capacity), &degree)) in ratios.iter_mut().zip(links) {
            let margin = T::of(margin::<T>(degree as usize));
            *ratio = if capacity > T::ZERO { load / capacity * margin } else { T::ZERO };
        }
    });
    ratios
}
