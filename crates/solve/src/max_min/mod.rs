//! Weighted max-min over single paths, exact: water-filling (PERC thesis, section 2.1 and Algorithm 7).
//!
//! The water level of a link is its residual capacity over the weight of its open flows (not frozen yet). A flow's
//! rate is its weight times the level at which the first of its links saturates, or its demand if that is lower. A
//! few flows are frozen in `rounds`: every link with the lowest level among its neighbors saturates in the same round
//! (k = 1). With many flows most links are neighbors, which would take too many rounds. Links are then filled one by
//! one in the order of their levels (`filling`, k = infinity).

mod filling;
mod levels;
mod rounds;

use filling::Filling;
use rounds::Rounds;
use std::ops::Range;
use subak_core::{FlowId, LinkId};

/// Sentinel "no link": the bottleneck of a flow at its demand.
pub const NO_LINK: LinkId = LinkId::NONE;

/// Single-path flows over links, borrowed from the caller.
#[derive(Debug, Clone, Copy)]
pub struct PathRows<'a> {
    /// Capacity of each link, bit/s.
    pub capacity_bps: &'a [f64],
    /// The path of flow `f` is `links[link_ptr[f]..link_ptr[f + 1]]`.
    pub link_ptr: &'a [u32],
    /// The links of all flows.
    pub links: &'a [LinkId],
    /// Weight of each flow, positive.
    pub weight: &'a [f64],
    /// Demand of each flow, bit/s; infinite for no demand.
    pub demand_bps: &'a [f64],
    /// Active flows, each once; `None`: all.
    pub active: Option<&'a [FlowId]>,
}

impl PathRows<'_> {
    /// Range of flow `f`'s links.
    fn places(&self, f: FlowId) -> Range<usize> {
        let (start, end) = (self.link_ptr[f.index()], self.link_ptr[f.index() + 1]);
        start as usize..end as usize
    }

    fn weight(&self, f: FlowId) -> f64 {
        self.weight[f.index()]
    }

    fn demand_bps(&self, f: FlowId) -> f64 {
        self.demand_bps[f.index()]
    }

    fn capacity_bps(&self, l: LinkId) -> f64 {
        self.capacity_bps[l.index()]
    }

    fn path(&self, f: FlowId) -> &[LinkId] {
        &self.links[self.places(f)]
    }

    /// Number of active flows.
    fn len(&self) -> usize {
        self.active.map_or(self.weight.len(), <[FlowId]>::len)
    }

    /// The `k`-th active flow.
    fn flow(&self, k: usize) -> FlowId {
        self.active.map_or(FlowId::from_index(k), |active| active[k])
    }
}

/// Largest number of flows that are frozen in rounds. With more flows, filling links one by one is faster.
const FEW: usize = 1000;

/// Max-min solver that reuses its memory between solves. With few flows the cost of a solve is proportional to their
/// paths, not to the network (after the first solve on that network).
#[derive(Debug, Clone, Default)]
pub struct MaxMin {
    rounds: Rounds,
    filling: Filling,
}

impl MaxMin {
    /// A new solver.
    pub fn new() -> Self {
        MaxMin::default()
    }

    /// Writes the max-min rate of every active flow into `rates_bps[f]`. If `bottleneck` is not empty, the link that
    /// froze the flow is written into `bottleneck[f]` ([`NO_LINK`] at its demand). Both lists have an entry for every
    /// flow; those of inactive flows are unchanged. Returns the number of bottleneck links.
    pub fn solve(&mut self, rows: &PathRows, rates_bps: &mut [f64], bottleneck: &mut [LinkId]) -> u64 {
        if rows.len() > FEW {
            return self.filling.solve(rows, rates_bps, bottleneck);
        }
        let (filled, rest) = self.rounds.solve(rows, rates_bps, bottleneck);
        match rest {
            None => filled,
            Some(rest) => {
                let rows = PathRows { capacity_bps: &rest.capacity_bps, active: Some(&rest.flows), ..*rows };
                filled + self.filling.solve(&rows, rates_bps, bottleneck)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug)]
    struct Net {
        capacity_bps: Vec<f64>,
        link_ptr: Vec<u32>,
        links: Vec<LinkId>,
        weight: Vec<f64>,
        demand_bps: Vec<f64>,
    }

    impl Net {
        fn rows(&self) -> PathRows<'_> {
            PathRows {
                capacity_bps: &self.capacity_bps,
                link_ptr: &self.link_ptr,
                links: &self.links,
                weight: &self.weight,
                demand_bps: &self.demand_bps,
                active: None,
            }
        }
    }

    /// Random networks with up to 12 links per path, more than a row holds. Capacities and weights are equal or
    /// differ by orders of magnitude.
    fn nets() -> impl Strategy<Value = Net> {
        let capacity = prop_oneof![Just(1e9), Just(1e10), (3.0..12.0f64).prop_map(|e| 10f64.powf(e))];
        prop::collection::vec(capacity, 1..20).prop_flat_map(|capacity_bps| {
            let n = capacity_bps.len();
            let path = prop::sample::subsequence(LinkId::first(n).collect::<Vec<_>>(), 1..=n.min(12)).prop_shuffle();
            let weight = prop_oneof![Just(1.0), Just(0.1), (-6.0..6.0f64).prop_map(|e| 10f64.powf(e))];
            let demand = prop_oneof![3 => Just(f64::INFINITY), 1 => (3.0..12.0f64).prop_map(|e| 10f64.powf(e))];
            let uniform = prop_oneof![Just(None), weight.clone().prop_map(Some)];
            let flows = prop::collection::vec((path, weight, demand), 0..40);
            (Just(capacity_bps), uniform, flows).prop_map(|(capacity_bps, uniform, flows)| {
                let mut net = Net {
                    capacity_bps,
                    link_ptr: vec![0],
                    links: Vec::new(),
                    weight: flows.iter().map(|f| uniform.unwrap_or(f.1)).collect(),
                    demand_bps: flows.iter().map(|f| f.2).collect(),
                };
                for (path, ..) in flows {
                    net.links.extend(path);
                    net.link_ptr.push(net.links.len() as u32);
                }
                net
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rounds_and_filling_agree(net in nets(), some in prop::collection::vec(any::<bool>(), 40)) {
            let n = net.weight.len();
            let some: Vec<FlowId> = (0..n).filter(|&f| some[f]).map(FlowId::from_index).collect();
            let (mut rounds, mut filling) = (Rounds::default(), Filling::default());
            for active in [None, Some(&some[..]), None] {
                let rows = PathRows { active, ..net.rows() };
                let (mut few, mut many) = (vec![0.0; n], vec![0.0; n]);
                let (mut few_by, mut many_by) = (vec![NO_LINK; n], vec![NO_LINK; n]);
                prop_assert!(rounds.solve(&rows, &mut few, &mut few_by).1.is_none());
                filling.solve(&rows, &mut many, &mut many_by);
                for f in 0..n {
                    // Rounding errors of a flow's rate are relative to the capacity of its widest link, from which
                    // larger rates were subtracted.
                    let widest = rows.path(FlowId::from_index(f)).iter().map(|&l| net.capacity_bps[l.index()]).fold(0.0, f64::max);
                    let apart = (few[f] - many[f]).abs();
                    prop_assert!(apart <= 1e-9 * few[f] + 1e-12 * widest, "{}: {:?} {:?}", f, few, many);
                    prop_assert_eq!(few_by[f] == NO_LINK, many_by[f] == NO_LINK);
                    prop_assert!(many_by[f] == NO_LINK || rows.path(FlowId::from_index(f)).contains(&many_by[f]));
                }
            }
        }
    }
}
