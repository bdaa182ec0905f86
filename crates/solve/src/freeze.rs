//! Freeze iterations (PERC thesis, Definition 3.4.5): the iteration from which a link's rate is final, though WF^k may
//! remove it later.

use crate::structure::Structure;
use crate::wfk::{below, members};
use subak_core::{Case, FlowId, IdVec, LinkId};

/// Iteration, from 1, in which each link first had the lowest rate among the links that share a flow with it; `None`
/// for links that are not a bottleneck.
///
/// Only links that WF^k removes have such an iteration (Corollary 3.4.6). The thesis' Corollary 3.4.8, by which a
/// rate before that iteration is below the final one, omits links that lose no flow in it: figure 3.8a's link 2 is
/// one.
pub fn freeze_iterations(case: &Case, found: &Structure) -> IdVec<LinkId, Option<usize>> {
    let links = case.network.links().len();
    let removed = found.frozen_in(links);
    let mut search = Search {
        case,
        members: members(links, (0..case.flows.len()).map(|f| case.flows.links_of(f))),
        removed_flow: removed_flows(case, &removed),
        share: IdVec::filled(0.0, links),
    };
    let mut frozen = IdVec::filled(None, links);
    // For each link, a flow on it and another link on the flow's path that has a lower rate. As long as this holds, no
    // other flow needs to be examined.
    let mut held: IdVec<LinkId, Option<(FlowId, LinkId)>> = IdVec::filled(None, links);
    for (n, shares) in found.shares_bps.iter().enumerate() {
        let n = n + 1;
        shares.iter().for_each(|&(l, share)| search.share[l] = share);
        for &(l, _) in shares {
            if frozen[l].is_some() || removed[l].is_none_or(|at| at < n) {
                continue;
            }
            if !held[l].is_some_and(|(f, x)| search.holds(f, x, l, n)) {
                held[l] = search.holder(l, n);
            }
            if held[l].is_none() {
                frozen[l] = Some(n);
            }
        }
    }
    frozen
}

/// Iteration in which each flow is removed: that of the first removed link on its path.
fn removed_flows(case: &Case, removed: &IdVec<LinkId, Option<usize>>) -> IdVec<FlowId, usize> {
    let of = |f| case.flows.links_of(f).iter().filter_map(|&l| removed[l]).min();
    (0..case.flows.len()).map(|f| of(f).unwrap_or(usize::MAX)).collect()
}

struct Search<'a> {
    case: &'a Case,
    members: IdVec<LinkId, Vec<FlowId>>,
    removed_flow: IdVec<FlowId, usize>,
    share: IdVec<LinkId, f64>,
}

impl Search<'_> {
    /// Whether flow `f` has no rate yet in iteration `n`, and link `x` of its path allows a lower rate than `l` does.
    fn holds(&self, f: FlowId, x: LinkId, l: LinkId, n: usize) -> bool {
        self.removed_flow[f] >= n && below(self.share[x], self.share[l])
    }

    fn holder(&self, l: LinkId, n: usize) -> Option<(FlowId, LinkId)> {
        let path = |f: FlowId| self.case.flows.links_of(f.index()).iter().map(move |&x| (f, x));
        self.members[l].iter().flat_map(|&f| path(f)).find(|&(f, x)| self.holds(f, x, l, n))
    }
}
