//! s-PERC: exact weighted max-min without per-flow state at links (PERC thesis, section 3.2, Algorithms 5 and 6).
//!
//! A link keeps the sum of what it gave to flows bottlenecked elsewhere (SumE), the weight of those bottlenecked here
//! (NumB), and an upper bound on the largest allocation elsewhere (MaxE, reset every round to what this round saw,
//! MaxE'). Its bottleneck rate is b = (C - SumE) / NumB, propagated only if it is at least MaxE.
//!
//! Weighted: rates in the packet are per unit of weight, NumB counts weight, SumE the weighted allocations. With all
//! weights 1 this is the thesis' algorithm to the letter, but for ties within a relative 1e-9 and sums in fixed point.
//! MaxE is used as it stood before this packet.

use crate::perc::division::Division;
use crate::perc::{self, Perc, Rule, Step, Sum, Unit, at_most, below};
use subak_core::Fault;
use subak_core::scheme::{Drivers, Info, Kind, Params, Visit};

/// s-PERC.
pub type SPerc = Perc<Stateless>;

/// The rule of s-PERC.
#[derive(Debug, Clone, Default)]
pub struct Stateless {
    division: Division,
}

/// What the packet carries for one link (table 3.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Allocation, per unit of weight.
    pub a: f64,
    /// Bottleneck rate, per unit of weight.
    pub b: f64,
    /// Bottlenecked at this link (s = B).
    pub bottlenecked: bool,
    /// Other links shall not look at `b` (the ignore bit).
    pub ignored: bool,
}

impl Field {
    /// As a new flow carries it: E at 0, and a rate that nobody looks at.
    pub const NEW: Field = Field { a: 0.0, b: 0.0, bottlenecked: false, ignored: true };

    /// The rate that others look at.
    #[inline]
    pub fn propagated(&self) -> f64 {
        if self.ignored { f64::INFINITY } else { self.b }
    }
}

/// What a link keeps: the same few numbers for any number of flows.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    capacity: Sum,
    rates: Unit,
    weights: Unit,
    sum_e: Sum,
    num_b: Sum,
    max_e: f64,
    max_e_next: f64,
}

impl Link {
    /// A link of `capacity_bps` without flows.
    pub fn new(capacity_bps: f64) -> Self {
        let (rates, weights) = (Unit::for_sums_near(capacity_bps), Unit::for_sums_near(1.0));
        let capacity = Sum::of(capacity_bps, rates);
        Link { capacity, rates, weights, sum_e: Sum::default(), num_b: Sum::default(), max_e: 0.0, max_e_next: 0.0 }
    }

    /// Algorithm 6, lines 5-7: until it is classified anew the flow counts as bottlenecked here.
    #[inline]
    fn assume_bottlenecked(&mut self, field: &Field, weight: f64) {
        if !field.bottlenecked {
            self.sum_e.sub(field.a * weight, self.rates);
            self.num_b.add(weight, self.weights);
        }
    }

    /// Line 8: the bottleneck rate.
    #[inline]
    fn bottleneck_rate(&self, weight: f64, division: &Division) -> f64 {
        let left = self.sum_e.left_of(self.capacity, self.rates).max(0.0);
        division.divide(left, self.num_b.value(self.weights).max(weight))
    }

    /// Lines 16-22: the flow's new part in the sums.
    #[inline]
    fn account(&mut self, field: &Field, weight: f64, leaving: bool) {
        if leaving || !field.bottlenecked {
            self.num_b.sub(weight, self.weights);
        }
        if !leaving && !field.bottlenecked {
            self.sum_e.add(field.a * weight, self.rates);
            self.max_e = self.max_e.max(field.a);
            self.max_e_next = self.max_e_next.max(field.a);
        }
    }

    /// Algorithm 5: MaxE falls to what this round saw.
    pub fn reset_max_e(&mut self) {
        self.max_e = std::mem::take(&mut self.max_e_next);
    }

    /// Sum of the allocations of flows bottlenecked elsewhere, bit/s.
    pub fn sum_e(&self) -> f64 {
        self.sum_e.value(self.rates)
    }
    /// Weight of the flows bottlenecked here.
    pub fn num_b(&self) -> f64 {
        self.num_b.value(self.weights)
    }
    /// Bound on the largest allocation, per unit of weight, of a flow bottlenecked elsewhere.
    pub fn max_e(&self) -> f64 {
        self.max_e
    }
    /// The largest such allocation since the last reset (MaxE').
    pub fn max_e_next(&self) -> f64 {
        self.max_e_next
    }
}

/// Line 9: the least rate that any link but the `hop`-th propagates.
#[inline]
fn limit_rate(fields: &[Field], hop: usize) -> f64 {
    let (before, after) = fields.split_at(hop);
    let least = |fields: &[Field]| fields.iter().map(Field::propagated).fold(f64::INFINITY, f64::min);
    least(before).min(least(&after[1..]))
}

impl Rule for Stateless {
    const INFO: Info = Info {
        name: "s-perc",
        about: "exact max-min by control packets, without per-flow state at links",
        paper: "PERC thesis, section 3.2, Algorithms 5 and 6",
        kind: Kind::Proactive,
        drivers: Drivers { rounds: true, packet: true },
        params: &[perc::CONTROL, perc::HEADROOM, perc::REVERSE, perc::RTO, perc::ROUND],
    };
    const ROUNDS: bool = true;
    const RECOVERS: bool = false;
    type Fields = Vec<Field>;
    type Link = Link;

    fn new(_params: &Params) -> Result<Self, Fault> {
        Ok(Stateless::default())
    }
    fn fields(&self, hops: u16) -> Vec<Field> {
        vec![Field::NEW; usize::from(hops)]
    }
    fn link(&self, capacity_bps: f64) -> Link {
        Link::new(capacity_bps)
    }

    fn update(&self, link: &mut Link, fields: &mut Vec<Field>, visit: Visit, weight: f64, leaving: bool) -> Step {
        let hop = usize::from(visit.hop);
        link.assume_bottlenecked(&fields[hop], weight);
        let b = link.bottleneck_rate(weight, &self.division);
        let e = limit_rate(fields, hop);
        let field = Field { a: b.min(e), b, bottlenecked: at_most(b, e), ignored: below(b, link.max_e) };
        link.account(&field, weight, leaving);
        fields[hop] = field;
        Step { e, b, a: field.a, bottlenecked: field.bottlenecked, ignored: field.ignored }
    }

    fn new_round(&self, link: &mut Link) {
        link.reset_max_e();
    }
    fn returned(&self, fields: &mut Vec<Field>) -> f64 {
        fields.iter().map(|f| f.a).fold(f64::INFINITY, f64::min)
    }
    fn allocated(fields: &Vec<Field>, hop: u16) -> Option<f64> {
        Some(fields[usize::from(hop)].a)
    }
    /// Section 4.1, "Control packet size", without the size of the flow and the round number: per link 4 bytes each for
    /// a and b and a bit each for s and the ignore bit; Tx_ctrl in 4 bytes; FIN in one bit.
    fn content_bytes(&self, hops: u16) -> u32 {
        (u32::from(hops) * 66 + 33).div_ceil(8)
    }
    fn watch(link: &Link) -> Vec<(&'static str, f64)> {
        vec![
            ("SumE", link.sum_e()),
            ("NumB", link.num_b()),
            ("MaxE", link.max_e),
            ("MaxE'", link.max_e_next),
        ]
    }
}
