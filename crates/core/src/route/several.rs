//! Several paths between two nodes that need not be equally long: the k shortest paths without a loop (Yen, 1971), or
//! paths that share as few links as possible.
//!
//! Among equally long paths, noise drawn from the flow's hash decides, so that flows spread over them.

use super::{Arc, NEVER, PathCost, Router};
use crate::rng::mix;
use crate::{IdVec, LinkId, NodeId};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet};

/// Length of a path: links that other paths use already, then cost, then noise.
type Length = (u32, PathCost, u64);

const NONE: Length = (u32::MAX, NEVER, u64::MAX);

/// Restrictions of a search: links and nodes that it must not use, and links that count as shared.
#[derive(Default)]
struct Limits<'a> {
    links: HashSet<LinkId>,
    nodes: HashSet<NodeId>,
    /// Links that count as shared.
    shared: Option<&'a HashSet<LinkId>>,
}

impl Router {
    /// Up to `k` shortest paths without a loop, the shortest first.
    pub(super) fn shortest(&self, src: NodeId, dst: NodeId, key: u64, k: usize) -> Option<Vec<Vec<LinkId>>> {
        let hash = self.hash(src, dst, key);
        let first = self.search(src, dst, hash, &Limits::default())?;
        let (mut paths, mut waiting) = (Vec::new(), BTreeSet::from([first]));
        while paths.len() < k
            && let Some((_, path)) = waiting.pop_first()
        {
            // Each node of the path is where others may leave it.
            let mut node = src;
            for i in 0..path.len() {
                let begin = &path[..i];
                let same = |other: &&Vec<LinkId>| other.starts_with(begin);
                let mut limits = Limits::default();
                limits.links.extend(paths.iter().chain([&path]).filter(same).filter_map(|other: &Vec<_>| other.get(i)));
                limits.nodes.extend(self.nodes_of(src, begin));
                if let Some((_, rest)) = self.search(node, dst, hash, &limits) {
                    let whole = [begin, &rest].concat();
                    waiting.insert((self.length(src, &whole, hash), whole));
                }
                node = self.end_of(node, path[i])?;
            }
            paths.push(path);
        }
        Some(paths)
    }

    /// Up to `k` paths, each of which shares as few links as possible with those before it, and is then the shortest.
    pub(super) fn disjoint(&self, src: NodeId, dst: NodeId, key: u64, k: usize) -> Option<Vec<Vec<LinkId>>> {
        let hash = self.hash(src, dst, key);
        let (mut paths, mut shared) = (Vec::new(), HashSet::new());
        while paths.len() < k {
            let limits = Limits { shared: Some(&shared), ..Limits::default() };
            let (_, path) = self.search(src, dst, hash, &limits)?;
            if paths.contains(&path) {
                break;
            }
            shared.extend(path.iter().copied());
            paths.push(path);
        }
        Some(paths)
    }

    /// Dijkstra's algorithm from `from` to `dst`.
    fn search(&self, from: NodeId, dst: NodeId, hash: u64, limits: &Limits) -> Option<(Length, Vec<LinkId>)> {
        let mut best = IdVec::<NodeId, Length>::filled(NONE, self.names.len());
        let mut by = IdVec::<NodeId, Option<(NodeId, LinkId)>>::filled(None, self.names.len());
        let mut frontier = BinaryHeap::from([Reverse(((0, super::HERE, 0), from))]);
        best[from] = (0, super::HERE, 0);
        while let Some(Reverse((length, node))) = frontier.pop() {
            if node == dst {
                let mut path = Vec::new();
                let mut at = dst;
                while let Some((before, link)) = by[at] {
                    path.push(link);
                    at = before;
                }
                path.reverse();
                return Some((length, path));
            }
            if length > best[node] {
                continue;
            }
            for arc in self.out.of(node) {
                if limits.links.contains(&arc.link) || limits.nodes.contains(&arc.node) {
                    continue;
                }
                let through = longer(length, arc, hash, limits.shared);
                if through < best[arc.node] {
                    best[arc.node] = through;
                    by[arc.node] = Some((node, arc.link));
                    frontier.push(Reverse((through, arc.node)));
                }
            }
        }
        None
    }

    fn arc(&self, from: NodeId, link: LinkId) -> Option<&Arc> {
        self.out.of(from).iter().find(|arc| arc.link == link)
    }

    fn end_of(&self, from: NodeId, link: LinkId) -> Option<NodeId> {
        self.arc(from, link).map(|arc| arc.node)
    }

    /// The nodes at which the links of `path` begin.
    fn nodes_of(&self, src: NodeId, path: &[LinkId]) -> Vec<NodeId> {
        let mut node = src;
        let begins = path.iter().map_while(|&link| {
            let begin = node;
            node = self.end_of(node, link)?;
            Some(begin)
        });
        begins.collect()
    }

    fn length(&self, src: NodeId, path: &[LinkId], hash: u64) -> Length {
        let (mut node, mut length) = (src, (0, super::HERE, 0));
        for &link in path {
            let Some(arc) = self.arc(node, link) else { return NONE };
            length = longer(length, arc, hash, None);
            node = arc.node;
        }
        length
    }
}

/// A path's length with one more link.
fn longer(length: Length, arc: &Arc, hash: u64, shared: Option<&HashSet<LinkId>>) -> Length {
    let is_shared = shared.is_some_and(|shared| shared.contains(&arc.link));
    let noise = mix(hash ^ u64::from(arc.link.0)) >> 32;
    (length.0 + u32::from(is_shared), length.1.plus(arc.cost), length.2.saturating_add(noise))
}
