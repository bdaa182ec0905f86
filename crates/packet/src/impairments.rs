//! Impairments and faults of a run.

use std::collections::BTreeMap;
use subak_core::backend::{Impairment, Kinds, LinkChange, Machine};
use subak_core::rng::Stream;
use subak_core::{IdVec, LinkId, Ns};

subak_core::id! {
    /// A change of a link by its place in the order of time.
    pub(crate) struct ChangeId(u32);
    /// A restart of a machine by its place in the list of faults.
    pub(crate) struct RestartId(u32);
}

/// A rule by which something happens to packets.
pub(crate) struct Rule {
    pub impairment: Impairment,
    pub kinds: Kinds,
    pub links: Option<Vec<LinkId>>,
    pub probability: f64,
    pub from_ns: Ns,
    pub until_ns: Ns,
}

/// All impairments and faults of the run.
#[derive(Default)]
pub(crate) struct Impairments {
    pub rules: Vec<Rule>,
    /// Of what happens to packets: one a link, where anything does.
    pub rngs: IdVec<LinkId, Stream>,
    pub restarts: IdVec<RestartId, Machine>,
    pub has_downs: bool,
    /// From when to when links are down and drop what waits.
    pub drops: BTreeMap<LinkId, Vec<(Ns, Ns)>>,
    pub link_changes: IdVec<ChangeId, (Ns, LinkId, LinkChange)>,
}

impl Impairments {
    /// Whether a fault holds `link` down at `now_ns` that drops what waits before it.
    pub fn drops_at(&self, link: LinkId, now_ns: Ns) -> bool {
        self.drops.get(&link).is_some_and(|spans| spans.iter().any(|&(from, until)| from <= now_ns && now_ns < until))
    }
}
