//! Impairments and faults of a run.

use std::collections::BTreeMap;
use subak_core::backend::{Impairment, Kinds, LinkChange, Machine};
use subak_core::rng::Stream;
use subak_core::{IdVec, LinkId, Ns};

subak_core::id! {
    /// Index of a link change in time order.
    pub(crate) struct ChangeId(u32);
    /// Index of a state machine's restart in the list of restarts.
    pub(crate) struct RestartId(u32);
}

/// A rule of random impairment of packets.
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
    /// Random stream of each link's impairments; empty without impairments.
    pub rngs: IdVec<LinkId, Stream>,
    pub restarts: IdVec<RestartId, Machine>,
    pub has_downs: bool,
    /// Intervals in which links are down and drop their queues.
    pub drops: BTreeMap<LinkId, Vec<(Ns, Ns)>>,
    pub link_changes: IdVec<ChangeId, (Ns, LinkId, LinkChange)>,
}

impl Impairments {
    /// Whether `link` is down at `now_ns` by a fault that drops its queue.
    pub fn drops_at(&self, link: LinkId, now_ns: Ns) -> bool {
        self.drops.get(&link).is_some_and(|spans| spans.iter().any(|&(from, until)| from <= now_ns && now_ns < until))
    }

    /// Adds a change at `now_ns` that was not scheduled.
    pub fn add_change(&mut self, now_ns: Ns, link: LinkId, change: LinkChange) -> ChangeId {
        let spans = self.drops.entry(link).or_default();
        match change {
            LinkChange::Down => spans.push((now_ns, Ns::MAX)),
            LinkChange::Up => {
                if let Some((_, until_ns)) = spans.iter_mut().find(|span| span.1 == Ns::MAX) {
                    *until_ns = now_ns;
                }
            }
            LinkChange::Capacity(_) => {}
        }
        self.link_changes.push((now_ns, link, change))
    }
}
