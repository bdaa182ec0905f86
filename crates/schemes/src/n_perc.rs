//! n-PERC: the naive algorithm without per-flow state (PERC thesis, section 3.1, Algorithm 4).
//!
//! It is s-PERC without MaxE, the link's bound that keeps bottleneck rates that are too low from spreading. No bound on
//! convergence is known. Weights are handled as in s-PERC.

use crate::perc::{self, FigureUpdate, Perc, Rule, Scale, Sums, Tie};
use subak_core::InputError;
use subak_core::scheme::{Goal, Info, Params, SchemeKind, Settles, Visit};

/// Control packets circle between source and sink under the rule [`Naive`].
pub type NPerc = Perc<Naive>;

/// Update rule of n-PERC.
#[derive(Debug, Clone)]
pub struct Naive {
    tie: Tie,
}

/// Field of a control packet for one link (PERC thesis, table 3.1), per unit of weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NPercField {
    /// Allocation, bit/s per unit of weight.
    pub a: f64,
    /// Bottleneck rate, bit/s per unit of weight.
    pub b: f64,
    /// Whether the flow is bottlenecked at this link (s = B).
    pub bottlenecked: bool,
}

impl NPercField {
    /// The field of a new flow.
    const NEW: NPercField = NPercField { a: 0.0, b: f64::INFINITY, bottlenecked: false };
}

/// State of a link: two numbers for any number of flows (it is [`Copy`]).
#[derive(Debug, Clone, Copy)]
pub struct NPercLink {
    scale: Scale,
    sums: Sums,
}

impl NPercLink {
    /// SumE, the allocations of flows bottlenecked at other links, bit/s; and NumB, the weights of flows bottlenecked
    /// here.
    pub fn sums(&self) -> (f64, f64) {
        (self.sums.sum_e(&self.scale), self.sums.num_b(&self.scale))
    }
}

impl Rule for Naive {
    const INFO: Info = Info {
        name: "n-perc",
        about: "s-PERC without the check that keeps rates that are too low from spreading",
        paper: "PERC thesis, section 3.1, Algorithm 4",
        kind: SchemeKind::Proactive,
        lives_on_control: true,
        goal: Goal::MaxMin,
        weights: true,
        params: &[perc::CONTROL, perc::HEADROOM, perc::REVERSE, perc::RTO, perc::TIE],
        settles: Settles { within: 0.02, rtts: 100.0 },
        ..Info::DEFAULT
    };
    const ROUNDS: bool = false;
    const RECOVERS: bool = false;
    /// One field per link, then the field of a virtual link whose capacity is the flow's demand.
    type Fields = Vec<NPercField>;
    type Link = NPercLink;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Naive { tie: Tie::read(params)? })
    }
    fn fields(&self, hops: u16) -> Vec<NPercField> {
        let mut fields = vec![NPercField::NEW; usize::from(hops)];
        fields.push(NPercField { a: f64::INFINITY, b: f64::INFINITY, bottlenecked: false });
        fields
    }
    fn link(&self, capacity_bps: f64) -> NPercLink {
        NPercLink { scale: Scale::new(capacity_bps), sums: Sums::NONE }
    }
    fn resize(&self, link: &mut NPercLink, capacity_bps: f64) {
        link.scale.resize(capacity_bps);
    }

    fn update(
        &self,
        link: &mut NPercLink,
        fields: &mut Vec<NPercField>,
        visit: Visit,
        weight: f64,
        leaving: bool,
    ) -> FigureUpdate {
        let hop = usize::from(visit.hop);
        if !fields[hop].bottlenecked {
            link.sums.assume_bottlenecked(fields[hop].a, weight, &link.scale);
        }
        let (left, num_b) = link.sums.left(weight, &link.scale);
        let b = left / num_b;
        let e = perc::least_other(fields, hop, |f| f.b);
        let field = NPercField { a: b.min(e), b, bottlenecked: self.tie.at_most(b, e) };
        if leaving {
            link.sums.uncount(weight, &link.scale);
        } else if !field.bottlenecked {
            link.sums.allocate_elsewhere(field.a, weight, &link.scale);
        }
        fields[hop] = field;
        FigureUpdate { e, b, a: field.a, bottlenecked: field.bottlenecked, ignored: false }
    }

    fn reweigh(&self, link: &mut NPercLink, fields: &Vec<NPercField>, visit: Visit, was: f64, weight: f64) {
        let old = fields[usize::from(visit.hop)];
        link.sums.reweigh((!old.bottlenecked).then_some(old.a), was, weight, &link.scale);
    }
    fn forgotten(&self, fields: &mut Vec<NPercField>, hop: u16) {
        fields[usize::from(hop)] = NPercField::NEW;
    }
    fn demand(&self, fields: &mut Vec<NPercField>, rate: f64) {
        fields.last_mut().expect("the virtual link is there").b = rate;
    }
    fn returned(&self, fields: &mut Vec<NPercField>) -> f64 {
        fields.iter().map(|f| f.a).fold(f64::INFINITY, f64::min)
    }
    fn allocated(fields: &Vec<NPercField>, hop: u16) -> Option<f64> {
        Some(fields[usize::from(hop)].a)
    }
    /// Size of the packet's content, bytes: for each link 4 each for a and b, and one bit for s; 4 for Tx_ctrl
    /// (interval of control packets); one bit for FIN (teardown).
    fn content_bytes(&self, hops: u16) -> u32 {
        (u32::from(hops) * 65 + 33).div_ceil(8)
    }
    fn watch(link: &NPercLink) -> Vec<(&'static str, f64)> {
        let (sum_e, num_b) = link.sums();
        vec![("SumE", sum_e), ("NumB", num_b)]
    }
}
