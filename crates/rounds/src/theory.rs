//! What theory says of a setup: its max-min rates, and the rounds a scheme may take.

use crate::levels::{Levels, Reach, water_fill};
use crate::setup::Setup;
use subak_core::LinkId;
use subak_solve::max_min::{MaxMin, Rows};

/// The bound proven for a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// 4 rounds for each iteration of WF1 (theorem 2.6.1).
    FourD,
    /// 4 rounds for each bottleneck link (section 2.7).
    FourN,
    /// 6 rounds for each iteration of WF2 (theorem 3.4.4).
    SixW2,
    /// None is known.
    None,
}

impl Bound {
    /// The bound of the scheme called `name`.
    pub fn of(name: &str) -> Self {
        match name {
            "fair" => Bound::FourD,
            "charny" => Bound::FourN,
            "s-perc" | "s-perc-star" => Bound::SixW2,
            _ => Bound::None,
        }
    }

    /// How far its levels look.
    pub fn reach(self) -> Reach {
        match self {
            Bound::FourD => Reach::One,
            Bound::FourN => Reach::All,
            Bound::SixW2 | Bound::None => Reach::Two,
        }
    }

    /// Rounds allowed, given the levels at [`Bound::reach`].
    pub fn rounds(self, levels: &Levels) -> Option<f64> {
        match self {
            Bound::FourD => Some(4.0 * levels.count as f64),
            Bound::FourN => Some(4.0 * levels.of_link.iter().filter(|&&n| n > 0).count() as f64),
            Bound::SixW2 => Some(6.0 * levels.count as f64),
            Bound::None => None,
        }
    }
}

impl Setup {
    /// The exact max-min rates, bit/s, and a bottleneck link of each flow.
    pub fn exact(&self) -> (Vec<f64>, Vec<LinkId>) {
        let mut link_ptr = vec![0u32];
        let mut links = Vec::new();
        for path in &self.paths {
            links.extend_from_slice(path);
            link_ptr.push(links.len() as u32);
        }
        let (capacity_bps, demand_bps) = (self.capacities_bps(), vec![f64::INFINITY; self.paths.len()]);
        let rows = Rows {
            capacity_bps: &capacity_bps,
            link_ptr: &link_ptr,
            links: &links,
            weight: &self.weights,
            demand_bps: &demand_bps,
            active: None,
        };
        let (mut rates, mut bottleneck) = (vec![0.0; self.paths.len()], vec![0; self.paths.len()]);
        MaxMin::new().solve(&rows, &mut rates, &mut bottleneck);
        (rates, bottleneck)
    }

    /// The partition of WF^k.
    pub fn levels(&self, reach: Reach) -> Levels {
        water_fill(&self.capacities_bps(), &self.paths, &self.weights, reach)
    }

    /// The links' rates in iteration `n`, from 1, of the water-filling that gave `levels`: what flows frozen before left,
    /// per unit of weight; infinite for a link without flows left.
    pub fn link_rates(&self, levels: &Levels, n: usize) -> Vec<f64> {
        let (mut left, mut weight) = (self.capacities_bps(), vec![0.0; self.wires.len()]);
        for (f, path) in self.paths.iter().enumerate() {
            for &l in path {
                match levels.of_flow[f] < n {
                    true => left[l as usize] -= levels.rate[f] * self.weights[f],
                    false => weight[l as usize] += self.weights[f],
                }
            }
        }
        let rate = |(left, weight): (f64, f64)| if weight > 0.0 { (left / weight).max(0.0) } else { f64::INFINITY };
        left.into_iter().zip(weight).map(rate).collect()
    }

    /// The dependency chain that took the time: from the link that was right last, back through the precedents, each time
    /// to the one that was right last itself. `link_rounds[l]` is when `l` was right.
    pub fn slowest_chain(&self, levels: &Levels, reach: Reach, link_rounds: &[f64]) -> Vec<LinkId> {
        let later =
            |a: &LinkId, b: &LinkId| link_rounds[*a as usize].total_cmp(&link_rounds[*b as usize]).then(b.cmp(a));
        let frozen_in = |n: usize| {
            let links = 0..self.wires.len() as LinkId;
            links.filter(move |&l| levels.of_link[l as usize] == n)
        };
        let bottlenecks = (1..=levels.count).flat_map(frozen_in);
        let Some(mut link) = bottlenecks.max_by(later) else { return Vec::new() };
        let mut chain = vec![link];
        while levels.of_link[link as usize] > 1 {
            let before: Vec<LinkId> = match reach {
                Reach::All => frozen_in(levels.of_link[link as usize] - 1).collect(),
                _ => {
                    let rates = self.link_rates(levels, levels.of_link[link as usize] - 1);
                    let precedents = levels.precedents(&self.paths, &rates, link, reach == Reach::Two);
                    precedents.into_iter().map(|p| p.link).collect()
                }
            };
            let Some(next) = before.into_iter().max_by(later) else { break };
            link = next;
            chain.push(link);
        }
        chain.reverse();
        chain
    }
}
