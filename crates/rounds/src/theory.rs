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

    /// The dependency chain that took the time: from the link that was right last, back through the levels, each time to
    /// the nearest link of the level before, the later of those equally near. `link_rounds[l]` is when `l` was right.
    pub fn slowest_chain(&self, levels: &Levels, link_rounds: &[f64]) -> Vec<LinkId> {
        let bottlenecks = (0..self.wires.len()).filter(|&l| levels.of_link[l] > 0);
        let later = |&a: &usize, &b: &usize| link_rounds[a].total_cmp(&link_rounds[b]).then(b.cmp(&a));
        let Some(mut link) = bottlenecks.max_by(later) else { return Vec::new() };
        let mut chain = vec![link as LinkId];
        while levels.of_link[link] > 1 {
            let wanted = levels.of_link[link] - 1;
            let distance = self.distances(link);
            let before = (0..self.wires.len()).filter(|&l| levels.of_link[l] == wanted && distance[l] < usize::MAX);
            let nearer = |a: &usize, b: &usize| distance[*a].cmp(&distance[*b]).then(later(b, a));
            let Some(next) = before.min_by(nearer) else { break };
            link = next;
            chain.push(link as LinkId);
        }
        chain.reverse();
        chain
    }

    /// Steps from a link to every other, one step between links that share a flow.
    fn distances(&self, from: usize) -> Vec<usize> {
        let mut distance = vec![usize::MAX; self.wires.len()];
        distance[from] = 0;
        for step in 1.. {
            let reached = |path: &&Vec<LinkId>| path.iter().any(|&l| distance[l as usize] == step - 1);
            let paths: Vec<_> = self.paths.iter().filter(reached).collect();
            let mut news = false;
            for &l in paths.into_iter().flatten() {
                if distance[l as usize] == usize::MAX {
                    distance[l as usize] = step;
                    news = true;
                }
            }
            if !news {
                break;
            }
        }
        distance
    }
}
