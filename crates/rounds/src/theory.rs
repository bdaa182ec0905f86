//! Theory of a setup: its max-min rates, and bounds on the number of rounds.

use crate::setup::Setup;
use subak_core::scheme::Bound;
use subak_core::{FlowId, IdVec, LinkId, Offsets};
use subak_solve::max_min::{MaxMin, PathRows};
use subak_solve::wfk::{Degree, WaterFilling};

/// The rounds that `bound` allows on `setup`; `None` if it allows any number.
pub(crate) fn rounds_allowed(setup: &Setup, bound: Bound) -> Option<f64> {
    if bound == Bound::None { None } else { setup.bounded(bound).1 }
}

impl Setup {
    /// Levels of the water-filling algorithm WF^k (PERC thesis) whose iterations `bound` counts, and the rounds that
    /// it allows.
    pub fn bounded(&self, bound: Bound) -> (WaterFilling, Option<f64>) {
        let levels = self.levels(match bound {
            Bound::FourD => Degree::One,
            Bound::FourN => Degree::All,
            Bound::SixW2 | Bound::None => Degree::Two,
        });
        let rounds = match bound {
            Bound::FourD => Some(4.0 * levels.count as f64),
            Bound::FourN => Some(4.0 * levels.of_link.iter().filter(|&&n| n > 0).count() as f64),
            Bound::SixW2 => Some(6.0 * levels.count as f64),
            Bound::None => None,
        };
        (levels, rounds)
    }

    /// The exact max-min rates, bit/s, and a bottleneck link of each flow.
    pub fn exact(&self) -> (IdVec<FlowId, f64>, IdVec<FlowId, LinkId>) {
        let mut link_ptr = Offsets::<usize>::default();
        let mut links = Vec::new();
        for path in &self.paths {
            links.extend_from_slice(path);
            link_ptr.push(links.len());
        }
        let (capacity_bps, demand_bps) = (self.capacities_bps(), vec![f64::INFINITY; self.paths.len()]);
        let rows = PathRows {
            capacity_bps: &capacity_bps,
            link_ptr: link_ptr.raw(),
            links: &links,
            weight: &self.weights,
            demand_bps: &demand_bps,
            active: None,
        };
        let (mut rates, mut bottleneck) = (vec![0.0; self.paths.len()], vec![LinkId(0); self.paths.len()]);
        MaxMin::new().solve(&rows, &mut rates, &mut bottleneck);
        (rates.into(), bottleneck.into())
    }

    /// Runs the water-filling algorithm WF^k (PERC thesis) on this setup; `degree` is k.
    pub fn levels(&self, degree: Degree) -> WaterFilling {
        WaterFilling::run(&self.capacities_bps(), &self.paths, &self.weights, degree)
    }

    /// The dependency chain that determined the convergence time. The chain starts at the link that converged last
    /// and goes back, at each step to the precedent that converged last: a link of an earlier iteration on which the
    /// rate depends. `link_rounds[l]` is the round in which `l` converged.
    pub fn slowest_chain(&self, levels: &WaterFilling, link_rounds: &IdVec<LinkId, f64>) -> Vec<LinkId> {
        let later = |a: &LinkId, b: &LinkId| link_rounds[*a].total_cmp(&link_rounds[*b]).then(b.cmp(a));
        let bottlenecks = (1..=levels.count).flat_map(|n| levels.frozen_in(n));
        let Some(mut link) = bottlenecks.max_by(later) else { return Vec::new() };
        let mut chain = vec![link];
        while levels.of_link[link] > 1 {
            let n = levels.of_link[link] - 1;
            let before: Vec<LinkId> = match levels.degree {
                Degree::All => levels.frozen_in(n),
                _ => levels.precedents(&levels.link_rates(n), link).into_iter().map(|p| p.precedent).collect(),
            };
            let Some(next) = before.into_iter().max_by(later) else { break };
            link = next;
            chain.push(link);
        }
        chain.reverse();
        chain
    }
}
