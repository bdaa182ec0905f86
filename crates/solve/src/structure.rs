//! Structure of a max-min allocation: in which order links become bottlenecks, and which must before which.
//!
//! The WF^k algorithms (PERC thesis, Algorithm 7; section 3.4) freeze a link once its fair share is the lowest among its
//! neighbors up to degree k: k = 1 is the CPG algorithm (Algorithm 3), 2 bounds s-PERC, infinity is water-filling. Each
//! partitions the bottlenecks by iteration; precedent links (section 2.6.3 and Definition 3.4.20) link one part to the
//! next. Weights count as flows do. In the listing, flows and links are removed after the loop over links, and links left
//! without flows drop out.

use serde_json::{Value, json};
use subak_core::{Case, Fault, LinkId, Policy};

/// How far a link looks before it freezes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Degree {
    /// At links that share a flow with it.
    One,
    /// At their neighbors too.
    Two,
    /// At all links.
    All,
}

impl Degree {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Degree::One => "1",
            Degree::Two => "2",
            Degree::All => "inf",
        }
    }
}

/// How one link precedes another (Definition 3.4.20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// They share a flow.
    Direct,
    /// Through a medium link that shares a flow with both and is not frozen yet.
    Indirect,
    /// It is a second-degree neighbor.
    SecondDirect,
    /// Through a medium link that is a second-degree neighbor.
    SecondIndirect,
}

impl Kind {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::Indirect => "indirect",
            Kind::SecondDirect => "second-direct",
            Kind::SecondIndirect => "second-indirect",
        }
    }
}

/// `precedent` must freeze before `link` can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence {
    /// Frozen in one iteration.
    pub precedent: LinkId,
    /// Frozen in the next.
    pub link: LinkId,
    /// How.
    pub kind: Kind,
    /// The medium link of an indirect precedence.
    pub via: Option<LinkId>,
}

/// What WF^k finds.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// How far links looked.
    pub degree: Degree,
    /// The links frozen in each iteration.
    pub partition: Vec<Vec<LinkId>>,
    /// Links with flows that are no bottleneck.
    pub never: Vec<LinkId>,
    /// Fair share of each link that was left, per unit of weight, in each iteration.
    pub shares_bps: Vec<Vec<(LinkId, f64)>>,
    /// Rate of each flow.
    pub rates_bps: Vec<f64>,
    /// The precedence graph, sorted.
    pub precedence: Vec<Precedence>,
    /// A longest chain of links that precede one another.
    pub longest_chain: Vec<LinkId>,
}

impl Structure {
    /// Iterations until all flows are frozen: the depth of the precedence graph.
    pub fn depth(&self) -> usize {
        self.partition.len()
    }

    /// The iteration, from 1, in which each link freezes.
    pub fn frozen_in(&self, links: usize) -> Vec<Option<usize>> {
        let mut frozen = vec![None; links];
        for (n, part) in self.partition.iter().enumerate() {
            part.iter().for_each(|&l| frozen[l as usize] = Some(n + 1));
        }
        frozen
    }

    /// As JSON, with the links' ids.
    pub fn to_json(&self, case: &Case) -> Value {
        let id = |&l: &LinkId| case.network.links()[l as usize].id.as_str();
        let ids = |links: &Vec<LinkId>| links.iter().map(id).collect::<Vec<_>>();
        let edge = |p: &Precedence| {
            json!({
                "precedent": id(&p.precedent), "link": id(&p.link), "kind": p.kind.name(),
                "via": p.via.as_ref().map(id),
            })
        };
        let shares = |n: &Vec<(LinkId, f64)>| n.iter().map(|(l, r)| json!([id(l), r])).collect::<Vec<_>>();
        json!({
            "schema": 1,
            "k": self.degree.name(),
            "depth": self.depth(),
            "partition": self.partition.iter().map(ids).collect::<Vec<_>>(),
            "never": ids(&self.never),
            "shares": self.shares_bps.iter().map(shares).collect::<Vec<_>>(),
            "rates": self.rates_bps,
            "precedence": self.precedence.iter().map(edge).collect::<Vec<_>>(),
            "longest_chain": ids(&self.longest_chain),
        })
    }
}

/// Shares this close are the same.
pub(crate) const SAME: f64 = 1e-12;

fn below(a: f64, b: f64) -> bool {
    a < b * (1.0 - SAME)
}

/// One iteration: what was left, and what froze.
#[derive(Default, Clone)]
struct Iteration {
    open: Vec<bool>,
    share: Vec<f64>,
    frozen: Vec<bool>,
}

struct Filling<'a> {
    case: &'a Case,
    members: Vec<Vec<u32>>,
    residual: Vec<f64>,
    rate: Vec<Option<f64>>,
}

/// Runs WF^k on the flows of `case`: one path each, without demands.
pub fn structure(case: &Case, degree: Degree) -> Result<Structure, Fault> {
    if case.policy != Policy::MaxMin {
        let what = "the order of bottlenecks is defined for max-min";
        return Err(Fault::new("policy.kind", what, "choose \"max-min\", or leave the policy out"));
    }
    let refuse = |f: usize, what: &str, mend: &str| Err(Fault::new(format!("flows[{f}]"), what, mend));
    for f in 0..case.flows.len() {
        if case.flows.paths_of(f).len() > 1 {
            return refuse(f, "the order of bottlenecks is defined for flows over one path", "give one path");
        }
        if case.flows.demand_bps()[f] < f64::INFINITY {
            return refuse(f, "the order of bottlenecks is defined for flows without demands", "leave out the demand");
        }
    }
    let mut members = vec![Vec::new(); case.network.links().len()];
    for f in 0..case.flows.len() {
        case.flows.links_of(f).iter().for_each(|&l| members[l as usize].push(f as u32));
    }
    let residual = case.network.links().iter().map(|l| l.capacity_bps).collect();
    Ok(Filling { case, members, residual, rate: vec![None; case.flows.len()] }.run(degree))
}

impl Filling<'_> {
    fn run(mut self, degree: Degree) -> Structure {
        let mut found = Structure {
            degree,
            partition: Vec::new(),
            never: Vec::new(),
            shares_bps: Vec::new(),
            rates_bps: Vec::new(),
            precedence: Vec::new(),
            longest_chain: Vec::new(),
        };
        let mut last: Option<Iteration> = None;
        while self.rate.iter().any(Option::is_none) {
            let now = self.iterate(degree);
            let list =
                |keep: &dyn Fn(usize) -> bool| (0..now.share.len()).filter(|&l| keep(l)).map(|l| l as LinkId).collect();
            let frozen: Vec<LinkId> = list(&|l| now.frozen[l]);
            let left: Vec<LinkId> = list(&|l| now.share[l].is_finite());
            found.shares_bps.push(left.into_iter().map(|l| (l, now.share[l as usize])).collect());
            if let Some(last) = &last {
                frozen.iter().for_each(|&l| self.precedents(last, l, degree, &mut found.precedence));
            }
            found.partition.push(frozen);
            last = Some(now);
        }
        found.precedence.sort_unstable();
        found.precedence.dedup();
        let frozen = found.frozen_in(self.members.len());
        found.never = (0..self.members.len())
            .filter(|&l| frozen[l].is_none() && !self.members[l].is_empty())
            .map(|l| l as LinkId)
            .collect();
        found.longest_chain = longest_chain(&found, &frozen);
        found.rates_bps = self.rate.iter().map(|r| r.unwrap_or(0.0)).collect();
        found
    }

    /// Finds the links with the lowest share around and freezes their flows.
    fn iterate(&mut self, degree: Degree) -> Iteration {
        let open: Vec<bool> = self.rate.iter().map(Option::is_none).collect();
        let weight = |l: usize| {
            let of = |f: &&u32| open[**f as usize];
            self.members[l].iter().filter(of).map(|&f| self.case.flows.weight()[f as usize]).sum::<f64>()
        };
        let share: Vec<f64> = (0..self.members.len())
            .map(|l| if weight(l) > 0.0 { (self.residual[l] / weight(l)).max(0.0) } else { f64::INFINITY })
            .collect();
        let lowest = match degree {
            Degree::One => self.spread(&open, &share),
            Degree::Two => self.spread(&open, &self.spread(&open, &share)),
            Degree::All => vec![share.iter().copied().fold(f64::INFINITY, f64::min); share.len()],
        };
        let frozen: Vec<bool> = (0..share.len()).map(|l| share[l].is_finite() && !below(lowest[l], share[l])).collect();
        for l in (0..share.len()).filter(|&l| frozen[l]) {
            for &f in &self.members[l] {
                if self.rate[f as usize].is_none() {
                    self.rate[f as usize] = Some(share[l] * self.case.flows.weight()[f as usize]);
                    let rate = share[l] * self.case.flows.weight()[f as usize];
                    self.case.flows.links_of(f as usize).iter().for_each(|&m| self.residual[m as usize] -= rate);
                }
            }
        }
        Iteration { open, share, frozen }
    }

    /// The lowest value among each link and those that share an open flow with it.
    fn spread(&self, open: &[bool], value: &[f64]) -> Vec<f64> {
        let mut lowest = value.to_vec();
        for f in (0..open.len()).filter(|&f| open[f]) {
            let path = self.case.flows.links_of(f);
            let least = path.iter().map(|&l| value[l as usize]).fold(f64::INFINITY, f64::min);
            path.iter().for_each(|&l| lowest[l as usize] = lowest[l as usize].min(least));
        }
        lowest
    }

    /// The links that shared an open flow with `l` in an iteration, without `l`.
    fn neighbors(&self, at: &Iteration, l: LinkId, degree: Degree) -> Vec<LinkId> {
        let mut found: Vec<LinkId> = match degree {
            Degree::All => (0..at.share.len() as LinkId).filter(|&m| at.share[m as usize].is_finite()).collect(),
            _ => {
                let open = self.members[l as usize].iter().filter(|f| at.open[**f as usize]);
                open.flat_map(|&f| self.case.flows.links_of(f as usize)).copied().collect()
            }
        };
        found.sort_unstable();
        found.dedup();
        found.retain(|&m| m != l);
        found
    }

    /// The precedents of `l` among the links frozen in iteration `at`.
    fn precedents(&self, at: &Iteration, l: LinkId, degree: Degree, into: &mut Vec<Precedence>) {
        let share = |l: LinkId| at.share[l as usize];
        let frozen = |l: LinkId| at.frozen[l as usize];
        let first = self.neighbors(at, l, degree);
        let mut add = |precedent, kind, via| into.push(Precedence { precedent, link: l, kind, via });
        for &x in first.iter().filter(|&&x| below(share(x), share(l))) {
            if frozen(x) {
                add(x, Kind::Direct, None);
                continue;
            }
            let around = self.neighbors(at, x, degree).into_iter();
            around
                .filter(|&z| z != l && frozen(z) && below(share(z), share(x)))
                .for_each(|z| add(z, Kind::Indirect, Some(x)));
        }
        if degree != Degree::Two {
            return;
        }
        let mut second: Vec<LinkId> = first.iter().flat_map(|&x| self.neighbors(at, x, degree)).collect();
        second.sort_unstable();
        second.dedup();
        second.retain(|y| *y != l && !first.contains(y) && below(share(*y), share(l)));
        for y in second {
            // Every link between the two has at least the share of `l`.
            let around = self.neighbors(at, y, degree);
            if around.iter().any(|x| first.contains(x) && below(share(*x), share(l))) {
                continue;
            }
            if frozen(y) {
                add(y, Kind::SecondDirect, None);
                continue;
            }
            around
                .iter()
                .filter(|&&z| frozen(z) && below(share(z), share(y)))
                .for_each(|&z| add(z, Kind::SecondIndirect, Some(y)));
        }
    }
}

/// A longest path of the precedence graph, whose edges lead from one iteration to the next.
fn longest_chain(found: &Structure, frozen: &[Option<usize>]) -> Vec<LinkId> {
    let mut best: Vec<(usize, Option<LinkId>)> = vec![(1, None); frozen.len()];
    let mut edges = found.precedence.clone();
    edges.sort_by_key(|e| frozen[e.link as usize]);
    for edge in &edges {
        let longer = best[edge.precedent as usize].0 + 1;
        if longer > best[edge.link as usize].0 {
            best[edge.link as usize] = (longer, Some(edge.precedent));
        }
    }
    let bottlenecks = found.partition.iter().flatten();
    let Some(&last) = bottlenecks.max_by_key(|&&l| (best[l as usize].0, std::cmp::Reverse(l))) else {
        return Vec::new();
    };
    let mut chain = vec![last];
    while let Some(before) = best[chain[chain.len() - 1] as usize].1 {
        chain.push(before);
    }
    chain.reverse();
    chain
}
