//! Freeze iterations (PERC thesis, Definition 3.4.5): when the rate of a link is final, though WF^k may remove it later.

use crate::structure::Structure;
use crate::wfk::{below, members};
use subak_core::{Case, LinkId};

/// The iteration, from 1, in which each link first had the lowest rate among the links that share a flow with it; none
/// for links that are no bottleneck.
///
/// Only links that WF^k removes have one (Corollary 3.4.6). The thesis' Corollary 3.4.8, by which a rate before that
/// iteration is below the final one, leaves out links that lose no flow in it: figure 3.8a's link 2 is one.
pub fn freeze_iterations(case: &Case, found: &Structure) -> Vec<Option<usize>> {
    let links = case.network.links().len();
    let removed = found.frozen_in(links);
    let mut search = Search {
        case,
        members: members(links, (0..case.flows.len()).map(|f| case.flows.links_of(f))),
        removed_flow: removed_flows(case, &removed),
        share: vec![0.0; links],
    };
    let mut frozen = vec![None; links];
    // A flow and a link on its path that hold each link back; while they do, nothing else has to be looked at.
    let mut held: Vec<Option<(u32, LinkId)>> = vec![None; links];
    for (n, shares) in found.shares_bps.iter().enumerate() {
        let n = n + 1;
        shares.iter().for_each(|&(l, share)| search.share[l as usize] = share);
        for &(l, _) in shares {
            let i = l as usize;
            if frozen[i].is_some() || removed[i].is_none_or(|at| at < n) {
                continue;
            }
            if !held[i].is_some_and(|(f, x)| search.holds(f, x, l, n)) {
                held[i] = search.holder(l, n);
            }
            if held[i].is_none() {
                frozen[i] = Some(n);
            }
        }
    }
    frozen
}

/// The iteration in which each flow is removed: with the first of its links.
fn removed_flows(case: &Case, removed: &[Option<usize>]) -> Vec<usize> {
    let of = |f| case.flows.links_of(f).iter().filter_map(|&l| removed[l as usize]).min();
    (0..case.flows.len()).map(|f| of(f).unwrap_or(usize::MAX)).collect()
}

struct Search<'a> {
    case: &'a Case,
    members: Vec<Vec<u32>>,
    removed_flow: Vec<usize>,
    share: Vec<f64>,
}

impl Search<'_> {
    /// Whether flow `f`, still there in iteration `n`, takes link `l` to the link `x` of a lower rate.
    fn holds(&self, f: u32, x: LinkId, l: LinkId, n: usize) -> bool {
        self.removed_flow[f as usize] >= n && below(self.share[x as usize], self.share[l as usize])
    }

    fn holder(&self, l: LinkId, n: usize) -> Option<(u32, LinkId)> {
        let path = |f: u32| self.case.flows.links_of(f as usize).iter().map(move |&x| (f, x));
        self.members[l as usize].iter().flat_map(|&f| path(f)).find(|&(f, x)| self.holds(f, x, l, n))
    }
}
