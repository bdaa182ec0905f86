//! Water-filling link by link, for many flows.
//!
//! With a million flows, memory accesses dominate. Memory is therefore read sequentially where possible. Paths are
//! copied into short rows of half a cache line. The flows of a saturated link are prefetched together before any is
//! processed. Rates are computed at the end, in one pass, from the water levels at which links saturated.

use super::levels::Levels;
use super::{NO_LINK, PathRows};
use std::ops::Range;
use subak_core::{IdVec, LinkId};

subak_core::id! {
    /// Index of a flow among the active ones.
    struct FlowSlot(u32);
}

/// Number of links in a row. Position `i` beyond the end of a shorter path has the index "number of links + `i`". The
/// last position of a longer path has the index "number of links + `ROW`".
const ROW: usize = 8;

/// A path, or the first links of a longer one.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct LinkRow([LinkId; ROW]);

/// State of a link during the filling.
#[derive(Debug, Clone, Copy, Default)]
struct Water {
    residual_bps: f64,
    /// Weight of the flows not frozen.
    weight: f64,
}

/// When subtractions have reduced a link's weight to less than this fraction of its last recomputed sum, the weight is
/// recomputed, since subtractions cancel digits.
const CANCELLED: f64 = 1e-4;

/// Number of flows that are prefetched together.
const BATCH: usize = 256;

/// Working memory of a solve. Flows are numbered by their position among the active ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Filling {
    rows: IdVec<FlowSlot, LinkRow>,
    /// Whether all flows have the same weight. Each weight then counts as 1, so that water levels are rates.
    uniform: bool,
    water: IdVec<LinkId, Water>,
    /// Weight of each link when it was last recomputed. With uniform weights 0, since integers do not lose digits.
    summed: IdVec<LinkId, f64>,
    /// The flows of link `l` are `members[start[l]..end[l]]`.
    start: IdVec<LinkId, u32>,
    end: IdVec<LinkId, u32>,
    members: Vec<FlowSlot>,
    /// Water level at which each link saturated.
    full: IdVec<LinkId, f64>,
    done: Vec<u64>,
    left: usize,
    ready: Vec<FlowSlot>,
    batch: Vec<(LinkRow, f64)>,
    by_demand: Vec<(f64, FlowSlot)>,
    levels: Levels,
}

impl Filling {
    /// See [`super::MaxMin::solve`].
    pub fn solve(&mut self, rows: &PathRows, rates_bps: &mut [f64], bottleneck: &mut [LinkId]) -> u64 {
        self.take_weights(rows);
        self.take_paths(rows);
        self.list_members(rows);
        self.sum_weights(rows);
        let mut levels = std::mem::take(&mut self.levels);
        let used = LinkId::first(rows.capacity_bps.len()).filter(|&l| self.end[l] > self.start[l]);
        levels.fill(rows.capacity_bps.len(), used.map(|l| (self.level(l), l)));
        let by_demand = std::mem::take(&mut self.by_demand);
        let mut demands = by_demand.iter().peekable();
        let mut filled = 0;
        while self.left > 0
            && let Some((level, l)) = levels.pop(|l| self.true_level(rows, l))
        {
            if let Some(&(at, k)) = demands.next_if(|(at, _)| *at <= level) {
                self.ready.clear();
                self.ready.extend((!self.is_done(k)).then_some(k));
                self.freeze(rows, at);
                levels.push(level, l);
                continue;
            }
            filled += 1;
            self.full[l] = level;
            self.find_ready(l);
            self.freeze(rows, level);
        }
        (self.levels, self.by_demand) = (levels, by_demand);
        self.write(rows, rates_bps, bottleneck);
        filled
    }

    fn take_weights(&mut self, rows: &PathRows) {
        let weight = |k: usize| rows.weight(rows.flow(k));
        self.uniform = (1..rows.len()).all(|k| weight(k) == weight(0));
        self.by_demand.clear();
        for k in 0..rows.len() {
            let demand = rows.demand_bps(rows.flow(k));
            if demand < f64::INFINITY {
                self.by_demand.push((demand / self.weight(rows, k), FlowSlot::from_index(k)));
            }
        }
        self.by_demand.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.left = rows.len();
        self.done.clear();
        self.done.resize(rows.len().div_ceil(64), 0);
    }

    fn weight(&self, rows: &PathRows, k: usize) -> f64 {
        if self.uniform { 1.0 } else { rows.weight(rows.flow(k)) }
    }

    /// Copies the paths into rows, and counts the flows of each link into `end`.
    fn take_paths(&mut self, rows: &PathRows) {
        let links = rows.capacity_bps.len();
        let empty: [LinkId; ROW] = std::array::from_fn(|i| LinkId::from_index(links + i));
        self.end.clear();
        self.end.resize(links + ROW + 1, 0);
        self.rows.resize(rows.len(), LinkRow(empty));
        for (k, row) in self.rows.iter_mut().enumerate() {
            let places = rows.places(rows.flow(k));
            let (start, length) = (places.start, places.len());
            *row = LinkRow(empty);
            // Reads beyond the path's end where memory allows: faster than a loop of varying length.
            match rows.links.get(start..start + ROW) {
                Some(path) => (0..ROW).for_each(|i| row.0[i] = if i < length { path[i] } else { empty[i] }),
                None => row.0[..length].copy_from_slice(&rows.links[start..start + length]),
            }
            if length > ROW {
                row.0[ROW - 1] = LinkId::from_index(links + ROW);
                rows.links[start..start + length][ROW - 1..].iter().for_each(|&l| self.end[l] += 1);
            }
            row.0.iter().for_each(|&l| self.end[l] += 1);
        }
    }

    /// The links of a longer path beyond its row.
    fn tail<'a>(row: &LinkRow, rows: &PathRows<'a>, k: usize) -> &'a [LinkId] {
        if row.0[ROW - 1].index() != rows.capacity_bps.len() + ROW {
            return &[];
        }
        &rows.links[rows.places(rows.flow(k))][ROW - 1..]
    }

    fn list_members(&mut self, rows: &PathRows) {
        let links = rows.capacity_bps.len();
        self.end.resize(links, 0);
        self.start.clear();
        let mut total = 0;
        for end in &mut self.end {
            self.start.push(total);
            total += std::mem::replace(end, total);
        }
        self.members.resize(total as usize, FlowSlot(0));
        let mut add = |l: LinkId, k: usize| {
            let end = &mut self.end[l];
            let place = *end as usize;
            self.members[place] = FlowSlot::from_index(k);
            *end += 1;
        };
        for (k, row) in self.rows.iter().enumerate() {
            for &l in &row.0 {
                if l.index() >= links {
                    break;
                }
                add(l, k);
            }
            Self::tail(row, rows, k).iter().for_each(|&l| add(l, k));
        }
    }

    fn sum_weights(&mut self, rows: &PathRows) {
        let links = rows.capacity_bps.len();
        let flows = |l: LinkId| f64::from(self.end[l] - self.start[l]);
        let water = |l: LinkId| Water { residual_bps: rows.capacity_bps(l), weight: flows(l) };
        self.water.clear();
        self.water.extend(LinkId::first(links).map(water));
        self.water.resize(links + ROW + 1, Water::default());
        self.full.clear();
        self.full.resize(links + ROW + 1, f64::INFINITY);
        self.summed.clear();
        self.summed.resize(links, 0.0);
        if !self.uniform {
            for l in LinkId::first(links) {
                self.sum_weight(rows, l);
            }
        }
    }

    fn sum_weight(&mut self, rows: &PathRows, l: LinkId) {
        let members = self.members[self.members_of(l)].iter();
        let live = members.filter(|&&k| !self.is_done(k)).map(|&k| self.weight(rows, k.index()));
        self.summed[l] = live.sum();
        self.water[l].weight = self.summed[l];
    }

    fn level(&self, l: LinkId) -> f64 {
        (self.water[l].residual_bps / self.water[l].weight).max(0.0)
    }

    /// The water level of link `l` from a recomputed weight; `None` if all its flows are frozen.
    fn true_level(&mut self, rows: &PathRows, l: LinkId) -> Option<f64> {
        if self.water[l].weight < CANCELLED * self.summed[l] {
            self.sum_weight(rows, l);
        }
        (self.water[l].weight > 0.0).then(|| self.level(l))
    }

    /// Range of link `l`'s flows among the members.
    fn members_of(&self, l: LinkId) -> Range<usize> {
        let (start, end) = (self.start[l], self.end[l]);
        start as usize..end as usize
    }

    fn is_done(&self, k: FlowSlot) -> bool {
        self.done[k.index() / 64] >> (k.0 % 64) & 1 == 1
    }

    /// Collects the flows of link `l` that are not frozen yet.
    fn find_ready(&mut self, l: LinkId) {
        let mut ready = std::mem::take(&mut self.ready);
        let members = &self.members[self.members_of(l)];
        ready.resize(members.len(), FlowSlot(0));
        // Branch-free, since which flows are frozen is unpredictable.
        let mut n = 0;
        for &k in members {
            ready[n] = k;
            n += usize::from(!self.is_done(k));
        }
        ready.truncate(n);
        self.ready = ready;
    }

    /// Freezes the collected flows at `level` and removes them from their links.
    fn freeze(&mut self, rows: &PathRows, level: f64) {
        self.left -= self.ready.len();
        let mut batch = std::mem::take(&mut self.batch);
        for ready in self.ready.chunks(BATCH) {
            batch.clear();
            batch.extend(ready.iter().map(|&k| (self.rows[k], self.weight(rows, k.index()))));
            for (&k, (row, weight)) in ready.iter().zip(&batch) {
                self.done[k.index() / 64] |= 1 << (k.0 % 64);
                for &l in row.0.iter().chain(Self::tail(row, rows, k.index())) {
                    let water = &mut self.water[l];
                    water.residual_bps -= weight * level;
                    water.weight -= weight;
                }
            }
        }
        self.batch = batch;
    }

    /// Computes each flow's rate from the lowest water level at which one of its links saturated.
    fn write(&self, rows: &PathRows, rates_bps: &mut [f64], bottleneck: &mut [LinkId]) {
        for (k, row) in self.rows.iter().enumerate() {
            let path = || row.0.iter().chain(Self::tail(row, rows, k));
            let lowest = path().map(|&l| self.full[l]).fold(f64::INFINITY, f64::min);
            let (f, weight) = (rows.flow(k).index(), self.weight(rows, k));
            let sated = rows.demand_bps[f] / weight <= lowest;
            rates_bps[f] = if sated { rows.demand_bps[f] } else { weight * lowest };
            if let Some(place) = bottleneck.get_mut(f) {
                // The first such link, branch-free, since which one it is is unpredictable.
                let by = path().rev().fold(NO_LINK, |by, &l| if self.full[l] == lowest { l } else { by });
                *place = if sated { NO_LINK } else { by };
            }
        }
    }
}
