//! Bandwidth functions over single paths, exact: water-filling of the fair share (NUMFabric, section 2).
//!
//! The share rises from zero for all flows at once, and each flow has the rate of its function at the share. Once a
//! link saturates, its flows stay at the share reached. Between the functions' corners loads are linear in the share,
//! so the share at which a link saturates is exact. On a flat piece a flow's rate is constant while other links
//! saturate.

use crate::utility::BandwidthFunction;
use crate::wfk::members;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use subak_core::{Case, FlowId, IdVec, LinkId};

/// State of a flow while the fair share rises.
struct RisingFlow {
    function: BandwidthFunction,
    /// Largest rate, bit/s: the demand or the function's largest value.
    most: f64,
    /// Current piece of the function: between points `piece` and `piece + 1`.
    piece: usize,
    /// Rate once frozen, bit/s.
    rate: Option<f64>,
}

impl RisingFlow {
    /// Rate of the flow as a linear function of the share on the present piece: rate at share 0, and slope.
    fn line(&self) -> (f64, f64) {
        if let Some(rate) = self.rate {
            return (rate, 0.0);
        }
        let (a, b) = (self.function.points()[self.piece], self.function.points()[self.piece + 1]);
        let slope = (b.1 - a.1) / (b.0 - a.0);
        (a.1 - slope * a.0, slope)
    }

    /// Share at which the piece ends: the function's next corner or the demand.
    fn corner(&self) -> f64 {
        let (a, b) = (self.function.points()[self.piece], self.function.points()[self.piece + 1]);
        if b.1 > self.most { a.0 + (b.0 - a.0) * ((self.most - a.1) / (b.1 - a.1)) } else { b.0 }
    }
}

/// Events in the order of the fair share; at the same share, corners of functions come before saturated links.
type RateEvent = Reverse<(u64, What, u32)>;

/// Event at a fair share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Corner(FlowId),
    Full(LinkId),
}

struct Filling<'a> {
    case: &'a Case,
    flows: IdVec<FlowId, RisingFlow>,
    members: IdVec<LinkId, Vec<FlowId>>,
    events: BinaryHeap<RateEvent>,
    /// Version of a link's event: only the latest one is valid.
    version: IdVec<LinkId, u32>,
    bottlenecks: u64,
}

/// Rates of the flows, bit/s, and number of saturated links; `functions` has one function per flow.
pub(crate) fn fill(case: &Case, functions: Vec<BandwidthFunction>) -> (Vec<f64>, u64) {
    let demand = |f: usize| case.flows.demand_bps()[f];
    let flows = functions.into_iter().enumerate().map(|(f, function)| {
        let most = demand(f).min(function.top_bps());
        RisingFlow { function, most, piece: 0, rate: (most == 0.0).then_some(0.0) }
    });
    let members = members(case.network.links().len(), (0..case.flows.len()).map(|f| case.flows.links_of(f)));
    let version = IdVec::filled(0, members.len());
    let mut filling =
        Filling { case, flows: flows.collect(), members, events: BinaryHeap::new(), version, bottlenecks: 0 };
    filling.run();
    (filling.flows.iter().map(|f| f.rate.unwrap_or(0.0)).collect(), filling.bottlenecks)
}

impl Filling<'_> {
    fn run(&mut self) {
        for f in self.flows.ids() {
            self.await_corner(f);
        }
        for l in self.members.ids() {
            self.await_full(l, 0.0);
        }
        while let Some(Reverse((bits, what, version))) = self.events.pop() {
            let share = f64::from_bits(bits);
            match what {
                What::Corner(f) if self.flows[f].rate.is_none() => self.turn(f, share),
                What::Full(l) if self.version[l] == version => self.freeze_link(l, share),
                _ => {}
            }
        }
    }

    fn await_corner(&mut self, f: FlowId) {
        if self.flows[f].rate.is_none() {
            self.events.push(Reverse((self.flows[f].corner().to_bits(), What::Corner(f), 0)));
        }
    }

    /// Schedules the saturation of link `l`, at a share of at least `now`, by the present rates of its flows.
    fn await_full(&mut self, l: LinkId, now: f64) {
        self.version[l] += 1;
        let (mut base, mut slope) = (0.0, 0.0);
        for &f in &self.members[l] {
            let line = self.flows[f].line();
            base += line.0;
            slope += line.1;
        }
        if slope > 0.0 {
            let share = ((self.case.network.links()[l].capacity_bps - base) / slope).max(now);
            self.events.push(Reverse((share.to_bits(), What::Full(l), self.version[l])));
        }
    }

    /// Moves flow `f` past a corner: to its next piece, or to its largest rate.
    fn turn(&mut self, f: FlowId, share: f64) {
        let flow = &mut self.flows[f];
        flow.piece += 1;
        let points = flow.function.points();
        if points[flow.piece].1 >= flow.most {
            flow.rate = Some(flow.most);
        }
        self.await_corner(f);
        self.refresh(f, share);
    }

    /// Freezes the flows of link `l`, which is saturated. On a steep piece the nearest double to the share may be far off
    /// in rates, so the missing capacity is divided in proportion to slopes.
    fn freeze_link(&mut self, l: LinkId, share: f64) {
        self.bottlenecks += 1;
        let open: Vec<FlowId> = self.members[l].iter().copied().filter(|&f| self.flows[f].rate.is_none()).collect();
        let (mut left, mut steepness) = (self.case.network.links()[l].capacity_bps, 0.0);
        for &f in &self.members[l] {
            let (base, slope) = self.flows[f].line();
            left -= base + slope * share;
            steepness += slope;
        }
        for &f in &open {
            let (base, slope) = self.flows[f].line();
            let rate = base + slope * share + left * (slope / steepness);
            self.flows[f].rate = Some(rate.clamp(0.0, self.flows[f].most));
        }
        let case = self.case;
        let mut touched: Vec<LinkId> = open.iter().flat_map(|&f| case.flows.links_of(f.index())).copied().collect();
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|l| self.await_full(l, share));
    }

    fn refresh(&mut self, f: FlowId, share: f64) {
        let case = self.case;
        case.flows.links_of(f.index()).iter().for_each(|&l| self.await_full(l, share));
    }
}
