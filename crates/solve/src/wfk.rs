//! The WF^k algorithms (PERC thesis, Algorithm 7; section 3.4): water-filling that freezes links in parallel.
//!
//! In each iteration a link freezes, with its flows, if its rate (its remaining capacity per unit of weight) is the
//! lowest among its neighbors up to degree k. k = 1 is the CPG algorithm (Algorithm 3); the number of iterations at
//! k = 2 bounds the convergence time of s-PERC; k = infinity is classic water-filling. A flow of weight w counts as w flows. Flows and links are removed after the loop over links;
//! links without flows are removed too.

use subak_core::{FlowId, IdVec, LinkId};

/// Degree k of WF^k: a link freezes if its rate is the lowest among these links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Degree {
    /// First-degree neighbors: links that share a flow with the link.
    One,
    /// Second-degree neighbors too: the neighbors of first-degree neighbors.
    Two,
    /// All links.
    All,
}

impl Degree {
    /// Name of the degree in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Degree::One => "1",
            Degree::Two => "2",
            Degree::All => "inf",
        }
    }
}

/// Kind of precedence between two links (Definition 3.4.20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// The links share a flow.
    Direct,
    /// A third link (the medium link), which is not frozen yet, shares a flow with each of the two.
    Indirect,
    /// The precedent is a second-degree neighbor of the link.
    SecondDirect,
    /// A third link (the medium link), which is not frozen yet, is a second-degree neighbor of the link and shares a
    /// flow with the precedent.
    SecondIndirect,
}

impl EdgeKind {
    /// Name of the kind in JSON.
    pub fn name(self) -> &'static str {
        match self {
            EdgeKind::Direct => "direct",
            EdgeKind::Indirect => "indirect",
            EdgeKind::SecondDirect => "second-direct",
            EdgeKind::SecondIndirect => "second-indirect",
        }
    }
}

/// An edge of the precedence graph: `precedent` must freeze before `link` can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence {
    /// Link that freezes first.
    pub precedent: LinkId,
    /// Link that freezes one iteration after `precedent`.
    pub link: LinkId,
    /// Kind of the precedence.
    pub kind: EdgeKind,
    /// The medium link of an indirect precedence.
    pub via: Option<LinkId>,
}

/// Relative difference of rates that count as equal in comparisons of links.
const SAME: f64 = 1e-9;

/// Whether `a` is below `b` by more than rounding errors.
pub(crate) fn below(a: f64, b: f64) -> bool {
    a * (1.0 + SAME) < b
}

/// One run of WF^k.
#[derive(Debug, Clone, PartialEq)]
pub struct WaterFilling {
    /// Degree k.
    pub degree: Degree,
    /// Number of iterations; in the thesis D for k = 1, W2 for k = 2 and W for infinity.
    pub count: usize,
    /// Iteration, from 1, in which each link froze; 0 for links that never did.
    pub of_link: IdVec<LinkId, usize>,
    /// Iteration, from 1, in which each flow froze.
    pub of_flow: IdVec<FlowId, usize>,
    /// Rate of each flow, per unit of weight, bit/s.
    pub rate: IdVec<FlowId, f64>,
    /// For each flow, the link with which it froze.
    pub bottleneck: IdVec<FlowId, LinkId>,
    capacity_bps: IdVec<LinkId, f64>,
    paths: IdVec<FlowId, Vec<LinkId>>,
    weights: IdVec<FlowId, f64>,
    members: IdVec<LinkId, Vec<FlowId>>,
}

/// For each link the flows that cross it; `paths` has one path per flow.
pub(crate) fn members<'a>(links: usize, paths: impl Iterator<Item = &'a [LinkId]>) -> IdVec<LinkId, Vec<FlowId>> {
    let mut members = IdVec::<LinkId, _>::filled(Vec::new(), links);
    for (f, path) in paths.enumerate() {
        path.iter().for_each(|&l| members[l].push(FlowId::from_index(f)));
    }
    members
}

impl WaterFilling {
    /// Runs WF^k over links of `capacity_bps` and flows of one path each, none of them empty.
    pub fn run(capacity_bps: &[f64], paths: &[Vec<LinkId>], weights: &[f64], degree: Degree) -> Self {
        let (links, flows) = (capacity_bps.len(), paths.len());
        let members = members(links, paths.iter().map(Vec::as_slice));
        let mut run = WaterFilling {
            degree,
            count: 0,
            of_link: IdVec::filled(0, links),
            of_flow: IdVec::filled(0, flows),
            rate: IdVec::filled(0.0, flows),
            bottleneck: IdVec::filled(LinkId::NONE, flows),
            capacity_bps: capacity_bps.to_vec().into(),
            paths: paths.to_vec().into(),
            weights: weights.to_vec().into(),
            members,
        };
        let mut left = run.capacity_bps.clone();
        let mut open = run.members.clone();
        while run.of_flow.contains(&0) {
            run.iterate(&mut left, &mut open);
        }
        run
    }

    /// Runs one iteration: freezes each link whose rate is the lowest of its neighborhood. `left` has the remaining
    /// capacity of each link, bit/s; `open` has the flows of each link that are not frozen.
    fn iterate(&mut self, left: &mut IdVec<LinkId, f64>, open: &mut IdVec<LinkId, Vec<FlowId>>) {
        let rate: IdVec<LinkId, f64> =
            left.iter().zip(&*open).map(|(left, open)| self.link_rate(*left, open)).collect();
        let lowest = match self.degree {
            Degree::One => self.spread(&rate),
            Degree::Two => self.spread(&self.spread(&rate)),
            Degree::All => IdVec::filled(rate.iter().copied().fold(f64::INFINITY, f64::min), rate.len()),
        };
        self.count += 1;
        for l in rate.ids().filter(|&l| !open[l].is_empty() && !below(lowest[l], rate[l])) {
            self.of_link[l] = self.count;
            for &f in &open[l] {
                if self.of_flow[f] == 0 {
                    (self.of_flow[f], self.rate[f], self.bottleneck[f]) = (self.count, rate[l], l);
                    self.paths[f].iter().for_each(|&m| left[m] -= rate[l] * self.weights[f]);
                }
            }
        }
        open.iter_mut().for_each(|open| open.retain(|&f| self.of_flow[f] == 0));
    }

    fn link_rate(&self, left: f64, open: &[FlowId]) -> f64 {
        let weight: f64 = open.iter().map(|&f| self.weights[f]).sum();
        if open.is_empty() { f64::INFINITY } else { (left / weight).max(0.0) }
    }

    /// For each link, the lowest `value` among the link and the links with which it shares a flow that is not frozen.
    fn spread(&self, value: &IdVec<LinkId, f64>) -> IdVec<LinkId, f64> {
        let mut lowest = value.clone();
        for path in self.paths.iter().zip(&self.of_flow).filter(|(_, n)| **n == 0).map(|(path, _)| path) {
            let least = path.iter().map(|&l| value[l]).fold(f64::INFINITY, f64::min);
            path.iter().for_each(|&l| lowest[l] = lowest[l].min(least));
        }
        lowest
    }

    /// Rates of links in iteration `n`, from 1: capacity left by flows frozen before, per unit of weight; infinite for
    /// a link whose flows are all frozen.
    pub fn link_rates(&self, n: usize) -> IdVec<LinkId, f64> {
        let (mut left, mut weight) =
            (self.capacity_bps.clone(), IdVec::<LinkId, f64>::filled(0.0, self.capacity_bps.len()));
        for (f, path) in self.paths.iter_enumerated() {
            for &l in path {
                match self.of_flow[f] < n {
                    true => left[l] -= self.rate[f] * self.weights[f],
                    false => weight[l] += self.weights[f],
                }
            }
        }
        let rate = |(left, weight): (f64, f64)| if weight > 0.0 { (left / weight).max(0.0) } else { f64::INFINITY };
        left.into_iter().zip(weight).map(rate).collect()
    }

    /// The links frozen in iteration `n`.
    pub fn frozen_in(&self, n: usize) -> Vec<LinkId> {
        self.of_link.ids().filter(|&l| self.of_link[l] == n).collect()
    }

    /// First-degree neighbors of `link` in iteration `n`: the other links with which it shares a flow that is not
    /// frozen. For [`Degree::All`], every other link with such a flow.
    fn neighbors(&self, link: LinkId, n: usize) -> Vec<LinkId> {
        let open = |f: &&FlowId| self.of_flow[**f] >= n;
        let mut found: Vec<LinkId> = match self.degree {
            Degree::All => self.members.ids().filter(|&l| self.members[l].iter().any(|f| open(&f))).collect(),
            _ => self.members[link].iter().filter(open).flat_map(|&f| &self.paths[f]).copied().collect(),
        };
        found.sort_unstable();
        found.dedup();
        found.retain(|&l| l != link);
        found
    }

    /// The precedents of a link that froze after the first iteration (definition 3.4.20), given the links' rates in the
    /// iteration before it froze; sorted.
    pub fn precedents(&self, rate: &IdVec<LinkId, f64>, link: LinkId) -> Vec<Precedence> {
        let Some(n) = self.of_link[link].checked_sub(1).filter(|&n| n > 0) else { return Vec::new() };
        let lower = |a: LinkId, b: LinkId| below(rate[a], rate[b]);
        let frozen = |l: LinkId| self.of_link[l] == n;
        let first = self.neighbors(link, n);
        let mut found = Vec::new();
        let mut add = |x: LinkId, around: Vec<LinkId>, direct: EdgeKind, indirect: EdgeKind| {
            if frozen(x) {
                found.push(Precedence { precedent: x, link, kind: direct, via: None });
                return;
            }
            for z in around.into_iter().filter(|&z| z != link && frozen(z) && lower(z, x)) {
                found.push(Precedence { precedent: z, link, kind: indirect, via: Some(x) });
            }
        };
        for &x in first.iter().filter(|&&x| lower(x, link)) {
            add(x, self.neighbors(x, n), EdgeKind::Direct, EdgeKind::Indirect);
        }
        if self.degree == Degree::Two {
            let mut second: Vec<LinkId> = first.iter().flat_map(|&x| self.neighbors(x, n)).collect();
            second.sort_unstable();
            second.dedup();
            for y in second.into_iter().filter(|&y| y != link && !first.contains(&y) && lower(y, link)) {
                let around = self.neighbors(y, n);
                // No link between the two may have a lower rate than `link`.
                if !around.iter().any(|&x| first.contains(&x) && lower(x, link)) {
                    add(y, around, EdgeKind::SecondDirect, EdgeKind::SecondIndirect);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
