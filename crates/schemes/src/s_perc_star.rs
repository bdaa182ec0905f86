//! s-PERC*: s-PERC that recovers from lost control packets (PERC thesis, section 4.1, Algorithms 8 and 9).
//!
//! In addition to SumE and NumB, a link sums the content of this round's packets, starting from 0 in each round
//! (SumE', NumB'). It adopts these sums at the round's end: a lost packet's contribution is gone after two rounds.
//! The packet carries the number of the link's round in which it was counted last. The source restarts a flow when
//! its packet has not returned within RTO_ctrl.
//!
//! Necessary departures from the thesis: roundNumber\[l\] is set to the link's (Algorithm 8 adds one, which never
//! catches up for a new flow); lines 14 and 17 are as in the errata of the thesis, line 14 inside the inner condition
//! and 17 outside the outer one; the round number is one byte that wraps from 255 to 1, and 0 marks a packet not
//! counted yet. A number from exactly 255 rounds ago would be mistaken for the present one, but no flow is silent for
//! that long.
//!
//! The packet also carries the rate of a virtual link of the flow's own: the flow's remaining bytes over an RTT. A link
//! counts the flows with a packet in each round, so that N too recovers from lost packets.

use crate::perc::{self, FigureUpdate, Perc, Rule, Scale, Sums};
use crate::s_perc::{COMPACT, MaxE, PercArithmetic, SPercFields};
use subak_core::InputError;
use subak_core::scheme::{Bound, Goal, Info, OnHosts, Params, SchemeKind, Settles, Visit};

/// The scheme s-PERC*.
pub type SPercStar = Perc<Robust>;

/// Update rule of s-PERC*.
#[derive(Debug, Clone, Default)]
pub struct Robust {
    arithmetic: PercArithmetic,
    compact: bool,
}

/// Fields of a control packet (PERC thesis, table 4.1).
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    /// The fields of s-PERC.
    pub fields: SPercFields,
    /// For each link, the number of its round in which it last counted the packet; 0 if it has not.
    pub round_number: Vec<u8>,
}

/// State of a link: a few numbers for any number of flows (it is [`Copy`]).
#[derive(Debug, Clone, Copy)]
pub struct SPercStarLink {
    scale: Scale,
    sums: Sums,
    max_e: MaxE,
    /// SumE' and NumB': sums over the packets of this round alone.
    shadow: Sums,
    round_number: u8,
    /// N: number of flows over this link.
    flows: u32,
    /// Number of flows with a packet in this round.
    seen: u32,
}

impl SPercStarLink {
    /// SumE, the allocations of flows bottlenecked at other links, bit/s; and NumB, the weights of flows bottlenecked
    /// here.
    pub fn sums(&self) -> (f64, f64) {
        (self.sums.sum_e(&self.scale), self.sums.num_b(&self.scale))
    }
    /// SumE', bit/s, and NumB': the sums over the packets of this round alone.
    pub fn shadow(&self) -> (f64, f64) {
        (self.shadow.sum_e(&self.scale), self.shadow.num_b(&self.scale))
    }
}

impl Rule for Robust {
    const INFO: Info = Info {
        name: "s-perc-star",
        about: "s-PERC that recovers from lost control packets",
        paper: "PERC thesis, section 4.1, Algorithms 8 and 9",
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
            perc::SHORT,
            perc::DEMAND,
        ],
        settles: Settles { within: 0.02, rtts: 60.0 },
        bound: Bound::SixW2,
        on_hosts: OnHosts::Control,
        shares_links: Info::DEFAULT.shares_links,
    };
    const ROUNDS: bool = true;
    const RECOVERS: bool = true;
    const NAMES_OWN_LINK: bool = true;
    type Fields = Numbered;
    type Link = SPercStarLink;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Robust { arithmetic: PercArithmetic::read(params)?, compact: params.flag("compact") })
    }
    fn fields(&self, hops: u16) -> Numbered {
        Numbered { fields: SPercFields::new(hops, self.compact), round_number: vec![0; usize::from(hops)] }
    }
    fn link(&self, capacity_bps: f64) -> SPercStarLink {
        SPercStarLink {
            scale: Scale::new(capacity_bps),
            sums: Sums::NONE,
            max_e: MaxE::default(),
            shadow: Sums::NONE,
            round_number: 1,
            flows: 0,
            seen: 0,
        }
    }
    fn resize(&self, link: &mut SPercStarLink, capacity_bps: f64) {
        link.scale.resize(capacity_bps);
    }

    fn update(
        &self,
        link: &mut SPercStarLink,
        packet: &mut Numbered,
        visit: Visit,
        weight: f64,
        leaving: bool,
    ) -> FigureUpdate {
        let Numbered { fields, round_number } = packet;
        let old = fields.links[usize::from(visit.hop)];
        let scale = &link.scale;
        if !old.bottlenecked {
            link.sums.assume_bottlenecked(old.a, weight, scale);
        }
        let seen = &mut round_number[usize::from(visit.hop)];
        if *seen != link.round_number {
            link.shadow.count(weight, scale);
            link.seen += 1;
            link.flows += u32::from(*seen == 0);
        } else if !old.bottlenecked {
            link.shadow.assume_bottlenecked(old.a, weight, scale);
        }
        *seen = link.round_number;
        let e = fields.limit_rate(visit.hop);
        let field = self.arithmetic.classify(link.sums.left(weight, scale), e, link.max_e.now);
        fields.write(visit.hop, field);
        if leaving {
            link.sums.uncount(weight, scale);
            link.shadow.uncount(weight, scale);
            link.seen = link.seen.saturating_sub(1);
            link.flows = link.flows.saturating_sub(1);
        } else if !field.bottlenecked {
            link.sums.allocate_elsewhere(field.a, weight, scale);
            link.shadow.allocate_elsewhere(field.a, weight, scale);
            link.max_e.saw(field.a);
        }
        FigureUpdate { e, b: field.b, a: field.a, bottlenecked: field.bottlenecked, ignored: field.ignored }
    }

    fn reweigh(&self, link: &mut SPercStarLink, packet: &Numbered, visit: Visit, was: f64, weight: f64) {
        let hop = usize::from(visit.hop);
        let old = packet.fields.links[hop];
        let elsewhere = (!old.bottlenecked).then_some(old.a);
        link.sums.reweigh(elsewhere, was, weight, &link.scale);
        if packet.round_number[hop] == link.round_number {
            link.shadow.reweigh(elsewhere, was, weight, &link.scale);
        }
    }
    fn new_round(&self, link: &mut SPercStarLink) {
        link.max_e.reset();
        link.sums = std::mem::replace(&mut link.shadow, Sums::NONE);
        link.round_number = link.round_number.checked_add(1).unwrap_or(1);
        link.flows = std::mem::take(&mut link.seen);
    }
    fn demand(&self, packet: &mut Numbered, rate: f64) {
        packet.fields.own = rate;
    }
    fn flows(link: &SPercStarLink) -> Option<u32> {
        Some(link.flows)
    }
    fn returned(&self, packet: &mut Numbered) -> f64 {
        packet.fields.rate()
    }
    fn allocated(packet: &Numbered, hop: u16) -> Option<f64> {
        Some(packet.fields.links[usize::from(hop)].a)
    }
    fn content_bytes(&self, hops: u16) -> u32 {
        perc::content_bytes(hops, self.compact, true)
    }
    fn watch(link: &SPercStarLink) -> Vec<(&'static str, f64)> {
        let ((sum_e, num_b), (sum_e_next, num_b_next)) = (link.sums(), link.shadow());
        vec![
            ("SumE", sum_e),
            ("NumB", num_b),
            ("MaxE", link.max_e.now),
            ("MaxE'", link.max_e.next),
            ("SumE'", sum_e_next),
            ("NumB'", num_b_next),
            ("roundNumber", f64::from(link.round_number)),
        ]
    }
}
