//! Charny: links write one rate into the packet in turn (Charny, Clark and Jain, ICC 1995; PERC thesis, section 2.7).
//!
//! There is no public code, and the thesis describes it in words only. A link records each flow's stamped rate, and
//! marks the flow if that is below the link's advertised rate mu:
//!
//! ```text
//! mu = (C - sum of marked rates) / (number of flows not marked), or, with all marked, C - sum + the largest
//! ```
//!
//! After each change, flows marked above the new mu lose their mark, and mu is computed once more. A packet that
//! arrives with at least mu leaves with mu and a bit set. If it returns with the bit clear, no link limited the flow,
//! and the next packet requests the maximum again. An old bottleneck must release the flow before a new one can stamp
//! it, which makes Charny slower than Fair. Rates are per unit of weight, as in the other PERC schemes.

use crate::perc::{self, FigureUpdate, Perc, Rule, Tie};
use std::collections::BTreeMap;
use subak_core::scheme::{Bound, Goal, Info, Params, SchemeKind, Settles, Visit};
use subak_core::{FlowId, InputError, SubflowId};

/// Charny's scheme: control packets circle between source and sink under the rule [`Stamped`].
pub type Charny = Perc<Stamped>;

/// Update rule of Charny.
#[derive(Debug, Clone)]
pub struct Stamped {
    tie: Tie,
}

/// Fields of a control packet, shared by all links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CharnyFields {
    /// Stamped rate, bit/s per unit of weight.
    pub rate: f64,
    /// Whether a link limited the flow on the packet's present trip.
    pub limited: bool,
}

/// Entry of one flow at a link.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CharnyEntry {
    rate: f64,
    weight: f64,
    marked: bool,
}

/// State of a link: recorded rate and mark of each flow.
#[derive(Debug, Clone)]
pub struct CharnyLink {
    capacity_bps: f64,
    advertised: f64,
    flows: BTreeMap<(FlowId, SubflowId), CharnyEntry>,
}

impl CharnyLink {
    /// Advertised rate under the present marks.
    fn rate_by_marks(&self) -> f64 {
        let (mut left, mut free, mut largest) = (self.capacity_bps, 0.0, None::<CharnyEntry>);
        for &entry in self.flows.values() {
            if !entry.marked {
                free += entry.weight;
                continue;
            }
            left -= entry.rate * entry.weight;
            if largest.is_none_or(|l| entry.rate > l.rate) {
                largest = Some(entry);
            }
        }
        match largest {
            _ if free > 0.0 => left.max(0.0) / free,
            Some(entry) => (left / entry.weight + entry.rate).max(0.0),
            None => self.capacity_bps,
        }
    }

    fn advertise(&mut self, tie: Tie) {
        self.advertised = self.rate_by_marks();
        let mut changed = false;
        for entry in self.flows.values_mut().filter(|entry| entry.marked) {
            if tie.below(self.advertised, entry.rate) {
                entry.marked = false;
                changed = true;
            }
        }
        if changed {
            self.advertised = self.rate_by_marks();
        }
    }
}

impl Rule for Stamped {
    const INFO: Info = Info {
        name: "charny",
        about: "one rate stamped by the links in turn, with per-flow marks at links",
        paper: "PERC thesis, section 2.7; Charny, Clark and Jain, ICC 1995",
        kind: SchemeKind::Proactive,
        lives_on_control: true,
        goal: Goal::MaxMin,
        weights: true,
        params: &[perc::CONTROL, perc::HEADROOM, perc::REVERSE, perc::RTO, perc::TIE],
        settles: Settles { within: 0.02, rtts: 60.0 },
        bound: Bound::FourN,
        ..Info::DEFAULT
    };
    const ROUNDS: bool = false;
    const RECOVERS: bool = false;
    type Fields = CharnyFields;
    type Link = CharnyLink;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Stamped { tie: Tie::read(params)? })
    }
    fn fields(&self, _hops: u16) -> CharnyFields {
        CharnyFields { rate: f64::INFINITY, limited: false }
    }
    fn link(&self, capacity_bps: f64) -> CharnyLink {
        CharnyLink { capacity_bps, advertised: capacity_bps, flows: BTreeMap::new() }
    }
    fn resize(&self, link: &mut CharnyLink, capacity_bps: f64) {
        link.capacity_bps = capacity_bps;
        link.advertise(self.tie);
    }

    fn update(
        &self,
        link: &mut CharnyLink,
        fields: &mut CharnyFields,
        visit: Visit,
        weight: f64,
        leaving: bool,
    ) -> FigureUpdate {
        let (key, e) = ((visit.flow, visit.subflow), fields.rate);
        if leaving {
            link.flows.remove(&key);
        } else {
            let marked = self.tie.below(e, link.advertised);
            link.flows.insert(key, CharnyEntry { rate: e, weight, marked });
        }
        link.advertise(self.tie);
        let bottlenecked = !self.tie.below(e, link.advertised);
        if bottlenecked {
            *fields = CharnyFields { rate: link.advertised, limited: true };
        }
        FigureUpdate { e, b: link.advertised, a: fields.rate, bottlenecked, ignored: false }
    }

    /// Changes nothing: [`Rule::update`] replaces the weight in the link's table.
    fn reweigh(&self, _link: &mut CharnyLink, _fields: &CharnyFields, _visit: Visit, _was: f64, _weight: f64) {}

    /// Sets the packet's initial rate to the flow's demand.
    fn demand(&self, fields: &mut CharnyFields, rate: f64) {
        fields.rate = fields.rate.min(rate);
    }
    fn returned(&self, fields: &mut CharnyFields) -> f64 {
        let rate = fields.rate;
        if !fields.limited {
            fields.rate = f64::INFINITY;
        }
        fields.limited = false;
        rate
    }
    fn allocated(_fields: &CharnyFields, _hop: u16) -> Option<f64> {
        None
    }
    /// Size of the packet's content, bytes: 4 each for the rate and Tx_ctrl (interval of control packets), and two
    /// bits.
    fn content_bytes(&self, _hops: u16) -> u32 {
        9
    }
    /// Size of a link's state, bytes: the advertised rate, and a rate, weight and mark per flow.
    fn state_bytes(link: &CharnyLink) -> usize {
        size_of_val(link) + link.flows.len() * size_of::<((FlowId, SubflowId), CharnyEntry)>()
    }
    fn watch(link: &CharnyLink) -> Vec<(&'static str, f64)> {
        vec![("advertised", link.advertised)]
    }
}
