//! Links of a fault: named links, links of nodes, or a fraction of links selected at random by each seed.

use super::Planned;
use crate::spec::topology::{Topology, unknown_link, unknown_name};
use std::collections::BTreeSet;
use subak_core::backend::Injected;
use subak_core::keys::each_of;
use subak_core::quantity::quoted;
use subak_core::rng::{Stream, mix};
use subak_core::section::Section;
use subak_core::{InputError, LinkId, NodeId, NodeKind, Ns};

/// Fate of the packets queued at a link that goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueuedFate {
    /// Queued packets are dropped, and so are later arrivals.
    Dropped,
    /// Packets stay in the queue until the link is up again.
    Kept,
}

/// Change of a link by a fault.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CableEvent {
    /// Outages as (start, end), ns, and the fate of queued packets.
    Down(Vec<(Ns, Ns)>, QueuedFate),
    /// New capacity, bit/s, and the time of the change, ns.
    Capacity(f64, Ns),
}

impl CableEvent {
    fn at(&self, link: LinkId) -> Vec<Injected> {
        match *self {
            CableEvent::Down(ref times, waiting) => {
                let keeps = waiting == QueuedFate::Kept;
                times.iter().map(|&(down_ns, up_ns)| Injected::Down { link, down_ns, up_ns, keeps }).collect()
            }
            CableEvent::Capacity(capacity_bps, at_ns) => vec![Injected::Capacity { link, capacity_bps, at_ns }],
        }
    }
}

/// A fault of `count` cables selected at random. A cable is a link, with its reverse link if both directions fail.
#[derive(Debug, Clone)]
pub(crate) struct Breakdown {
    pub cables: Vec<Vec<LinkId>>,
    pub count: usize,
    pub event: CableEvent,
}

impl Breakdown {
    /// The fault on the cables that `seed` selects; `place` is the fault's index in the spec.
    pub fn injected(&self, seed: u64, place: usize) -> Vec<Injected> {
        let mut order: Vec<usize> = (0..self.cables.len()).collect();
        Stream::new(seed ^ mix(place as u64), "faults").shuffle(&mut order);
        let mut chosen: Vec<LinkId> = order.into_iter().take(self.count).flat_map(|k| self.cables[k].clone()).collect();
        chosen.sort_unstable();
        chosen.iter().flat_map(|&link| self.event.at(link)).collect()
    }
}

/// Cables of a fault, and the number of those that fail; `None`: all fail.
pub(super) struct Broken {
    cables: Vec<Vec<LinkId>>,
    count: Option<usize>,
}

impl Broken {
    pub fn with(self, event: CableEvent) -> Planned {
        let Broken { cables, count } = self;
        if let Some(count) = count {
            return Planned { known: Vec::new(), drawn: Some(Breakdown { cables, count, event }) };
        }
        let links: BTreeSet<LinkId> = cables.into_iter().flatten().collect();
        Planned { known: links.into_iter().flat_map(|link| event.at(link)).collect(), drawn: None }
    }
}

/// Reads the keys `link`, `links`, `node`, `nodes`, `share` and `both`; records errors in `section`.
pub(super) fn read(section: &mut Section, topology: Option<&Topology>) -> Broken {
    let wrong = section.wrong();
    let named = [
        section.convert("link", |name: String| matching(&name, topology)),
        section.convert("links", |names: Vec<String>| links_of(&names, topology)),
        section.convert("node", |name: String| around(&name, topology)),
        section.convert("nodes", |names: Vec<String>| some(&names, |name| around(name, topology))),
    ];
    let share: Option<f64> = section.given("share");
    let both: bool = section.take("both");
    if !both && (named[2].is_some() || named[3].is_some()) {
        let what = "all links of a node fail, those to it and those from it";
        section.note(InputError::new("both", what, "leave it away, or name links: \"spine0->*\""));
    }
    let nothing = Broken { cables: Vec::new(), count: None };
    if section.wrong() > wrong {
        return nothing;
    }
    let mut named = named.into_iter().flatten();
    let links = match (named.next(), named.next()) {
        (Some(links), None) => links,
        (None, _) if share.is_some() => topology.map(between_switches).unwrap_or_default(),
        (None, _) => {
            let hint = "name the link, several as links = [...], a node, or a share";
            section.note(InputError::new("link", "it is missing", hint));
            return nothing;
        }
        (Some(_), Some(_)) => {
            let hint = "leave one of them away: another [[fault]] takes it";
            section.note(InputError::new("links", "more than one of link, links, node and nodes are given", hint));
            return nothing;
        }
    };
    if links.is_empty() && topology.is_some() {
        section.note(InputError::new("share", "the network has no links between switches", "name links or nodes"));
        return nothing;
    }
    let cables = cables(links, topology.filter(|_| both));
    let count = share.map(|share| ((share * cables.len() as f64).round() as usize).max(1));
    Broken { cables, count }
}

/// Each link as a cable, with its reverse link if the topology has one.
fn cables(links: Vec<LinkId>, topology: Option<&Topology>) -> Vec<Vec<LinkId>> {
    let reverse_links = topology.map(|t| t.network().reverse_links());
    let mut seen = BTreeSet::new();
    let mut cables = Vec::new();
    for link in links {
        let reverse_link = reverse_links.as_ref().and_then(|reverse_links| reverse_links[link]);
        let cable: Vec<LinkId> = [Some(link), reverse_link].into_iter().flatten().filter(|&l| seen.insert(l)).collect();
        cables.extend((!cable.is_empty()).then_some(cable));
    }
    cables
}

fn between_switches(topology: &Topology) -> Vec<LinkId> {
    let nodes = topology.network().nodes();
    let is_switch = |n: Option<NodeId>| n.is_some_and(|n| nodes[n].kind == NodeKind::Switch);
    let links = topology.described_links().iter_enumerated();
    links.filter(|(_, l)| is_switch(l.from) && is_switch(l.to)).map(|(id, _)| id).collect()
}

/// The links that `find` has for each of the names. An empty list is an error.
fn some(names: &[String], find: impl Fn(&str) -> Result<Vec<LinkId>, InputError>) -> Result<Vec<LinkId>, InputError> {
    if names.is_empty() {
        return Err(InputError::new("", "the list is empty", "name at least one"));
    }
    each_of(names, |name| find(name)).map(|found| found.concat())
}

/// Links whose names match the patterns; `*` matches any text.
pub(in crate::spec) fn links_of(patterns: &[String], topology: Option<&Topology>) -> Result<Vec<LinkId>, InputError> {
    some(patterns, |pattern| matching(pattern, topology))
}

/// The link called `name`; without a topology, an arbitrary link.
pub(super) fn link(name: &str, topology: Option<&Topology>) -> Result<LinkId, InputError> {
    let Some(topology) = topology else { return Ok(LinkId(0)) };
    topology.network().find_link(name).ok_or_else(|| unknown_link(name, topology.network()))
}

fn matching(name: &str, topology: Option<&Topology>) -> Result<Vec<LinkId>, InputError> {
    let Some(topology) = topology else { return Ok(vec![LinkId(0)]) };
    if !name.contains('*') {
        return link(name, Some(topology)).map(|link| vec![link]);
    }
    let links = topology.described_links().iter_enumerated();
    found(name, "link", links.filter(|(_, l)| fits(name, &l.id)).map(|(id, _)| id).collect())
}

/// Links that start or end at the nodes whose names match the pattern `name`.
fn around(name: &str, topology: Option<&Topology>) -> Result<Vec<LinkId>, InputError> {
    let Some(topology) = topology else { return Ok(vec![LinkId(0)]) };
    let nodes = topology.network().nodes();
    if !name.contains('*') && topology.network().find_node(name).is_none() {
        return Err(unknown_name(name, "node", &nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>()));
    }
    let fits = |n: Option<NodeId>| n.is_some_and(|n| fits(name, &nodes[n].name));
    let links = topology.described_links().iter_enumerated();
    found(name, "link of a node", links.filter(|(_, l)| fits(l.from) || fits(l.to)).map(|(id, _)| id).collect())
}

fn found(name: &str, what: &str, found: Vec<LinkId>) -> Result<Vec<LinkId>, InputError> {
    if found.is_empty() {
        let hint = "give a name that the network has; * stands for any text";
        return Err(InputError::new("", format!("no {what} is called {}", quoted(name)), hint));
    }
    Ok(found)
}

/// Whether `name` matches `pattern`, in which `*` matches any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(between) = last.replace(part) {
            let Some(at) = rest.find(between) else { return false };
            rest = &rest[at + between.len()..];
        }
    }
    last.map_or(rest.is_empty(), |end| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::{Breakdown, CableEvent, fits};
    use std::collections::BTreeSet;
    use subak_core::LinkId;
    use subak_core::backend::Injected;

    #[test]
    fn a_seed_draws_so_many_cables_and_each_cable_comes_as_often() {
        let cables = (0..10).map(|k| LinkId::each([2 * k, 2 * k + 1]).to_vec()).collect();
        let some =
            Breakdown { cables, count: 3, event: CableEvent::Down(vec![(5, 6), (7, 8)], super::QueuedFate::Dropped) };
        let mut times = [0; 10];
        for seed in 0..1000 {
            let faults = some.injected(seed, 0);
            assert_eq!(faults.len(), 3 * 2 * 2, "two links a cable, twice each");
            let link = |fault: &Injected| if let Injected::Down { link, .. } = fault { *link } else { LinkId::NONE };
            let links: BTreeSet<_> = faults.iter().map(link).collect();
            assert_eq!(links.len(), 6);
            links.iter().for_each(|l| times[l.index() / 2] += 1);
        }
        // Two links each time: 600 on average, with a standard deviation of 29.
        assert!(times.iter().all(|t| (480..720).contains(t)), "{times:?}");
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, fitting) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("spine0->*", "spine0->leaf1", true),
            ("spine0->*", "spine01->leaf1", false),
            ("*->spine0", "leaf1->spine0", true),
            ("*->spine0", "leaf1->spine0#1", false),
            ("leaf*->spine*", "leaf12->spine3", true),
            ("leaf*->spine*", "leaf12->", false),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(fits(pattern, name), fitting, "{pattern} {name}");
        }
    }
}
