//! s-PERC: exact weighted max-min without per-flow state at links (PERC thesis, section 3.2, Algorithms 5 and 6).
//!
//! A link stores three values. SumE is the sum of the allocations of flows bottlenecked elsewhere, and NumB the weight
//! of those bottlenecked here. MaxE is an upper bound on the largest allocation of a flow bottlenecked elsewhere. At
//! the end of each round it is set to the maximum over this round, MaxE'. The link's bottleneck rate is b = (C - SumE)
//! / NumB, propagated to other links only if it is at least MaxE.
//!
//! Weighted: rates in the packet are per unit of weight, NumB counts weight, SumE the weighted allocations. With all
//! weights 1 this is the thesis' algorithm, except for ties within a relative 1e-9 and sums in fixed point. A packet is
//! compared with MaxE before its own allocation is added. The comparisons b <= e and b < MaxE are done by
//! multiplication, as in section 4.1, so that they are exact even if the division is approximate.
//!
//! With `compact` the packet carries only the least propagated rate and its link (section 4.1, "Control packet
//! size").

use crate::perc::division::PercDivision;
use crate::perc::{self, FigureUpdate, Perc, Rule, Scale, Sums, Tie};
use subak_core::InputError;
use subak_core::scheme::{Bound, Goal, Info, OnHosts, Param, Params, SchemeKind, Settles, Visit};

/// Control packets circle between source and sink under the rule [`Stateless`].
pub type SPerc = Perc<Stateless>;

/// Parameter `compact`: whether packets carry only the smallest bottleneck rate and its link.
pub const COMPACT: Param =
    Param::flag("compact", false, "packets carry the least bottleneck rate and its link in place of one rate a link");

/// Update rule of s-PERC.
#[derive(Debug, Clone, Default)]
pub struct Stateless {
    arithmetic: PercArithmetic,
    compact: bool,
}

/// Field of a control packet for one link (PERC thesis, table 3.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SPercField {
    /// Allocation, per unit of weight.
    pub a: f64,
    /// Bottleneck rate, per unit of weight.
    pub b: f64,
    /// Whether the flow is bottlenecked at this link (s = B).
    pub bottlenecked: bool,
    /// The ignore bit: whether other links ignore `b`.
    pub ignored: bool,
}

impl SPercField {
    /// The field of a new flow: state E with allocation 0, and an ignored rate.
    pub const NEW: SPercField = SPercField { a: 0.0, b: 0.0, bottlenecked: false, ignored: true };
}

/// Fields of a control packet.
#[derive(Debug, Clone, PartialEq)]
pub struct SPercFields {
    /// Fields of the links of the path.
    pub links: Vec<SPercField>,
    /// With `compact`: smallest propagated rate and its hop, in place of the links' rates and ignore bits.
    pub least: Option<(f64, u16)>,
    /// b\[l0\]: rate of the virtual link for the flow's demand, per unit of weight.
    pub own: f64,
}

impl SPercFields {
    /// Fields of a new flow.
    pub fn new(hops: u16, compact: bool) -> Self {
        let links = vec![SPercField::NEW; usize::from(hops)];
        SPercFields { links, least: compact.then_some((f64::INFINITY, 0)), own: f64::INFINITY }
    }

    /// The smallest rate that any link except the `hop`-th propagates, including the virtual link (PERC thesis,
    /// Algorithm 6, line 9).
    #[inline]
    pub fn limit_rate(&self, hop: u16) -> f64 {
        let others = match self.least {
            Some((_, from)) if from == hop => f64::INFINITY,
            Some((rate, _)) => rate,
            None => perc::least_other(&self.links, usize::from(hop), |f| if f.ignored { f64::INFINITY } else { f.b }),
        };
        others.min(self.own)
    }

    /// Sets the field of the `hop`-th link (PERC thesis, Algorithm 6, lines 13-15).
    #[inline]
    pub fn write(&mut self, hop: u16, field: SPercField) {
        self.links[usize::from(hop)] = field;
        if let Some((rate, from)) = &mut self.least {
            let b = if field.ignored { f64::INFINITY } else { field.b };
            if *from == hop || b < *rate {
                (*rate, *from) = (b, hop);
            }
        }
    }

    /// The flow's rate per unit of weight.
    pub fn rate(&self) -> f64 {
        self.links.iter().map(|f| f.a).fold(f64::INFINITY, f64::min)
    }
}

/// State of a link: a few numbers for any number of flows (it is [`Copy`]).
#[derive(Debug, Clone, Copy)]
pub struct SPercLink {
    scale: Scale,
    sums: Sums,
    max_e: MaxE,
}

/// MaxE: largest allocation, per unit of weight, of a flow bottlenecked at another link.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MaxE {
    /// Largest allocation of this round and the previous one (MaxE).
    pub now: f64,
    /// Largest allocation of this round (MaxE').
    pub next: f64,
}

impl MaxE {
    /// Records an allocation (PERC thesis, Algorithm 6, lines 21-22).
    #[inline]
    pub fn saw(&mut self, a: f64) {
        self.now = self.now.max(a);
        self.next = self.next.max(a);
    }

    /// Begins a round (PERC thesis, Algorithm 5).
    pub fn reset(&mut self) {
        self.now = std::mem::take(&mut self.next);
    }
}

/// Arithmetic of a link: division, and comparison with a tolerance.
#[derive(Debug, Clone, Default)]
pub struct PercArithmetic {
    division: PercDivision,
    tie: Tie,
}

impl PercArithmetic {
    /// Reads the parameters `division_kb` and `tie`. The tolerance covers the division's error: otherwise 3 of 100
    /// random networks oscillate with tables of 340 KB.
    pub fn read(params: &Params) -> Result<Self, InputError> {
        let division = PercDivision::read(params)?;
        Ok(PercArithmetic { tie: Tie::read(params)?.covering(division.error()), division })
    }

    /// Classifies a flow that counts as bottlenecked here and has a limit rate of `e` from other links (PERC thesis,
    /// Algorithm 6, lines 8-15).
    #[inline]
    pub fn classify(&self, (left, num_b): (f64, f64), e: f64, max_e: f64) -> SPercField {
        let b = self.division.divide(left, num_b);
        let bottlenecked = self.tie.at_most(left, e * num_b);
        let a = if bottlenecked { b.min(e) } else { e };
        SPercField { a, b, bottlenecked, ignored: self.tie.below(left, max_e * num_b) }
    }
}

impl SPercLink {
    /// A link of `capacity_bps` without flows.
    pub fn new(capacity_bps: f64) -> Self {
        SPercLink { scale: Scale::new(capacity_bps), sums: Sums::NONE, max_e: MaxE::default() }
    }
    /// Sum of the allocations of flows bottlenecked elsewhere, bit/s.
    pub fn sum_e(&self) -> f64 {
        self.sums.sum_e(&self.scale)
    }
    /// Weight of the flows bottlenecked here.
    pub fn num_b(&self) -> f64 {
        self.sums.num_b(&self.scale)
    }
    /// MaxE and MaxE': largest allocations of flows bottlenecked elsewhere, per unit of weight.
    pub fn max_e(&self) -> MaxE {
        self.max_e
    }
}

impl Rule for Stateless {
    const INFO: Info = Info {
        name: "s-perc",
        about: "exact max-min by control packets, without per-flow state at links",
        paper: "PERC thesis, section 3.2, Algorithms 5 and 6",
        kind: SchemeKind::Proactive,
        lives_on_control: true,
        goal: Goal::MaxMin,
        weights: true,
        params: &[
            perc::CONTROL,
            perc::HEADROOM,
            perc::REVERSE,
            perc::RTO,
            perc::ROUND,
            perc::FIRST_ROUND,
            perc::DIVISION,
            perc::TIE,
            COMPACT,
        ],
        settles: Settles { within: 0.02, rtts: 60.0 },
        bound: Bound::SixW2,
        on_hosts: OnHosts::Control,
        shares_links: Info::DEFAULT.shares_links,
    };
    const ROUNDS: bool = true;
    const RECOVERS: bool = false;
    type Fields = SPercFields;
    type Link = SPercLink;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Stateless { arithmetic: PercArithmetic::read(params)?, compact: params.flag("compact") })
    }
    fn fields(&self, hops: u16) -> SPercFields {
        SPercFields::new(hops, self.compact)
    }
    fn link(&self, capacity_bps: f64) -> SPercLink {
        SPercLink::new(capacity_bps)
    }
    fn resize(&self, link: &mut SPercLink, capacity_bps: f64) {
        link.scale.resize(capacity_bps);
    }

    fn update(
        &self,
        link: &mut SPercLink,
        fields: &mut SPercFields,
        visit: Visit,
        weight: f64,
        leaving: bool,
    ) -> FigureUpdate {
        let old = fields.links[usize::from(visit.hop)];
        if !old.bottlenecked {
            link.sums.assume_bottlenecked(old.a, weight, &link.scale);
        }
        let e = fields.limit_rate(visit.hop);
        let field = self.arithmetic.classify(link.sums.left(weight, &link.scale), e, link.max_e.now);
        fields.write(visit.hop, field);
        if leaving {
            link.sums.uncount(weight, &link.scale);
        } else if !field.bottlenecked {
            link.sums.allocate_elsewhere(field.a, weight, &link.scale);
            link.max_e.saw(field.a);
        }
        FigureUpdate { e, b: field.b, a: field.a, bottlenecked: field.bottlenecked, ignored: field.ignored }
    }

    fn reweigh(&self, link: &mut SPercLink, fields: &SPercFields, visit: Visit, was: f64, weight: f64) {
        let old = fields.links[usize::from(visit.hop)];
        link.sums.reweigh((!old.bottlenecked).then_some(old.a), was, weight, &link.scale);
    }
    fn forgotten(&self, fields: &mut SPercFields, hop: u16) {
        fields.write(hop, SPercField::NEW);
    }
    fn new_round(&self, link: &mut SPercLink) {
        link.max_e.reset();
    }
    fn demand(&self, fields: &mut SPercFields, rate: f64) {
        fields.own = rate;
    }
    fn returned(&self, fields: &mut SPercFields) -> f64 {
        fields.rate()
    }
    fn allocated(fields: &SPercFields, hop: u16) -> Option<f64> {
        Some(fields.links[usize::from(hop)].a)
    }
    /// Size of the packet's content, bytes: that of s-PERC* without the flow's remaining size and the round numbers.
    fn content_bytes(&self, hops: u16) -> u32 {
        perc::content_bytes(hops, self.compact, false)
    }
    fn watch(link: &SPercLink) -> Vec<(&'static str, f64)> {
        vec![("SumE", link.sum_e()), ("NumB", link.num_b()), ("MaxE", link.max_e.now), ("MaxE'", link.max_e.next)]
    }
}
