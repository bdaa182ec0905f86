//! Impairments of packets and faults of links in a run.

use crate::event::ChangeId;
use std::collections::BTreeMap;
use subak_core::backend::{Impairment, Injected, Kinds, LinkChange};
use subak_core::rng::Stream;
use subak_core::{IdVec, LinkId, Ns};

/// A rule of random impairment of packets.
pub(crate) struct Rule {
    pub impairment: Impairment,
    pub kinds: Kinds,
    pub links: Option<Vec<LinkId>>,
    pub probability: f64,
    pub from_ns: Ns,
    pub until_ns: Ns,
}

/// All impairments of packets, and faults of links.
#[derive(Default)]
pub(crate) struct Impairments {
    pub rules: Vec<Rule>,
    /// Random stream of each link's impairments; empty without impairments.
    pub rngs: IdVec<LinkId, Stream>,
    pub has_downs: bool,
    /// Intervals in which links are down and drop their queues.
    pub drops: BTreeMap<LinkId, Vec<(Ns, Ns)>>,
    pub link_changes: IdVec<ChangeId, (Ns, LinkId, LinkChange)>,
}

impl Impairments {
    /// Those of a run with `faults`, without random streams.
    pub fn new(faults: &[Injected]) -> Self {
        let link_changes = Injected::link_changes(faults).into();
        let mut impairments = Impairments { link_changes, ..Impairments::default() };
        for fault in faults {
            match fault.clone() {
                Injected::Packets { impairment, kinds, links, probability, from_ns, until_ns } => {
                    impairments.rules.push(Rule { impairment, kinds, links, probability, from_ns, until_ns });
                }
                Injected::Down { link, down_ns, up_ns, keeps } => {
                    impairments.has_downs = true;
                    if !keeps {
                        impairments.drops.entry(link).or_default().push((down_ns, up_ns));
                    }
                }
                Injected::Restart { .. } | Injected::Capacity { .. } => {}
            }
        }
        impairments
    }

    /// Whether any packets may be impaired.
    #[inline]
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

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
