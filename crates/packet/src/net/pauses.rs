//! Priority flow control (PFC): buffer accounting, pause frames, and deadlock detection.

use super::Net;
use super::pfc::{ControlFrame, FRAME_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use subak_core::scheme::{Class, PacketId, Scheme};
use subak_core::{LinkId, Ns};

/// Smallest duration of pauses that count as a deadlock, ns.
const PATIENCE_NS: Ns = 1_000_000;

impl<S: Scheme> Net<S> {
    /// Whether the switch has buffer for packet `id`, which arrived by `link`; pauses the packet's class on `link`
    /// if needed.
    #[inline]
    pub fn has_room(&mut self, link: LinkId, id: PacketId) -> bool {
        let Some(pfc) = &mut self.pfc else { return true };
        let (class, bytes) = (self.slab[id].class, self.slab[id].bytes);
        let (has_room, pauses) = pfc.admit(link, class, bytes);
        if pauses {
            self.send_frame(link, class, true);
        }
        has_room
    }

    /// Releases the buffer space of packet `id`, which leaves its queue; resumes the packet's class on its ingress
    /// link if possible.
    #[inline]
    pub fn give_room(&mut self, id: PacketId) {
        let Some(pfc) = &mut self.pfc else { return };
        let packet = &self.slab[id];
        let (class, Some(before)) = (packet.class, packet.hop.checked_sub(1)) else { return };
        let link = self.routes.link(packet.route, before);
        if pfc.leave(link, class, packet.bytes) {
            self.send_frame(link, class, false);
        }
    }

    #[cold]
    fn send_frame(&mut self, link: LinkId, class: Class, on: bool) {
        self.send_control(link, ControlFrame::Pause(class, on), FRAME_BYTES);
    }

    /// Sends the present state of each pause over `link`, which is up again: pause frames were lost while it was
    /// down.
    pub(super) fn repeat_frames(&mut self, link: LinkId) {
        let (Some(pfc), Some(paused)) = (&self.pfc, self.ports[link].reverse_link) else { return };
        if !self.ports[link].begins_here {
            return;
        }
        let asked = pfc.asked(paused);
        for class in Class::DATA {
            self.send_frame(paused, class, asked[class.place()]);
        }
    }

    /// For each queued packet: class, link by which the packet arrived, and link for which it is queued.
    fn waiting(&self) -> impl Iterator<Item = (Class, LinkId, LinkId)> {
        self.slab.iter().filter_map(|packet| {
            let came_by = self.routes.link(packet.route, packet.hop.checked_sub(1)?);
            Some((packet.class, came_by, self.routes.link(packet.route, packet.hop)))
        })
    }
}

/// Links in a deadlock, each with the start of its pause, ns: each link is paused, and packets that arrived by it are
/// queued for the next link of a cycle. `parts`: networks of all logical processes.
pub(crate) fn circle_of_pauses<S: Scheme>(parts: &[&Net<S>]) -> Vec<(LinkId, Ns)> {
    let until_ns = parts[0].now_ns.saturating_sub(PATIENCE_NS);
    let since = |link: LinkId, class: Class| {
        let found = parts.iter().map(|part| &part.ports[link]).find(|p| p.begins_here)?;
        found.gate.since_ns(class).filter(|&since_ns| since_ns <= until_ns)
    };
    let mut waits: BTreeMap<LinkId, BTreeSet<LinkId>> = BTreeMap::new();
    for (class, came_by, waits_for) in parts.iter().flat_map(|part| part.waiting()) {
        if since(waits_for, class).is_some() && since(came_by, class).is_some() {
            waits.entry(came_by).or_default().insert(waits_for);
        }
    }
    let since_ns = |link| Class::DATA.into_iter().filter_map(|class| since(link, class)).min().unwrap_or(0);
    circle(&waits).into_iter().map(|link| (link, since_ns(link))).collect()
}

/// A cycle in `graph` (successors of each link), starting at its smallest link; empty if there is none.
fn circle(graph: &BTreeMap<LinkId, BTreeSet<LinkId>>) -> Vec<LinkId> {
    // A node without predecessors or successors is in no cycle: after removing such nodes, the rest contains one.
    let mut left = graph.clone();
    loop {
        let waited_for: BTreeSet<LinkId> = left.values().flatten().copied().collect();
        let in_circle = |l: &LinkId| waited_for.contains(l) && left.contains_key(l);
        let keep: BTreeSet<LinkId> = left.keys().copied().filter(in_circle).collect();
        let next: BTreeMap<LinkId, BTreeSet<LinkId>> = keep
            .iter()
            .map(|l| (*l, left[l].intersection(&keep).copied().collect::<BTreeSet<_>>()))
            .filter(|(_, to)| !to.is_empty())
            .collect();
        if next == left {
            break;
        }
        left = next;
    }
    let Some(&first) = left.keys().next() else { return Vec::new() };
    // Every remaining node has a successor, so that following successors leads back to a node already visited.
    let mut path = vec![first];
    loop {
        let next = *left[&path[path.len() - 1]].iter().next().expect("each waits for one that is left");
        if let Some(at) = path.iter().position(|&l| l == next) {
            let mut circle = path.split_off(at);
            let least = circle.iter().enumerate().min_by_key(|(_, l)| **l).map_or(0, |(k, _)| k);
            circle.rotate_left(least);
            return circle;
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u32, u32)]) -> BTreeMap<LinkId, BTreeSet<LinkId>> {
        let mut graph: BTreeMap<LinkId, BTreeSet<LinkId>> = BTreeMap::new();
        for &(from, to) in edges {
            graph.entry(LinkId(from)).or_default().insert(LinkId(to));
        }
        graph
    }

    #[test]
    fn a_circle_is_found_among_what_only_leads_to_it() {
        assert_eq!(circle(&graph(&[(1, 2), (2, 3), (3, 4), (5, 2)])), [LinkId(0); 0]);
        assert_eq!(circle(&graph(&[(9, 4), (4, 7), (7, 2), (2, 4), (7, 1)])), [2, 4, 7]);
        assert_eq!(circle(&graph(&[(3, 3)])), [3]);
    }
}
