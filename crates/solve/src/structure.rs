//! Structure of a max-min allocation: the order in which links become bottlenecks, and its precedence graph.
//!
//! A run of [WF^k](crate::wfk) partitions the bottlenecks by iteration; precedent links (PERC thesis, section 2.6.3 and
//! Definition 3.4.20) link one part to the next.

use crate::wfk::WaterFilling;
pub use crate::wfk::{Degree, EdgeKind, Precedence};
use serde_json::{Value, json};
use subak_core::{Case, IdVec, InputError, LinkId, Policy};

/// Order in which WF^k freezes the links, and the precedence graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// Degree k of WF^k.
    pub degree: Degree,
    /// The links frozen in each iteration.
    pub partition: Vec<Vec<LinkId>>,
    /// Links that have flows but never become bottlenecks.
    pub never: Vec<LinkId>,
    /// Fair share of each link that still has flows without a rate, per unit of weight, bit/s, in each iteration.
    pub shares_bps: Vec<Vec<(LinkId, f64)>>,
    /// Rate of each flow, bit/s.
    pub rates_bps: Vec<f64>,
    /// The precedence graph, sorted.
    pub precedence: Vec<Precedence>,
    /// A longest chain of links in which each precedes the next.
    pub longest_chain: Vec<LinkId>,
}

impl Structure {
    /// Number of iterations until all flows are frozen: the depth of the precedence graph.
    pub fn depth(&self) -> usize {
        self.partition.len()
    }

    /// The iteration, from 1, in which each link freezes; `None` for a link that never does.
    pub fn frozen_in(&self, links: usize) -> IdVec<LinkId, Option<usize>> {
        let mut frozen = IdVec::filled(None, links);
        for (n, part) in self.partition.iter().enumerate() {
            part.iter().for_each(|&l| frozen[l] = Some(n + 1));
        }
        frozen
    }

    /// The structure as JSON, with the links' ids.
    pub fn to_json(&self, case: &Case) -> Value {
        let id = |&l: &LinkId| case.network.links()[l].id.as_str();
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

/// Runs WF^k on the flows of `case`, which must have one path each and no demand.
pub fn structure(case: &Case, degree: Degree) -> Result<Structure, InputError> {
    if case.policy != Policy::MaxMin {
        let what = "the order of bottlenecks is defined for max-min";
        return Err(InputError::new("policy.kind", what, "choose \"max-min\", or leave the policy out"));
    }
    let refuse = |f: usize, what: &str, hint: &str| Err(InputError::new(format!("flows[{f}]"), what, hint));
    for f in 0..case.flows.len() {
        if case.flows.paths_of(f).len() > 1 {
            return refuse(f, "the order of bottlenecks is defined for flows over one path", "give one path");
        }
        if case.flows.demand_bps()[f] < f64::INFINITY {
            return refuse(f, "the order of bottlenecks is defined for flows without demands", "leave out the demand");
        }
    }
    let paths: Vec<Vec<LinkId>> = (0..case.flows.len()).map(|f| case.flows.links_of(f).to_vec()).collect();
    let capacity_bps: Vec<f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
    Ok(of_run(&WaterFilling::run(&capacity_bps, &paths, case.flows.weight(), degree), &paths, case.flows.weight()))
}

fn of_run(run: &WaterFilling, paths: &[Vec<LinkId>], weight: &[f64]) -> Structure {
    let mut crossed = IdVec::filled(false, run.of_link.len());
    paths.iter().flatten().for_each(|&l| crossed[l] = true);
    let never = crossed.ids().filter(|&l| crossed[l] && run.of_link[l] == 0);
    let mut found = Structure {
        degree: run.degree,
        partition: (1..=run.count).map(|n| run.frozen_in(n)).collect(),
        never: never.collect(),
        shares_bps: Vec::new(),
        rates_bps: run.rate.iter().zip(weight).map(|(rate, weight)| rate * weight).collect(),
        precedence: Vec::new(),
        longest_chain: Vec::new(),
    };
    for n in 1..=run.count {
        let rates = run.link_rates(n);
        run.frozen_in(n + 1).into_iter().for_each(|l| found.precedence.extend(run.precedents(&rates, l)));
        let left = rates.iter_enumerated().filter(|(_, rate)| rate.is_finite());
        found.shares_bps.push(left.map(|(l, &rate)| (l, rate)).collect());
    }
    found.precedence.sort_unstable();
    found.longest_chain = longest_chain(&found, &found.frozen_in(crossed.len()));
    found
}

/// A longest path of the precedence graph, whose edges lead from one iteration to the next.
fn longest_chain(found: &Structure, frozen: &IdVec<LinkId, Option<usize>>) -> Vec<LinkId> {
    let mut best: IdVec<LinkId, (usize, Option<LinkId>)> = IdVec::filled((1, None), frozen.len());
    let mut edges = found.precedence.clone();
    edges.sort_by_key(|e| frozen[e.link]);
    for edge in &edges {
        let longer = best[edge.precedent].0 + 1;
        if longer > best[edge.link].0 {
            best[edge.link] = (longer, Some(edge.precedent));
        }
    }
    let bottlenecks = found.partition.iter().flatten();
    let Some(&last) = bottlenecks.max_by_key(|&&l| (best[l].0, std::cmp::Reverse(l))) else {
        return Vec::new();
    };
    let mut chain = vec![last];
    while let Some(before) = best[chain[chain.len() - 1]].1 {
        chain.push(before);
    }
    chain.reverse();
    chain
}
