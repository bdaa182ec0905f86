//! Fair: local max-min rates at every link, from a table of the flows' limit rates (PERC thesis, section 2.2,
//! Algorithms 1 and 2).
//!
//! Limit rates are per unit of weight, and a link divides its capacity by weight. A bottleneck rate that a link has not
//! computed yet is infinite, and so limits no flow.

use crate::perc::{self, FigureUpdate, Perc, Rule};
use std::collections::HashMap;
use subak_core::FlowId;
use subak_core::scheme::{Bound, Goal, Info, Params, SchemeKind, Settles, Visit};
use subak_core::{InputError, SubflowId};

/// Control packets circle between source and sink under the rule [`LocalMaxMin`].
pub type Fair = Perc<LocalMaxMin>;

/// Update rule of Fair.
#[derive(Debug, Clone)]
pub struct LocalMaxMin;

/// Field of a control packet for one link (PERC thesis, table 2.2), per unit of weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FairField {
    /// Allocation, bit/s per unit of weight.
    pub a: f64,
    /// Bottleneck rate, bit/s per unit of weight.
    pub b: f64,
}

/// Key of a subflow at a link: the flow, and the subflow's number in it.
type SubflowKey = (FlowId, SubflowId);

/// Entry of one flow at a link.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FairEntry {
    e: f64,
    weight: f64,
    key: SubflowKey,
}

/// State of a link: the limit rate of each flow.
#[derive(Debug, Clone)]
pub struct FairLink {
    capacity_bps: f64,
    limit: HashMap<SubflowKey, f64>,
    /// The entries of `limit` with their weights, in increasing order of the limit rate.
    sorted: Vec<FairEntry>,
}

impl FairLink {
    /// Limit rate stored for subflow 0 of `flow`, bit/s per unit of weight.
    pub fn limit(&self, flow: FlowId) -> Option<f64> {
        self.limit.get(&(flow, SubflowId(0))).copied()
    }

    fn place(&self, e: f64, key: SubflowKey) -> Result<usize, usize> {
        self.sorted.binary_search_by(|entry| entry.e.total_cmp(&e).then(entry.key.cmp(&key)))
    }

    fn forget(&mut self, key: SubflowKey) {
        if let Some(e) = self.limit.remove(&key)
            && let Ok(at) = self.place(e, key)
        {
            self.sorted.remove(at);
        }
    }

    fn store(&mut self, key: SubflowKey, e: f64, weight: f64) {
        self.limit.insert(key, e);
        if let Err(at) = self.place(e, key) {
            self.sorted.insert(at, FairEntry { e, weight, key });
        }
    }

    /// Algorithm 1 of the PERC thesis: local max-min rate of an unlimited flow of `weight`, given the other flows'
    /// limit rates; bit/s per unit of weight.
    fn local_rate(&self, weight: f64) -> f64 {
        let mut weight_b = weight + self.sorted.iter().map(|entry| entry.weight).sum::<f64>();
        let mut left = self.capacity_bps;
        let mut rate = left / weight_b;
        for entry in &self.sorted {
            if entry.e >= rate {
                break;
            }
            left -= entry.e * entry.weight;
            weight_b -= entry.weight;
            rate = left / weight_b;
        }
        rate
    }
}

impl Rule for LocalMaxMin {
    const INFO: Info = Info {
        name: "fair",
        about: "local max-min rates from per-flow state at links",
        paper: "PERC thesis, section 2.2, Algorithms 1 and 2",
        kind: SchemeKind::Proactive,
        lives_on_control: true,
        goal: Goal::MaxMin,
        weights: true,
        params: &[perc::CONTROL, perc::HEADROOM, perc::REVERSE, perc::RTO],
        settles: Settles { within: 0.02, rtts: 30.0 },
        bound: Bound::FourD,
        ..Info::DEFAULT
    };
    const ROUNDS: bool = false;
    const RECOVERS: bool = false;
    /// One field per link, then the field of a virtual link whose capacity is the flow's demand.
    type Fields = Vec<FairField>;
    type Link = FairLink;

    fn new(_params: &Params) -> Result<Self, InputError> {
        Ok(LocalMaxMin)
    }
    fn fields(&self, hops: u16) -> Vec<FairField> {
        let mut fields = vec![FairField { a: 0.0, b: f64::INFINITY }; usize::from(hops)];
        fields.push(FairField { a: f64::INFINITY, b: f64::INFINITY });
        fields
    }
    fn link(&self, capacity_bps: f64) -> FairLink {
        FairLink { capacity_bps, limit: HashMap::new(), sorted: Vec::new() }
    }
    fn resize(&self, link: &mut FairLink, capacity_bps: f64) {
        link.capacity_bps = capacity_bps;
    }

    fn update(
        &self,
        link: &mut FairLink,
        fields: &mut Vec<FairField>,
        visit: Visit,
        weight: f64,
        leaving: bool,
    ) -> FigureUpdate {
        let (hop, key) = (usize::from(visit.hop), (visit.flow, visit.subflow));
        link.forget(key);
        let b = link.local_rate(weight);
        let e = perc::least_other(fields, hop, |f| f.b);
        let a = b.min(e);
        fields[hop] = FairField { a, b };
        if !leaving {
            link.store(key, e, weight);
        }
        FigureUpdate { e, b, a, bottlenecked: b <= e, ignored: false }
    }

    /// Changes nothing: [`Rule::update`] replaces the weight in the link's table.
    fn reweigh(&self, _link: &mut FairLink, _fields: &Vec<FairField>, _visit: Visit, _was: f64, _weight: f64) {}

    fn demand(&self, fields: &mut Vec<FairField>, rate: f64) {
        fields.last_mut().expect("the virtual link is there").b = rate;
    }
    fn returned(&self, fields: &mut Vec<FairField>) -> f64 {
        fields.iter().map(|f| f.a).fold(f64::INFINITY, f64::min)
    }
    fn allocated(fields: &Vec<FairField>, hop: u16) -> Option<f64> {
        Some(fields[usize::from(hop)].a)
    }
    /// Size of the packet's content, bytes: 4 each for a and b of each link, 4 for Tx_ctrl (interval of control
    /// packets), and one bit for FIN (teardown).
    fn content_bytes(&self, hops: u16) -> u32 {
        (u32::from(hops) * 64 + 33).div_ceil(8)
    }
    /// Size of a link's state, bytes: a limit rate per flow in a map, and again in a sorted list.
    fn state_bytes(link: &FairLink) -> usize {
        size_of_val(link) + size_of_val(&*link.sorted) + link.limit.len() * size_of::<(SubflowKey, f64)>()
    }
    fn watch(_link: &FairLink) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
