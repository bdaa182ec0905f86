//! Weighted max-min over single paths, exact: water-filling (PERC thesis, section 2.1 and Algorithm 7 at k = infinity)
//! on a heap of links.
//!
//! The level of a link is its residual capacity over the weight of its flows that are not frozen yet; a flow's rate is
//! its weight times the level at which the first of its links runs full, or its demand if that comes first. Levels only
//! rise while flows freeze, so the heap is lazy: a link is keyed anew when it is popped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use subak_core::{FlowId, LinkId};

/// No link: the bottleneck of a flow at its demand.
pub const NO_LINK: LinkId = LinkId::MAX;

/// Single-path flows over links, borrowed from whoever keeps them.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Capacity of each link, bit/s.
    pub capacity_bps: &'a [f64],
    /// Flow `f` takes `links[link_ptr[f]..link_ptr[f + 1]]`.
    pub link_ptr: &'a [u32],
    /// The links of all flows.
    pub links: &'a [LinkId],
    /// Weight of each flow, positive.
    pub weight: &'a [f64],
    /// Demand of each flow, bit/s; infinite for none.
    pub demand_bps: &'a [f64],
    /// The flows that take part, each once; `None`: all of them.
    pub active: Option<&'a [FlowId]>,
}

impl Rows<'_> {
    fn path(&self, f: FlowId) -> &[LinkId] {
        &self.links[self.link_ptr[f as usize] as usize..self.link_ptr[f as usize + 1] as usize]
    }

    fn for_each(&self, mut act: impl FnMut(FlowId)) {
        match self.active {
            Some(active) => active.iter().for_each(|&f| act(f)),
            None => (0..self.weight.len() as FlowId).for_each(act),
        }
    }
}

/// A link while the water rises.
#[derive(Debug, Clone, Copy, Default)]
struct LinkState {
    residual: f64,
    /// Weight of the flows not frozen.
    weight: f64,
    /// Weight when it was last summed anew.
    summed: f64,
    /// Flows not frozen.
    live: u32,
    /// Where its flows end in `members`, and, while that is being filled, the next free place.
    end: u32,
}

impl LinkState {
    fn level(&self) -> f64 {
        (self.residual / self.weight).max(0.0)
    }
}

/// Subtracting weights of a wide range cancels: below this share of the last sum, the weight is summed anew.
const CANCELLED: f64 = 1e-4;

/// A solver that keeps its memory between solves. Work and memory touched are in proportion to the active flows' paths,
/// not to the network (after the first solve on it).
///
/// Inside, links that carry flows and the flows themselves are numbered anew, flows by their first link: the flows that a
/// host's link freezes then lie side by side, and what the water touches stays in the cache.
#[derive(Debug, Clone, Default)]
pub struct MaxMin {
    /// The links that carry flows, and their numbers here by their numbers there.
    used: Vec<LinkId>,
    number: Vec<u32>,
    state: Vec<LinkState>,
    start: Vec<u32>,
    /// The flows in order, their weights unless all are the same, and their paths: in rows of one length, padded, or
    /// where lengths differ much in rows that `row` gives the starts of.
    order: Vec<FlowId>,
    stride: usize,
    row: Vec<u32>,
    paths: Vec<u32>,
    weight: Vec<f64>,
    members: Vec<u32>,
    done: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    by_demand: Vec<(f64, u32)>,
}

/// Fills up the rows of paths.
const PADDING: u32 = u32::MAX;
/// No number was given to the link.
const UNUSED: u32 = u32::MAX;

impl MaxMin {
    /// A solver without memory yet.
    pub fn new() -> Self {
        MaxMin::default()
    }

    /// Writes the max-min rate of every active flow into `rates_bps[f]` and, where `bottleneck` is not empty, the link
    /// that froze it into `bottleneck[f]` ([`NO_LINK`] at its demand). Both have a place for every flow; those of
    /// inactive flows stay as they are. Returns the number of links that became bottlenecks.
    pub fn solve(&mut self, rows: &Rows, rates_bps: &mut [f64], bottleneck: &mut [LinkId]) -> u64 {
        self.build(rows);
        let mut heap = std::mem::take(&mut self.heap);
        let mut filled = 0;
        let mut next_demand = 0;
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((key, l)) = *top;
            if self.state[l as usize].live == 0 {
                PeekMut::pop(top);
                continue;
            }
            let level = self.level(l);
            if level.to_bits() > key {
                *top = Reverse((level.to_bits(), l));
                continue;
            }
            if let Some(&(at, k)) = self.by_demand.get(next_demand)
                && at <= level
            {
                next_demand += 1;
                if !is_done(&self.done, k) {
                    let f = self.order[k as usize] as usize;
                    self.freeze(k, rows.demand_bps[f], NO_LINK, rates_bps, bottleneck);
                }
                continue;
            }
            PeekMut::pop(top);
            filled += 1;
            let by = self.used[l as usize];
            for i in self.start[l as usize]..self.state[l as usize].end {
                let k = self.members[i as usize];
                if !is_done(&self.done, k) {
                    self.freeze(k, self.weight_of(k) * level, by, rates_bps, bottleneck);
                }
            }
        }
        self.heap = heap;
        filled
    }

    /// The level of link `l`, from a weight that has not cancelled.
    fn level(&mut self, l: u32) -> f64 {
        let state = &self.state[l as usize];
        if state.weight < CANCELLED * state.summed {
            let range = self.start[l as usize] as usize..state.end as usize;
            let live = self.members[range].iter().filter(|&&k| !is_done(&self.done, k));
            let weight: f64 = live.map(|&k| self.weight_of(k)).sum();
            (self.state[l as usize].weight, self.state[l as usize].summed) = (weight, weight);
        }
        self.state[l as usize].level()
    }

    fn weight_of(&self, k: u32) -> f64 {
        if self.weight.len() == 1 { self.weight[0] } else { self.weight[k as usize] }
    }

    #[inline]
    fn freeze(&mut self, k: u32, rate: f64, by: LinkId, rates: &mut [f64], bottleneck: &mut [LinkId]) {
        self.done[k as usize / 64] |= 1 << (k % 64);
        let f = self.order[k as usize] as usize;
        rates[f] = rate;
        if let Some(place) = bottleneck.get_mut(f) {
            *place = by;
        }
        let weight = self.weight_of(k);
        let row = row_of(&self.row, self.stride, k as usize);
        for &l in &self.paths[row] {
            // Padding lies beyond all links.
            let Some(state) = self.state.get_mut(l as usize) else { break };
            state.residual -= rate;
            state.weight -= weight;
            state.live -= 1;
        }
    }

    /// Numbers links and flows, and fills the incidence of links to flows, the heap and the demands in order.
    fn build(&mut self, rows: &Rows) {
        self.number_links(rows);
        self.order_flows(rows);
        let uniform = self.take_weights(rows);
        let MaxMin { state, members, start, paths, order, row, stride, .. } = self;
        for k in 0..order.len() {
            let weight = uniform.unwrap_or_else(|| self.weight[k]);
            for &l in &paths[row_of(row, *stride, k)] {
                let Some(s) = state.get_mut(l as usize) else { break };
                s.live += 1;
                s.weight += weight;
            }
        }
        start.clear();
        let mut offset = 0;
        for (s, &l) in state.iter_mut().zip(&self.used) {
            s.residual = rows.capacity_bps[l as usize];
            s.summed = s.weight;
            s.end = offset;
            start.push(offset);
            offset += s.live;
        }
        members.clear();
        members.resize(offset as usize, 0);
        for k in 0..order.len() {
            for &l in &paths[row_of(row, *stride, k)] {
                let Some(s) = state.get_mut(l as usize) else { break };
                members[s.end as usize] = k as u32;
                s.end += 1;
            }
        }
        self.done.clear();
        self.done.resize(self.order.len().div_ceil(64), 0);
        self.sort_demands(rows);
        let mut keys = std::mem::take(&mut self.heap).into_vec();
        keys.clear();
        keys.extend(self.state.iter().enumerate().map(|(l, s)| Reverse((s.level().to_bits(), l as u32))));
        self.heap = keys.into();
    }

    /// Numbers the links that active flows cross, in their order.
    fn number_links(&mut self, rows: &Rows) {
        for &l in &self.used {
            self.number[l as usize] = UNUSED;
        }
        self.used.clear();
        self.number.resize(rows.capacity_bps.len(), UNUSED);
        let (used, number) = (&mut self.used, &mut self.number);
        let (mut longest, mut entries, mut flows) = (0, 0, 0);
        rows.for_each(|f| {
            let path = rows.path(f);
            longest = longest.max(path.len());
            entries += path.len();
            flows += 1;
            for &l in path {
                if number[l as usize] == UNUSED {
                    number[l as usize] = 0;
                    used.push(l);
                }
            }
        });
        used.sort_unstable();
        used.iter().enumerate().for_each(|(i, &l)| number[l as usize] = i as u32);
        self.stride = if longest * flows <= 4 * entries { longest } else { 0 };
        self.state.clear();
        self.state.resize(used.len(), LinkState::default());
    }

    /// Orders the active flows by their first link, and lays their paths in rows.
    fn order_flows(&mut self, rows: &Rows) {
        let MaxMin { number, start, order, paths, row, stride, .. } = self;
        let first = |f: FlowId| rows.path(f).first().map_or(0, |&l| number[l as usize] as usize);
        start.clear();
        start.resize(self.used.len() + 1, 0);
        let mut flows = 0;
        rows.for_each(|f| {
            start[first(f)] += 1;
            flows += 1;
        });
        let mut offset = 0;
        for s in start.iter_mut() {
            offset += std::mem::replace(s, offset);
        }
        order.resize(flows, 0);
        rows.for_each(|f| {
            let place = &mut start[first(f)];
            order[*place as usize] = f;
            *place += 1;
        });
        row.clear();
        paths.clear();
        if *stride == 0 {
            row.push(0);
        }
        for &f in order.iter() {
            let path = rows.path(f);
            paths.extend(path.iter().map(|&l| number[l as usize]));
            if *stride == 0 {
                row.push(paths.len() as u32);
            } else {
                paths.extend(std::iter::repeat_n(PADDING, *stride - path.len()));
            }
        }
    }

    /// Keeps the weights in order, or only the one that all flows have, which it returns.
    fn take_weights(&mut self, rows: &Rows) -> Option<f64> {
        self.weight.clear();
        let first = rows.weight[*self.order.first()? as usize];
        if self.order.iter().all(|&f| rows.weight[f as usize] == first) {
            self.weight.push(first);
            return Some(first);
        }
        self.weight.extend(self.order.iter().map(|&f| rows.weight[f as usize]));
        None
    }

    fn sort_demands(&mut self, rows: &Rows) {
        self.by_demand.clear();
        for (k, &f) in self.order.iter().enumerate() {
            let demand = rows.demand_bps[f as usize];
            if demand < f64::INFINITY {
                self.by_demand.push((demand / rows.weight[f as usize], k as u32));
            }
        }
        self.by_demand.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }
}

/// Where the path of the `k`-th flow lies.
fn row_of(row: &[u32], stride: usize, k: usize) -> Range<usize> {
    if stride > 0 { k * stride..(k + 1) * stride } else { row[k] as usize..row[k + 1] as usize }
}

fn is_done(done: &[u64], k: u32) -> bool {
    done[k as usize / 64] >> (k % 64) & 1 == 1
}
