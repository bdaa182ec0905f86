//! Equal-cost multipath (ECMP) routing over shortest paths. At every node a seeded hash selects the next link.
//!
//! Parallel links count as separate choices. The hash covers seed, source, destination, the flow's key and the node.
//! Flows between the same pair therefore spread by their keys, and a flow's choices at different nodes are
//! independent. With [`Hash::Pair`] the key is not covered: all flows of a pair take one path, but the subflows of a
//! flow still spread.

mod several;

use crate::rng::mix;
use crate::{IdVec, InputError, LinkId, Network, NodeId, Offsets};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The path of one subflow, in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Links of data packets, from source to destination.
    pub forward: Vec<LinkId>,
    /// Links of ACKs, from destination to source.
    pub back: Vec<LinkId>,
}

/// The metric of shortest-path routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Metric {
    /// Number of links, for datacenters.
    #[default]
    Hops,
    /// Propagation delay, then number of links, for wide-area networks. With symmetric routing the delay is the sum
    /// over both directions.
    Delay,
}

/// Fields that the ECMP hash covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hash {
    /// Source, destination and the flow's key.
    #[default]
    Flow,
    /// Source and destination: all flows between a pair of nodes take one path.
    Pair,
}

/// Which paths the subflows of a flow take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubflowPaths {
    /// Equally long shortest paths.
    #[default]
    Equal,
    /// The k shortest paths without a loop (Yen).
    Shortest,
    /// Paths that share as few links as possible, chosen one after the other.
    Disjoint,
}

/// Routing of flows without an explicit path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Routing {
    /// Seed of the hash.
    pub seed: u64,
    /// Whether the reverse path takes the reverse links of the path. If so, only links that have a reverse link are
    /// used.
    pub symmetric: bool,
    /// The metric of shortest-path routing.
    pub metric: Metric,
    /// Fields that the ECMP hash covers.
    pub hash: Hash,
    /// Which paths the subflows of a flow take.
    pub paths: SubflowPaths,
}

/// Cost of a path: delay (0 with [`Metric::Hops`]), then number of links. Counting links makes every cost positive,
/// so that no path loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PathCost {
    delay_ns: u64,
    links: u32,
}

const HERE: PathCost = PathCost { delay_ns: 0, links: 0 };
const NEVER: PathCost = PathCost { delay_ns: u64::MAX, links: u32::MAX };

impl PathCost {
    fn plus(self, other: PathCost) -> PathCost {
        PathCost {
            delay_ns: self.delay_ns.saturating_add(other.delay_ns),
            links: self.links.saturating_add(other.links),
        }
    }
}

/// A link in the adjacency list of a node.
#[derive(Debug, Clone, Copy)]
struct Arc {
    /// The node at the link's other end.
    node: NodeId,
    link: LinkId,
    cost: PathCost,
}

/// The adjacency lists of all nodes, in compressed rows.
#[derive(Debug)]
struct Arcs {
    rows: Offsets<NodeId>,
    arcs: Vec<Arc>,
}

crate::id! {
    /// Index of a node in the distance tables.
    struct DistanceRow(u32);
}

impl Arcs {
    /// Builds the rows of `nodes` nodes from `(row, arc)`; arcs of a row keep their order.
    fn new(nodes: usize, entries: &[(NodeId, Arc)]) -> Self {
        let mut degree = IdVec::<NodeId, usize>::filled(0, nodes);
        entries.iter().for_each(|&(node, _)| degree[node] += 1);
        let mut rows = Offsets::default();
        let mut end = 0;
        for &degree in &degree {
            end += degree;
            rows.push(end);
        }
        let mut next: IdVec<NodeId, usize> = degree.ids().map(|node| rows.start(node)).collect();
        let mut arcs = vec![Arc { node: NodeId(0), link: LinkId(0), cost: HERE }; entries.len()];
        for &(node, arc) in entries {
            arcs[next[node]] = arc;
            next[node] += 1;
        }
        Arcs { rows, arcs }
    }

    fn of(&self, node: NodeId) -> &[Arc] {
        &self.arcs[self.rows.row(node)]
    }
}

/// Largest number of cached (node, destination) distances, 16 bytes each. Beyond this number distances are recomputed.
const MOST_DISTANCES: usize = 16 << 20;

/// Finds shortest paths, with a copy of the network's arcs.
///
/// Distances to a destination are computed on first use. A node with one neighbour (a host at its switch) shares the
/// distances of that neighbour, so that a fat-tree needs one table for each leaf switch.
#[derive(Debug)]
pub struct Router {
    routing: Routing,
    names: IdVec<NodeId, String>,
    reverse_links: IdVec<LinkId, Option<LinkId>>,
    out: Arcs,
    into: Arcs,
    /// For a node with one neighbour, that neighbour; for any other node, the node itself.
    hub: IdVec<NodeId, NodeId>,
    /// Index of a node in each distance table; `NONE` for nodes that share their neighbour's distances.
    row: IdVec<NodeId, DistanceRow>,
    rows: usize,
    /// Distances by the destination's row, then by the node's row.
    distances: IdVec<DistanceRow, Option<IdVec<DistanceRow, PathCost>>>,
    kept: usize,
}

impl Router {
    /// A router by hop count whose hash covers each flow's key.
    pub fn new(network: &Network, seed: u64, symmetric: bool) -> Self {
        Router::by(network, Routing { seed, symmetric, ..Routing::default() })
    }

    /// Like [`Router::new`], with the settings of `routing`.
    pub fn by(network: &Network, routing: Routing) -> Self {
        Router::avoiding(network, routing, |_| false)
    }

    /// Like [`Router::by`], without the links for which `avoided` is true. With symmetric routing their reverse links
    /// are avoided too.
    pub fn avoiding(network: &Network, routing: Routing, avoided: impl Fn(LinkId) -> bool) -> Self {
        let Routing { symmetric, metric, .. } = routing;
        let reverse_links = network.reverse_links();
        let nodes = network.nodes().len();
        let (mut out, mut into) = (Vec::new(), Vec::new());
        for (id, link) in network.links().iter_enumerated() {
            let (Some(from), Some(to)) = (link.from, link.to) else { continue };
            let gone = avoided(id) || symmetric && reverse_links[id].is_some_and(&avoided);
            if from == to || gone || (symmetric && reverse_links[id].is_none()) {
                continue;
            }
            let back_ns = reverse_links[id].filter(|_| symmetric).map_or(0, |t| network.links()[t].delay_ns);
            let delay_ns = if metric == Metric::Delay { link.delay_ns.saturating_add(back_ns) } else { 0 };
            let cost = PathCost { delay_ns, links: 1 };
            out.push((from, Arc { node: to, link: id, cost }));
            into.push((to, Arc { node: from, link: id, cost }));
        }
        let (out, into) = (Arcs::new(nodes, &out), Arcs::new(nodes, &into));
        let hub = hubs(&out, &into, nodes);
        let mut rows = 0;
        let row = hub
            .iter_enumerated()
            .map(|(node, &hub)| {
                if hub == node {
                    rows += 1;
                    DistanceRow::from_index(rows - 1)
                } else {
                    DistanceRow::NONE
                }
            })
            .collect();
        Router {
            routing,
            names: network.nodes().iter().map(|n| n.name.clone()).collect(),
            reverse_links,
            out,
            into,
            hub,
            row,
            rows,
            distances: (0..rows).map(|_| None).collect(),
            kept: 0,
        }
    }

    /// The path of the flow with this `key`. With symmetric routing it is the reverse of the path from `dst` to
    /// `src`.
    pub fn path(&mut self, src: NodeId, dst: NodeId, key: u64) -> Result<Vec<LinkId>, InputError> {
        self.way(src, dst, self.heard(key))
    }

    /// The part of the key that the hash covers.
    fn heard(&self, key: u64) -> u64 {
        if self.routing.hash == Hash::Pair { 0 } else { key }
    }

    fn way(&mut self, src: NodeId, dst: NodeId, key: u64) -> Result<Vec<LinkId>, InputError> {
        self.prepare(src, dst)?;
        if self.routing.symmetric && src > dst {
            let there = self.hashed(dst, src, key);
            return there.map(|path| self.reversed(&path)).ok_or_else(|| self.disconnected(src, dst));
        }
        self.hashed(src, dst, key).ok_or_else(|| self.disconnected(src, dst))
    }

    /// The path of the flow with this `key`, and its reverse path: the reverse links if routing is symmetric, else
    /// hashed separately.
    pub fn route(&mut self, src: NodeId, dst: NodeId, key: u64) -> Result<Route, InputError> {
        let forward = self.path(src, dst, key)?;
        let back = self.back(src, dst, self.heard(key), &forward)?;
        Ok(Route { forward, back })
    }

    /// Up to `k` distinct paths as [`Routing::paths`] has it; fewer if there are fewer. Of equally long paths, the first is
    /// [`Router::path`].
    pub fn k_paths(&mut self, src: NodeId, dst: NodeId, key: u64, k: usize) -> Result<Vec<Vec<LinkId>>, InputError> {
        let key = self.heard(key);
        self.prepare(src, dst)?;
        if self.routing.symmetric && src > dst {
            let there = self.several(dst, src, key, k).ok_or_else(|| self.disconnected(src, dst))?;
            return Ok(there.iter().map(|path| self.reversed(path)).collect());
        }
        self.several(src, dst, key, k).ok_or_else(|| self.disconnected(src, dst))
    }

    fn several(&self, src: NodeId, dst: NodeId, key: u64, k: usize) -> Option<Vec<Vec<LinkId>>> {
        match self.routing.paths {
            SubflowPaths::Equal => self.distinct(src, dst, key, k),
            SubflowPaths::Shortest => self.shortest(src, dst, key, k),
            SubflowPaths::Disjoint => self.disjoint(src, dst, key, k),
        }
    }

    /// The paths of [`Router::k_paths`] with their reverse paths, one route for each subflow.
    pub fn routes(&mut self, src: NodeId, dst: NodeId, key: u64, k: usize) -> Result<Vec<Route>, InputError> {
        let paths = self.k_paths(src, dst, key, k)?;
        let with_back = |(i, forward): (usize, Vec<LinkId>)| {
            let back = self.back(src, dst, salted(self.heard(key), i as u64), &forward)?;
            Ok(Route { forward, back })
        };
        paths.into_iter().enumerate().map(with_back).collect()
    }

    fn back(&mut self, src: NodeId, dst: NodeId, key: u64, forward: &[LinkId]) -> Result<Vec<LinkId>, InputError> {
        if self.routing.symmetric { Ok(self.reversed(forward)) } else { self.way(dst, src, key) }
    }

    fn reversed(&self, path: &[LinkId]) -> Vec<LinkId> {
        path.iter()
            .rev()
            .map(|&l| self.reverse_links[l].expect("symmetric paths use links with reverse links"))
            .collect()
    }

    fn disconnected(&self, src: NodeId, dst: NodeId) -> InputError {
        let (from, to) = (&self.names[src], &self.names[dst]);
        let both = if self.routing.symmetric { " by links with a reverse link" } else { "" };
        InputError::new(
            "",
            format!("no path leads from \"{from}\" to \"{to}\"{both}"),
            "connect them, or choose other ends",
        )
    }

    /// Checks source and destination and computes the distances to both.
    fn prepare(&mut self, src: NodeId, dst: NodeId) -> Result<(), InputError> {
        for node in [src, dst] {
            if node.index() >= self.names.len() {
                let hint = format!("the network has {} nodes", self.names.len());
                return Err(InputError::new("", format!("there is no node number {node}"), hint));
            }
        }
        if src == dst {
            let what = format!("the source and the destination are the same, \"{}\"", self.names[src]);
            return Err(InputError::new("", what, "choose two different nodes"));
        }
        let end = if self.routing.symmetric { src.max(dst) } else { dst };
        let target = self.row[self.hub[end]];
        if self.distances[target].is_none() {
            if self.kept + self.rows > MOST_DISTANCES {
                self.distances.iter_mut().for_each(|table| *table = None);
                self.kept = 0;
            }
            self.kept += self.rows;
            self.distances[target] = Some(self.distances_to(self.hub[end]));
        }
        Ok(())
    }

    /// Dijkstra's algorithm from `end`, against the direction of links.
    fn distances_to(&self, end: NodeId) -> IdVec<DistanceRow, PathCost> {
        let mut distance = IdVec::filled(NEVER, self.rows);
        let mut frontier = BinaryHeap::from([Reverse((HERE, end))]);
        distance[self.row[end]] = HERE;
        while let Some(Reverse((cost, node))) = frontier.pop() {
            if cost > distance[self.row[node]] {
                continue;
            }
            for arc in self.into.of(node) {
                let row = self.row[arc.node];
                let through = cost.plus(arc.cost);
                if row != DistanceRow::NONE && through < distance[row] {
                    distance[row] = through;
                    frontier.push(Reverse((through, arc.node)));
                }
            }
        }
        distance
    }

    /// Finds the links by which a shortest path to `dst` leaves `node`, with the nodes at which they end.
    fn choices(&self, node: NodeId, dst: NodeId, found: &mut Vec<(LinkId, NodeId)>) {
        found.clear();
        let hub = self.hub[dst];
        if node == hub {
            cheapest(self.into.of(dst), found);
            found.iter_mut().for_each(|(_, next)| *next = dst);
        } else if self.hub[node] != node {
            cheapest(self.out.of(node), found);
        } else {
            let table = self.distances[self.row[hub]].as_ref().expect("prepared");
            let here = table[self.row[node]];
            for arc in self.out.of(node) {
                let row = self.row[arc.node];
                if row != DistanceRow::NONE && table[row] != NEVER && table[row].plus(arc.cost) == here {
                    found.push((arc.link, arc.node));
                }
            }
        }
    }

    fn hash(&self, src: NodeId, dst: NodeId, key: u64) -> u64 {
        let ends = (u64::from(src.0) << 32) | u64::from(dst.0);
        mix(mix(mix(self.routing.seed) ^ ends) ^ key)
    }

    fn hashed(&self, src: NodeId, dst: NodeId, key: u64) -> Option<Vec<LinkId>> {
        let hash = self.hash(src, dst, key);
        let (mut path, mut choices) = (Vec::with_capacity(8), Vec::with_capacity(32));
        let mut node = src;
        while node != dst {
            self.choices(node, dst, &mut choices);
            let drawn = (u128::from(mix(hash ^ u64::from(node.0))) * choices.len() as u128) >> 64;
            let &(link, next) = choices.get(drawn as usize)?;
            path.push(link);
            node = next;
        }
        Some(path)
    }

    /// Distinct shortest paths: first by hashing salted keys, which spreads them like separate flows; then by
    /// enumeration.
    fn distinct(&self, src: NodeId, dst: NodeId, key: u64, k: usize) -> Option<Vec<Vec<LinkId>>> {
        let mut paths: Vec<Vec<LinkId>> = Vec::new();
        for salt in 0..k.saturating_mul(4).min(4096) as u64 {
            let path = self.hashed(src, dst, salted(key, salt))?;
            if !paths.contains(&path) {
                paths.push(path);
            }
            if paths.len() == k {
                return Some(paths);
            }
        }
        self.enumerate(src, dst, k, &mut paths);
        Some(paths)
    }

    /// Adds shortest paths in the order of their link ids until `paths` has `k` of them or all.
    fn enumerate(&self, src: NodeId, dst: NodeId, k: usize, paths: &mut Vec<Vec<LinkId>>) {
        let mut choices = Vec::new();
        self.choices(src, dst, &mut choices);
        let mut levels = vec![choices.into_iter()];
        let mut path = Vec::new();
        while paths.len() < k
            && let Some(level) = levels.last_mut()
        {
            let Some((link, node)) = level.next() else {
                levels.pop();
                path.pop();
                continue;
            };
            path.push(link);
            if node == dst {
                if !paths.contains(&path) {
                    paths.push(path.clone());
                }
                path.pop();
            } else {
                let mut choices = Vec::new();
                self.choices(node, dst, &mut choices);
                levels.push(choices.into_iter());
            }
        }
    }
}

/// The routing key of a named flow: a hash of the name. The flow keeps its path when other flows are added or
/// removed.
pub fn key_of(name: &str) -> u64 {
    name.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)))
}

/// Combines key and salt; salt 0 leaves the key unchanged.
fn salted(key: u64, salt: u64) -> u64 {
    if salt == 0 { key } else { mix(key ^ mix(salt)) }
}

fn cheapest(arcs: &[Arc], found: &mut Vec<(LinkId, NodeId)>) {
    let least = arcs.iter().map(|arc| arc.cost).min();
    found.extend(arcs.iter().filter(|arc| Some(arc.cost) == least).map(|arc| (arc.link, arc.node)));
}

/// For each node its only neighbour, unless that neighbour has only one neighbour too; otherwise the node itself.
fn hubs(out: &Arcs, into: &Arcs, nodes: usize) -> IdVec<NodeId, NodeId> {
    let only: IdVec<NodeId, Option<NodeId>> = NodeId::first(nodes)
        .map(|n| {
            let mut near = out.of(n).iter().chain(into.of(n)).map(|arc| arc.node);
            let first = near.next()?;
            near.all(|other| other == first).then_some(first)
        })
        .collect();
    let has_others = |hub: &NodeId| only[*hub].is_none();
    only.iter_enumerated().map(|(node, hub)| hub.filter(has_others).unwrap_or(node)).collect()
}
