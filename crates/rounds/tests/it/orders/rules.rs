//! The rules that are searched: those of s-PERC and s-PERC*, and ones with a planted defect.

use super::model::Explored;
use subak_core::InputError;
use subak_core::scheme::{Info, Params, Visit};
use subak_schemes::perc::{FigureUpdate, Rule};
use subak_schemes::s_perc::{SPercFields, Stateless};
use subak_schemes::s_perc_star::{Numbered, Robust};

impl Explored for Robust {
    fn of_links(fields: &Numbered) -> &SPercFields {
        &fields.fields
    }
    fn round_numbers(fields: &Numbered) -> Option<&[u8]> {
        Some(&fields.round_number)
    }
}

impl Explored for Stateless {
    fn of_links(fields: &SPercFields) -> &SPercFields {
        fields
    }
    fn round_numbers(_fields: &SPercFields) -> Option<&[u8]> {
        None
    }
}

/// A defect of a link.
pub trait Defect: Clone + std::fmt::Debug + Send + 'static {
    /// Whether the link forgets to end its round, so that it never adopts the sums over a round's packets.
    const NEVER_ENDS: bool = false;
    /// Whether the link forgets to remove a flow at its teardown.
    const KEEPS_ENDED: bool = false;
    /// Whether the link forgets to set the ignore bit.
    const PROPAGATES_ALL: bool = false;
}

#[derive(Debug, Clone)]
pub struct NeverEnds;
#[derive(Debug, Clone)]
pub struct KeepsEnded;
#[derive(Debug, Clone)]
pub struct PropagatesAll;

impl Defect for NeverEnds {
    const NEVER_ENDS: bool = true;
}
impl Defect for KeepsEnded {
    const KEEPS_ENDED: bool = true;
}
impl Defect for PropagatesAll {
    const PROPAGATES_ALL: bool = true;
}

/// The rule `R` with the defect `D`.
#[derive(Debug, Clone)]
pub struct Defective<R, D>(R, std::marker::PhantomData<D>);

/// Fields of s-PERC in a packet, to change.
pub trait OfLinks: Explored {
    fn of_links_mut(fields: &mut Self::Fields) -> &mut SPercFields;
}

impl OfLinks for Robust {
    fn of_links_mut(fields: &mut Numbered) -> &mut SPercFields {
        &mut fields.fields
    }
}
impl OfLinks for Stateless {
    fn of_links_mut(fields: &mut SPercFields) -> &mut SPercFields {
        fields
    }
}

impl<R: OfLinks, D: Defect> Rule for Defective<R, D> {
    const INFO: Info = R::INFO;
    const ROUNDS: bool = R::ROUNDS;
    const RECOVERS: bool = R::RECOVERS;
    type Fields = R::Fields;
    type Link = R::Link;

    fn new(params: &Params) -> Result<Self, InputError> {
        Ok(Defective(R::new(params)?, std::marker::PhantomData))
    }
    fn fields(&self, hops: u16) -> R::Fields {
        self.0.fields(hops)
    }
    fn link(&self, capacity_bps: f64) -> R::Link {
        self.0.link(capacity_bps)
    }
    fn resize(&self, link: &mut R::Link, capacity_bps: f64) {
        self.0.resize(link, capacity_bps);
    }
    fn update(
        &self,
        link: &mut R::Link,
        fields: &mut R::Fields,
        visit: Visit,
        weight: f64,
        leaving: bool,
    ) -> FigureUpdate {
        let step = self.0.update(link, fields, visit, weight, leaving && !D::KEEPS_ENDED);
        if D::PROPAGATES_ALL {
            R::of_links_mut(fields).links[usize::from(visit.hop)].ignored = false;
        }
        step
    }
    fn reweigh(&self, link: &mut R::Link, fields: &R::Fields, visit: Visit, was: f64, weight: f64) {
        self.0.reweigh(link, fields, visit, was, weight);
    }
    fn new_round(&self, link: &mut R::Link) {
        if !D::NEVER_ENDS {
            self.0.new_round(link);
        }
    }
    fn demand(&self, fields: &mut R::Fields, rate: f64) {
        self.0.demand(fields, rate);
    }
    fn returned(&self, fields: &mut R::Fields) -> f64 {
        self.0.returned(fields)
    }
    fn allocated(fields: &R::Fields, hop: u16) -> Option<f64> {
        R::allocated(fields, hop)
    }
    fn content_bytes(&self, hops: u16) -> u32 {
        self.0.content_bytes(hops)
    }
    fn watch(link: &R::Link) -> Vec<(&'static str, f64)> {
        R::watch(link)
    }
}

impl<R: OfLinks, D: Defect> Explored for Defective<R, D> {
    fn of_links(fields: &R::Fields) -> &SPercFields {
        R::of_links(fields)
    }
    fn round_numbers(fields: &R::Fields) -> Option<&[u8]> {
        R::round_numbers(fields)
    }
}
