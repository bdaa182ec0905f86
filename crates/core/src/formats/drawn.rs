//! A graph as node-link data, collected by the readers of formats that have no attributes of their own.

use super::{Defaults, at_line, node_link};
use crate::quantity::{ns, quoted, rate_bps};
use crate::{InputError, Network, NodeKind};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Nodes and edges so far.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    nodes: Vec<Value>,
    links: Vec<Value>,
    /// Place in `nodes` by name.
    by_name: HashMap<String, usize>,
    /// Place in `links` by ends, of edges of which there is one between two nodes.
    by_ends: HashMap<(String, String), usize>,
}

impl Drawn {
    /// Adds a node, unless one has its name; whether it was added. Without `kind`, the network infers it.
    pub(super) fn node(&mut self, name: &str, kind: Option<NodeKind>) -> bool {
        if self.has(name) {
            return false;
        }
        self.by_name.insert(name.to_string(), self.nodes.len());
        self.nodes.push(match kind {
            None => json!({"id": name}),
            Some(NodeKind::Host) => json!({"id": name, "kind": "host"}),
            Some(NodeKind::Switch) => json!({"id": name, "kind": "switch"}),
        });
        true
    }

    /// Whether a node has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// An error unless a node has this name.
    pub(super) fn check(&self, name: &str, line: usize) -> Result<(), InputError> {
        match self.has(name) {
            true => Ok(()),
            false => {
                Err(at_line(line, format!("there is no node {}", quoted(name)), "name a node of the list of nodes"))
            }
        }
    }

    /// Adds an edge with its attributes.
    pub(super) fn edge(&mut self, from: &str, to: &str, attributes: impl IntoIterator<Item = (&'static str, Value)>) {
        let mut edge = Map::from_iter(attributes.into_iter().map(|(key, value)| (key.to_string(), value)));
        edge.insert("source".to_string(), from.into());
        edge.insert("target".to_string(), to.into());
        self.links.push(Value::Object(edge));
    }

    /// Adds an edge with attributes by their names in the file.
    pub(super) fn edge_of(&mut self, from: &str, to: &str, mut attributes: Map<String, Value>) {
        attributes.insert("source".to_string(), from.into());
        attributes.insert("target".to_string(), to.into());
        self.links.push(Value::Object(attributes));
    }

    /// Adds an edge, or the attributes to the edge between these nodes.
    pub(super) fn only_edge_of(&mut self, from: &str, to: &str, directed: bool, attributes: Map<String, Value>) {
        let (from, to) = if directed || from <= to { (from, to) } else { (to, from) };
        let ends = (from.to_string(), to.to_string());
        match self.by_ends.get(&ends).and_then(|&at| self.links[at].as_object_mut()) {
            Some(edge) => edge.extend(attributes),
            None => {
                self.by_ends.insert(ends, self.links.len());
                self.edge_of(from, to, attributes);
            }
        }
    }

    /// Sets the attributes of a node.
    pub(super) fn describe(&mut self, name: &str, attributes: Map<String, Value>) {
        let node = self.by_name.get(name).and_then(|&at| self.nodes[at].as_object_mut());
        if let Some(node) = node {
            node.extend(attributes.into_iter().filter(|(key, _)| key != "id"));
        }
    }

    /// Builds the network; an edge that is not `directed` is two links.
    pub(super) fn network(self, directed: bool, beside: &Defaults) -> Result<Network, InputError> {
        let whole = json!({"directed": directed, "multigraph": true, "nodes": self.nodes, "links": self.links});
        node_link::network_with(&whole, beside)
    }
}

/// A rate in a line: a plain number in `unit`.
pub(super) fn rate_in(line: usize, word: &str, unit: &str) -> Result<Value, InputError> {
    let rate = format!("{word}{unit}");
    rate_bps(&rate).map_err(|e| at_line(line, e.what, &e.hint))?;
    Ok(rate.into())
}

/// A time in a line: a plain number in `unit`.
pub(super) fn time_in(line: usize, word: &str, unit: &str) -> Result<Value, InputError> {
    let time = format!("{word}{unit}");
    ns(&time).map_err(|e| at_line(line, e.what, &e.hint))?;
    Ok(time.into())
}

/// The words of each line that has some, with its number from 1. `comment` begins a comment.
pub(super) fn words<'a>(text: &'a str, comment: &str) -> impl Iterator<Item = (usize, Vec<&'a str>)> {
    let plain = move |line: &'a str| match comment {
        "" => line,
        _ => line.split(comment).next().unwrap_or_default(),
    };
    let numbered = (1..).zip(text.trim_start_matches('\u{feff}').lines());
    numbered
        .map(move |(n, line)| (n, plain(line).split_whitespace().collect()))
        .filter(|(_, w): &(_, Vec<_>)| !w.is_empty())
}
