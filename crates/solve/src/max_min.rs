//! Weighted max-min over single paths, exact: water-filling (PERC thesis, section 2.1 and Algorithm 7 at k = infinity)
//! on a heap of links.
//!
//! The level of a link is its residual capacity over the weight of its flows that are not frozen yet; a flow's rate is
//! its weight times the level at which the first of its links runs full, or its demand if that comes first. Levels only
//! rise while flows freeze, so the heap is lazy: a link is keyed anew when it is popped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
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
#[derive(Debug, Clone, Default)]
pub struct MaxMin {
    state: Vec<LinkState>,
    /// Links that carry active flows.
    used: Vec<LinkId>,
    /// Flows by link; `start` is parallel to `used`' states through `LinkState::end` and the link's flow count.
    members: Vec<FlowId>,
    start: Vec<u32>,
    done: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, LinkId)>>,
    by_demand: Vec<(f64, FlowId)>,
}

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
            let state = &mut self.state[l as usize];
            if state.live == 0 {
                PeekMut::pop(top);
                continue;
            }
            if state.weight < CANCELLED * state.summed {
                let range = self.start[l as usize] as usize..state.end as usize;
                let live = self.members[range].iter().filter(|&&f| !is_done(&self.done, f));
                state.weight = live.map(|&f| rows.weight[f as usize]).sum();
                state.summed = state.weight;
            }
            let level = state.level();
            if level.to_bits() > key {
                *top = Reverse((level.to_bits(), l));
                continue;
            }
            if let Some(&(at, f)) = self.by_demand.get(next_demand)
                && at <= level
            {
                next_demand += 1;
                if !is_done(&self.done, f) {
                    self.freeze(rows, f, rows.demand_bps[f as usize], NO_LINK, rates_bps, bottleneck);
                }
                continue;
            }
            PeekMut::pop(top);
            filled += 1;
            for i in self.start[l as usize]..self.state[l as usize].end {
                let f = self.members[i as usize];
                if !is_done(&self.done, f) {
                    self.freeze(rows, f, rows.weight[f as usize] * level, l, rates_bps, bottleneck);
                }
            }
        }
        self.heap = heap;
        filled
    }

    #[inline]
    fn freeze(&mut self, rows: &Rows, f: FlowId, rate: f64, by: LinkId, rates: &mut [f64], bottleneck: &mut [LinkId]) {
        self.done[f as usize / 64] |= 1 << (f % 64);
        rates[f as usize] = rate;
        if let Some(place) = bottleneck.get_mut(f as usize) {
            *place = by;
        }
        let weight = rows.weight[f as usize];
        for &m in rows.path(f) {
            let state = &mut self.state[m as usize];
            state.residual -= rate;
            state.weight -= weight;
            state.live -= 1;
        }
    }

    /// Fills the incidence of links to flows, the heap and the demands in order.
    fn build(&mut self, rows: &Rows) {
        self.forget(rows);
        let MaxMin { state, used, members, start, .. } = self;
        let mut entries = 0;
        rows.for_each(|f| {
            let weight = rows.weight[f as usize];
            let path = rows.path(f);
            entries += path.len();
            for &l in path {
                let s = &mut state[l as usize];
                if s.live == 0 {
                    used.push(l);
                }
                s.live += 1;
                s.weight += weight;
            }
        });
        used.sort_unstable();
        let mut offset = 0;
        for &l in used.iter() {
            let s = &mut state[l as usize];
            s.residual = rows.capacity_bps[l as usize];
            s.summed = s.weight;
            s.end = offset;
            start[l as usize] = offset;
            offset += s.live;
        }
        members.clear();
        members.resize(entries, 0);
        rows.for_each(|f| {
            for &l in rows.path(f) {
                let end = &mut state[l as usize].end;
                members[*end as usize] = f;
                *end += 1;
            }
            let demand = rows.demand_bps[f as usize];
            if demand < f64::INFINITY {
                self.by_demand.push((demand / rows.weight[f as usize], f));
            }
        });
        self.by_demand.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut keys = std::mem::take(&mut self.heap).into_vec();
        keys.extend(used.iter().map(|&l| Reverse((state[l as usize].level().to_bits(), l))));
        self.heap = keys.into();
    }

    /// Clears what the last solve left, at the cost of what it touched.
    fn forget(&mut self, rows: &Rows) {
        for &l in &self.used {
            self.state[l as usize] = LinkState::default();
        }
        self.used.clear();
        self.by_demand.clear();
        self.heap.clear();
        self.state.resize(rows.capacity_bps.len(), LinkState::default());
        self.start.resize(rows.capacity_bps.len(), 0);
        let words = rows.weight.len().div_ceil(64);
        match rows.active {
            Some(active) => {
                self.done.resize(words, 0);
                for &f in active {
                    self.done[f as usize / 64] &= !(1 << (f % 64));
                }
            }
            None => {
                self.done.clear();
                self.done.resize(words, 0);
            }
        }
    }
}

fn is_done(done: &[u64], f: FlowId) -> bool {
    done[f as usize / 64] >> (f % 64) & 1 == 1
}
