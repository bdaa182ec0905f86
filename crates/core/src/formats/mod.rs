//! Networks that users bring: node-link JSON as networkx writes it, and GraphML.
//!
//! In both, an edge must have `capacity` and may have `delay` and `buffer`; an undirected edge is two links. Nodes may
//! have `kind` (or `type`) "host" or "switch". Links are named `A->B`, parallel ones `A->B#1`. Attributes that are
//! not ours are left alone, unless they look like a slip of the pen.

pub mod flows;
pub mod graphml;
pub mod hpcc;
pub mod node_link;
mod zoo;

use crate::quantity::{capacity_from_json, ns_from_json};
use crate::{Fault, IdVec, Network, NodeId, NodeKind, Ns};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What the edges of a file have where they do not say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Defaults {
    /// Capacity, bit/s; without it an edge must have one.
    pub capacity_bps: Option<f64>,
    /// Propagation delay, ns; 0 without it.
    pub delay_ns: Option<Ns>,
}

impl Defaults {
    /// The keys `capacity` and `delay` beside a file's name.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Fault> {
        let capacity = map.get("capacity").map(capacity_from_json).transpose();
        let delay = map.get("delay").map(ns_from_json).transpose();
        Ok(Defaults {
            capacity_bps: capacity.map_err(|e| e.below("capacity"))?,
            delay_ns: delay.map_err(|e| e.below("delay"))?,
        })
    }
}

/// Refuses a file of a kind that is known not to be read, by its name.
pub fn refuse_kind(path: &str) -> Result<(), Fault> {
    let name = path.to_lowercase();
    let (what, mend) = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("gml") => {
            ("GML", "write it as GraphML: networkx.write_graphml(networkx.read_gml(FILE), \"NAME.graphml\")")
        }
        Some("csv") => {
            ("CSV, a table", "name it as the flows of a case, flows = {file = ...}, or as a workload of kind \"trace\"")
        }
        Some("parquet") => ("Parquet, a table", "name it in a workload of kind \"trace\""),
        Some("yaml" | "yml") => ("YAML", "write it as TOML or JSON"),
        Some("xlsx" | "ods") => ("a spreadsheet", "save the table as CSV"),
        Some("gz" | "zip" | "xz" | "zst") => ("compressed", "unpack it first"),
        Some("py") => ("Python", "run it with python"),
        _ => return Ok(()),
    };
    Err(Fault::new("", format!("{path} is {what}: it is not read here"), mend))
}

/// A graph as a file describes it.
#[derive(Debug, Default)]
struct Graph {
    nodes: IdVec<NodeId, (String, Option<NodeKind>)>,
    by_name: HashMap<String, NodeId>,
    edges: Vec<Edge>,
    /// Parallel edges are an error.
    simple: bool,
}

#[derive(Debug)]
struct Edge {
    from: NodeId,
    to: NodeId,
    directed: bool,
    capacity_bps: f64,
    delay_ns: Ns,
    buffer_bytes: Option<u64>,
}

impl Graph {
    /// Adds a node; the fault's place is relative to it.
    fn node(&mut self, name: String, kind: Option<NodeKind>) -> Result<(), Fault> {
        if name.is_empty() {
            return Err(Fault::new("id", "the node's id is empty", "give every node a name"));
        }
        if self.by_name.insert(name.clone(), self.nodes.next_id()).is_some() {
            let what = format!("a second node has the id {}", crate::quantity::quoted(&name));
            return Err(Fault::new("id", what, "give every node an id of its own"));
        }
        self.nodes.push((name, kind));
        Ok(())
    }

    /// The node called `name`; the fault has no place.
    fn find(&self, name: &str) -> Result<NodeId, Fault> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let what = format!("there is no node {}", crate::quantity::quoted(name));
            Fault::new("", what, "name a node that the list of nodes has")
        })
    }

    /// The network; `list` is what the file calls its list of edges.
    fn build(self, list: &str) -> Result<Network, Fault> {
        let ends: Vec<_> = self.edges.iter().map(|e| (e.from, e.to)).collect();
        let given = self.nodes.iter().map(|(_, kind)| *kind).collect();
        let mut network = Network::new();
        for ((name, _), kind) in self.nodes.iter().zip(kinds(&given, &ends)) {
            network.node(name, kind);
        }
        let mut seen = HashSet::new();
        for (i, edge) in self.edges.iter().enumerate() {
            self.add(edge, &mut network, &mut seen).map_err(|e| e.below(&format!("{list}[{i}]")))?;
        }
        Ok(network)
    }

    fn add(&self, edge: &Edge, network: &mut Network, seen: &mut HashSet<(NodeId, NodeId)>) -> Result<(), Fault> {
        let Edge { from, to, capacity_bps, delay_ns, buffer_bytes, .. } = *edge;
        let name = |node: NodeId| &self.nodes[node].0;
        if from == to {
            let what = format!("the edge leads from \"{}\" to itself", name(from));
            return Err(Fault::new("", what, "connect two different nodes"));
        }
        let again = !seen.insert((from, to)) || !(edge.directed || seen.insert((to, from)));
        if self.simple && again {
            let what = format!("a second edge connects \"{}\" and \"{}\"", name(from), name(to));
            return Err(Fault::new("", what, "say \"multigraph\": true if parallel links are meant"));
        }
        if edge.directed {
            network.arc(from, to, capacity_bps, delay_ns, buffer_bytes)?;
        } else {
            network.connect(from, to, capacity_bps, delay_ns, buffer_bytes)?;
        }
        Ok(())
    }
}

/// Hosts and switches, where a file does not say which is which: nodes with one neighbour are hosts and the others
/// switches; if that leaves no host at all, every node is both, and counts as a host.
pub(crate) fn kinds(given: &IdVec<NodeId, Option<NodeKind>>, ends: &[(NodeId, NodeId)]) -> Vec<NodeKind> {
    let mut near = IdVec::<NodeId, _>::filled(BTreeSet::new(), given.len());
    for &(a, b) in ends {
        // Two suffice to tell.
        if near[a].len() < 2 {
            near[a].insert(b);
        }
        if near[b].len() < 2 {
            near[b].insert(a);
        }
    }
    let guess = |n: NodeId| given[n].unwrap_or(if near[n].len() == 1 { NodeKind::Host } else { NodeKind::Switch });
    let kinds: Vec<_> = given.ids().map(guess).collect();
    if kinds.contains(&NodeKind::Host) {
        return kinds;
    }
    given.iter().map(|kind| kind.unwrap_or(NodeKind::Host)).collect()
}

/// The attributes of edges that we read.
const EDGE_KEYS: [&str; 3] = ["capacity", "delay", "buffer"];

/// Refuses an attribute that is not ours but nearly: a delay that is misspelt must not be lost.
fn refuse_slip(name: &str) -> Result<(), Fault> {
    let low = name.to_lowercase();
    let near = |known: &&str| name != *known && low.len() < 40 && strsim::osa_distance(&low, known) <= 1;
    match EDGE_KEYS.iter().find(|known| near(known)) {
        Some(known) => {
            let mend = format!("did you mean \"{known}\"? rename the attribute, or remove it");
            Err(Fault::new(name, format!("unknown attribute \"{name}\""), mend))
        }
        None => Ok(()),
    }
}

/// The fault of an edge without capacity.
fn no_capacity() -> Fault {
    let mend = "give every edge one, such as \"10Gbps\", or one for all beside the file: capacity = \"10Gbps\"";
    Fault::new("capacity", "the edge has no capacity", mend)
}
