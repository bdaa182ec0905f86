//! Weighted max-min over flows that start and end: exact, or repaired around changes to within a tolerance.
//!
//! One arrival changes many flows by a little. A repair solves only for the flows that violate the bottleneck
//! condition by more than the tolerance, with all others fixed. It then adds the flows that violate it as a result.
//! Links are never overloaded.

use crate::max_min::{MaxMin, NO_LINK, PathRows};
use std::cell::RefCell;
use std::collections::HashMap;
use subak_core::{FlowId, IdVec, LinkId, Offsets};

/// Largest number of rounds of a repair. After these, or if half of the flows would change, all flows are solved
/// exactly.
const MOST_ROUNDS: usize = 40;

/// Statistics of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// Number of flows whose rates were recomputed.
    pub flows: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Whether all flows were solved exactly instead of a repair.
    pub exact: bool,
}

/// Flows over links with their max-min rates. A flow gets a number when it is added; numbers of removed flows are
/// reused.
#[derive(Debug, Clone, Default)]
pub struct LiveMaxMin {
    capacity_bps: IdVec<LinkId, f64>,
    /// Paths in rows, with gaps of removed flows; `row` has the start and end of a flow's path.
    links: Vec<LinkId>,
    row: IdVec<FlowId, (u32, u32)>,
    weight: IdVec<FlowId, f64>,
    demand_bps: IdVec<FlowId, f64>,
    rates_bps: IdVec<FlowId, f64>,
    frozen_by: IdVec<FlowId, LinkId>,
    alive: IdVec<FlowId, bool>,
    free: Vec<FlowId>,
    members: IdVec<LinkId, Vec<FlowId>>,
    load_bps: IdVec<LinkId, f64>,
    dirty: Vec<LinkId>,
    /// Flows for which the present repair solves; all false between repairs.
    inside: IdVec<FlowId, bool>,
    /// Flows of the last repair.
    moved: Vec<FlowId>,
    solver: MaxMin,
}

impl LiveMaxMin {
    /// Links of the given capacities, bit/s, without flows.
    pub fn new(capacity_bps: IdVec<LinkId, f64>) -> Self {
        let links = capacity_bps.len();
        let (members, load_bps) = (IdVec::filled(Vec::new(), links), IdVec::filled(0.0, links));
        LiveMaxMin { capacity_bps, members, load_bps, ..Self::default() }
    }

    /// Adds a flow; its rate is 0 until the next solve or repair. The links must exist, and a path must not cross a
    /// link twice.
    pub fn add(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> FlowId {
        let f = self.free.pop().unwrap_or(self.alive.next_id());
        if f == self.alive.next_id() {
            self.row.push((0, 0));
            self.weight.push(0.0);
            self.demand_bps.push(0.0);
            self.rates_bps.push(0.0);
            self.frozen_by.push(NO_LINK);
            self.alive.push(false);
        }
        let start = self.links.len() as u32;
        self.links.extend_from_slice(path);
        self.row[f] = (start, self.links.len() as u32);
        (self.weight[f], self.demand_bps[f], self.rates_bps[f], self.alive[f]) = (weight, demand_bps, 0.0, true);
        path.iter().for_each(|&l| self.members[l].push(f));
        self.dirty.extend_from_slice(path);
        f
    }

    /// Removes flow `f`.
    pub fn remove(&mut self, f: FlowId) {
        if !std::mem::replace(&mut self.alive[f], false) {
            return;
        }
        for l in self.path(f).to_vec() {
            self.members[l].retain(|g| *g != f);
            self.load_bps[l] = (self.load_bps[l] - self.rates_bps[f]).max(0.0);
            self.dirty.push(l);
        }
        self.rates_bps[f] = 0.0;
        self.free.push(f);
        self.compact();
    }

    /// Changes a flow's weight.
    pub fn set_weight(&mut self, f: FlowId, weight: f64) {
        self.weight[f] = weight;
        self.dirty.extend_from_slice(&self.links[self.range(f)]);
    }

    /// Changes a flow's demand.
    pub fn set_demand(&mut self, f: FlowId, demand_bps: f64) {
        self.demand_bps[f] = demand_bps;
        self.dirty.extend_from_slice(&self.links[self.range(f)]);
    }

    /// Changes a link's capacity.
    pub fn set_capacity(&mut self, l: LinkId, capacity_bps: f64) {
        self.capacity_bps[l] = capacity_bps;
        self.dirty.push(l);
    }

    /// The rate of flow `f` after the last solve or repair, bit/s.
    pub fn rate_bps(&self, f: FlowId) -> f64 {
        self.rates_bps[f]
    }

    /// Numbers of the flows.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.alive.iter_enumerated().filter(|(_, alive)| **alive).map(|(f, _)| f)
    }

    /// Flows whose rates the last repair recomputed, unless it was exact.
    pub fn moved(&self) -> &[FlowId] {
        &self.moved
    }

    /// Flows over link `l`, in no particular order.
    pub fn members(&self, l: LinkId) -> &[FlowId] {
        &self.members[l]
    }

    /// The load of each link, bit/s.
    pub fn load_bps(&self) -> &IdVec<LinkId, f64> {
        &self.load_bps
    }

    /// Solves for all flows, exactly.
    pub fn solve(&mut self) {
        let all: Vec<FlowId> = self.flows().collect();
        let capacity = std::mem::take(&mut self.capacity_bps);
        self.solve_for(&all, &capacity, |l| l);
        self.capacity_bps = capacity;
        self.load_bps.fill(0.0);
        for f in all {
            for i in self.range(f) {
                self.load_bps[self.links[i]] += self.rates_bps[f];
            }
        }
        self.dirty.clear();
    }

    /// Repairs the rates after changes. Afterwards each flow below its demand crosses a link that is idle by at most
    /// the fraction `tolerance`, and whose highest water level exceeds the flow's by at most about that fraction.
    pub fn repair(&mut self, tolerance: f64) -> Repair {
        self.inside.resize(self.alive.len(), false);
        let repaired = self.repair_within(tolerance);
        for f in &self.moved {
            self.inside[*f] = false;
        }
        repaired.unwrap_or_else(|| {
            self.solve();
            Repair { flows: self.alive.len() - self.free.len(), rounds: MOST_ROUNDS, exact: true }
        })
    }

    /// Repairs the rates of the flows that it collects in `moved`; `None` if all flows are to be solved.
    fn repair_within(&mut self, tolerance: f64) -> Option<Repair> {
        self.moved = self.first(tolerance);
        self.moved.iter().for_each(|&f| self.inside[f] = true);
        for rounds in 0..MOST_ROUNDS {
            if self.moved.is_empty() {
                self.dirty.clear();
                return Some(Repair { flows: 0, rounds, exact: false });
            }
            if 2 * self.moved.len() > self.alive.len() - self.free.len() {
                return None;
            }
            let moving = std::mem::take(&mut self.moved);
            let touched = self.solve_inside(&moving);
            self.moved = moving;
            let more = self.missing(&touched, tolerance);
            if more.is_empty() {
                self.dirty.clear();
                return Some(Repair { flows: self.moved.len(), rounds: rounds + 1, exact: false });
            }
            more.iter().for_each(|&f| self.inside[f] = true);
            self.moved.extend(more);
        }
        None
    }

    /// Largest violation of the bottleneck condition over all flows, as a fraction.
    pub fn shortfall(&self) -> f64 {
        let highest: IdVec<LinkId, f64> = self.members.ids().map(|l| self.highest(l)).collect();
        self.flows().map(|f| self.miss(f, |l| highest[l])).fold(0.0, f64::max)
    }

    fn range(&self, f: FlowId) -> std::ops::Range<usize> {
        let (start, end) = self.row[f];
        start as usize..end as usize
    }

    fn path(&self, f: FlowId) -> &[LinkId] {
        &self.links[self.range(f)]
    }

    fn level(&self, f: FlowId) -> f64 {
        self.rates_bps[f] / self.weight[f]
    }

    /// The highest water level on link `l`.
    fn highest(&self, l: LinkId) -> f64 {
        self.members[l].iter().map(|&f| self.level(f)).fold(0.0, f64::max)
    }

    /// Violation of the bottleneck condition by flow `f`, at the link where it is smallest: the larger of the link's
    /// idle fraction and of the flow's relative shortfall below the link's highest water level, which `highest`
    /// returns.
    fn miss(&self, f: FlowId, highest: impl Fn(LinkId) -> f64) -> f64 {
        let (rate, demand) = (self.rates_bps[f], self.demand_bps[f]);
        if rate >= demand * (1.0 - 1e-12) {
            // A rate above a reduced demand must always be corrected, whatever the tolerance.
            return if rate > demand * (1.0 + 1e-12) { f64::INFINITY } else { 0.0 };
        }
        let level = self.level(f);
        let of = |&l: &LinkId| {
            let idle = 1.0 - self.load_bps[l] / self.capacity_bps[l];
            let short = if level > 0.0 { 1.0 - level / highest(l) } else { 1.0 };
            idle.max(short)
        };
        self.path(f).iter().map(of).fold(f64::INFINITY, f64::min)
    }

    /// Flows on changed links that violate the bottleneck condition by more than `tolerance`, and all flows of
    /// overloaded links.
    fn first(&self, tolerance: f64) -> Vec<FlowId> {
        let mut changed = self.dirty.clone();
        changed.sort_unstable();
        changed.dedup();
        let mut found = self.missing(&changed, tolerance);
        for l in changed {
            if self.load_bps[l] > self.capacity_bps[l] {
                found.extend(&self.members[l]);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Flows to solve for besides those inside: flows on `touched` links that violate the bottleneck condition by
    /// more than `tolerance`. If a flow inside violates it, the flows with a higher water level on one of its links.
    fn missing(&self, touched: &[LinkId], tolerance: f64) -> Vec<FlowId> {
        let mut found = Vec::new();
        let known = RefCell::new(HashMap::new());
        let highest = |l: LinkId| *known.borrow_mut().entry(l).or_insert_with(|| self.highest(l));
        for &l in touched {
            for &f in &self.members[l] {
                if self.miss(f, highest) <= tolerance {
                    continue;
                }
                if !self.inside[f] {
                    found.push(f);
                    continue;
                }
                let level = self.level(f);
                // The flow can only gain from flows of a higher level on a saturated link of its path. Of several such
                // links, the one with the lowest level is used.
                let above = |m: &&LinkId| {
                    let outside = |g: &&FlowId| !self.inside[**g] && self.level(**g) > level * (1.0 + 0.5 * tolerance);
                    self.members[**m].iter().filter(outside).copied().collect::<Vec<_>>()
                };
                let full = |m: &&LinkId| self.load_bps[**m] >= self.capacity_bps[**m] * (1.0 - tolerance);
                let path = self.path(f).iter().filter(full).map(|m| (highest(*m), above(&m)));
                let best = path.filter(|(_, above)| !above.is_empty()).min_by(|a, b| a.0.total_cmp(&b.0));
                found.extend(best.into_iter().flat_map(|(_, above)| above));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Solves for the flows `moving` in the capacity that the other flows leave. Returns the links of the moving flows.
    fn solve_inside(&mut self, moving: &[FlowId]) -> Vec<LinkId> {
        let mut touched: Vec<LinkId> = moving.iter().flat_map(|&f| self.path(f)).copied().collect();
        touched.sort_unstable();
        touched.dedup();
        for &f in moving {
            for i in self.range(f) {
                self.load_bps[self.links[i]] -= self.rates_bps[f];
            }
        }
        // The solver sees the touched links alone.
        let left = |&l: &LinkId| (self.capacity_bps[l] - self.load_bps[l]).max(0.0);
        let left: IdVec<LinkId, f64> = touched.iter().map(left).collect();
        self.solve_for(moving, &left, |l| LinkId::from_index(touched.partition_point(|&other| other < l)));
        for &f in moving {
            for i in self.range(f) {
                self.load_bps[self.links[i]] += self.rates_bps[f];
            }
        }
        touched
    }

    /// Solves for these flows over links of the given capacities, among which `place` finds a link.
    fn solve_for(&mut self, flows: &[FlowId], capacity_bps: &IdVec<LinkId, f64>, place: impl Fn(LinkId) -> LinkId) {
        // The solver requires offsets without gaps: only the rows of these flows are copied, in their order.
        let (mut link_ptr, mut links) = (Offsets::<usize>::default(), Vec::new());
        for &f in flows {
            links.extend(self.path(f).iter().map(|&l| place(l)));
            link_ptr.push(links.len());
        }
        let pick = |of: &IdVec<FlowId, f64>| flows.iter().map(|&f| of[f]).collect::<Vec<f64>>();
        let (weight, demand_bps) = (pick(&self.weight), pick(&self.demand_bps));
        let rows = PathRows {
            capacity_bps,
            link_ptr: link_ptr.raw(),
            links: &links,
            weight: &weight,
            demand_bps: &demand_bps,
            active: None,
        };
        let mut rates = vec![0.0; flows.len()];
        self.solver.solve(&rows, &mut rates, &mut []);
        flows.iter().zip(rates).for_each(|(&f, rate)| self.rates_bps[f] = rate);
    }

    /// Compacts the rows once most of them are gaps.
    fn compact(&mut self) {
        let used: usize = self.flows().map(|f| self.range(f).len()).sum::<usize>();
        if self.links.len() < 1024 || 2 * used > self.links.len() {
            return;
        }
        let mut links = Vec::with_capacity(used);
        for f in self.alive.ids() {
            let start = links.len() as u32;
            if self.alive[f] {
                links.extend_from_slice(self.path(f));
            }
            self.row[f] = (start, links.len() as u32);
        }
        self.links = links;
    }
}
