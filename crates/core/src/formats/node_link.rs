//! Node-link JSON as networkx' `node_link_data` writes it.

use super::{Defaults, EDGE_KEYS, Edge, Graph, refuse_other_name, zoo};
use crate::document::{check_keys, list, table, text, unknown_word};
use crate::quantity::{ns_from_json, positive_bytes_from_json, shown};
use crate::{InputError, Network, NodeId, NodeKind};
use serde_json::{Map, Value};

/// Reads a network.
pub fn network(value: &Value) -> Result<Network, InputError> {
    network_with(value, &Defaults::default())
}

/// Like [`network`], with defaults for values that the file lacks.
pub fn network_with(value: &Value, beside: &Defaults) -> Result<Network, InputError> {
    let map = table(value, "a graph", "{\"nodes\": [...], \"links\": [...]}")?;
    check_keys(map, &KEYS)?;
    let name = match (map.get("links"), map.get("edges")) {
        (Some(_), Some(_)) => {
            return Err(InputError::new("edges", "the graph has both \"links\" and \"edges\"", "keep one of them"));
        }
        (None, Some(_)) => "edges",
        _ => "links",
    };
    if let Some(whole) = map.get("graph").and_then(Value::as_object) {
        whole.keys().try_for_each(|key| refuse_of_graph(key)).map_err(|e| e.below("graph"))?;
    }
    let directed = flag(map, "directed")?.unwrap_or(false);
    let mut graph = Graph { simple: flag(map, "multigraph")? == Some(false), ..Graph::default() };
    for (i, node) in items(map, "nodes")?.iter().enumerate() {
        read_node(node, &mut graph).map_err(|e| e.below(&format!("nodes[{i}]")))?;
    }
    for (i, edge) in items(map, name)?.iter().enumerate() {
        let edge = read_edge(edge, directed, &mut graph, beside).map_err(|e| e.below(&format!("{name}[{i}]")))?;
        graph.edges.push(edge);
    }
    graph.build(name, beside)
}

/// Keys of node-link data, and the keys of `Defaults`.
const KEYS: [&str; 10] =
    ["directed", "multigraph", "graph", "nodes", "links", "edges", "capacity", "delay", "range", "hosts"];

fn flag(map: &Map<String, Value>, key: &str) -> Result<Option<bool>, InputError> {
    match map.get(key) {
        None => Ok(None),
        Some(Value::Bool(b)) => Ok(Some(*b)),
        Some(other) => {
            Err(InputError::new(key, format!("{} is neither true nor false", shown(other)), "give true or false"))
        }
    }
}

fn items<'a>(map: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], InputError> {
    let value = map.get(key).ok_or_else(|| {
        InputError::new(key, format!("the graph has no list of {key}"), "write it as networkx' node_link_data does")
    })?;
    list(value, key, &format!("\"{key}\": [...]")).map_err(|e| e.below(key))
}

/// A node's id as text. networkx keeps Python's type: a string or an integer.
fn name_of(map: &Map<String, Value>, key: &str) -> Result<String, InputError> {
    match map.get(key) {
        Some(Value::String(name)) => Ok(name.clone()),
        Some(Value::Number(n)) if n.is_i64() || n.is_u64() => Ok(n.to_string()),
        Some(other) => {
            let what = format!("{} is neither a string nor a whole number", shown(other));
            Err(InputError::new(key, what, "give the node's id"))
        }
        None => Err(InputError::new(key, format!("\"{key}\" is missing"), "give the node's id")),
    }
}

/// An error if `name`, an attribute of the whole graph, is one that each edge must have, such as `capacity`.
pub(super) fn refuse_of_graph(name: &str) -> Result<(), InputError> {
    refuse_other_name(name, |_| false)?;
    if !EDGE_KEYS.contains(&name) {
        return Ok(());
    }
    let hint = "give it to each edge; capacity and delay may stand beside the file, or beside the graph in Python";
    Err(InputError::new(name, format!("\"{name}\" is an attribute of edges, and the graph has it"), hint))
}

fn read_node(value: &Value, graph: &mut Graph) -> Result<(), InputError> {
    let map = table(value, "a node", "{\"id\": \"h0\"}")?;
    if let Some(slip) = map.keys().find(|key| *key != "kind" && key.to_lowercase() == "kind") {
        return Err(super::slip(slip, "kind"));
    }
    let kind = match (map.get("kind"), map.get("type")) {
        (Some(kind), _) => Some(kind_of(text(kind, "a node's kind").map_err(|e| e.below("kind"))?)?),
        // Other tools use `type` for other things, so that an unknown word is no error.
        (None, other) => other.and_then(Value::as_str).and_then(|word| kind_of(word).ok()),
    };
    map.keys().for_each(|name| graph.of_edges(name));
    if kind.is_none() {
        for (name, value) in map {
            let tells = match value {
                Value::String(word) => kind_of(&word.to_lowercase()).is_ok(),
                Value::Bool(_) => true,
                _ => false,
            };
            graph.other_of_node(name, tells)?;
        }
    }
    graph.node(name_of(map, "id")?, kind)
}

/// Parses "host" or "switch".
pub(super) fn kind_of(word: &str) -> Result<NodeKind, InputError> {
    match word {
        "host" => Ok(NodeKind::Host),
        "switch" => Ok(NodeKind::Switch),
        _ => Err(unknown_word(word, "kind of node", &["host", "switch"]).below("kind")),
    }
}

/// The id of an edge, if it has one.
fn id_of(map: &Map<String, Value>) -> Result<Option<String>, InputError> {
    match map.get("id") {
        None | Some(Value::Null) => Ok(None),
        Some(_) => name_of(map, "id").map(|id| Some(id).filter(|id| !id.is_empty())),
    }
}

/// Value of a Topology Zoo attribute, as text.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn read_edge(value: &Value, directed: bool, graph: &mut Graph, beside: &Defaults) -> Result<Edge, InputError> {
    let map = table(value, "an edge", "{\"source\": \"a\", \"target\": \"b\", \"capacity\": \"10Gbps\"}")?;
    let labels = zoo::KEYS.map(|key| map.get(key).and_then(as_text));
    let is_labelled = labels.iter().any(Option::is_some);
    let has = |own: &str| map.contains_key(own) || (own == "capacity" && is_labelled);
    for name in map.keys().filter(|name| !EDGE_KEYS.contains(&name.as_str()) && !zoo::KEYS.contains(&name.as_str())) {
        refuse_other_name(name, has)?;
        // "key" counts parallel edges. An undirected edge is two links, which one id cannot name.
        let is_read = ["source", "target", "key"].contains(&name.as_str()) || (name == "id" && directed);
        if !is_read && !graph.unread.contains(name) {
            graph.unread.insert(name.clone());
        }
    }
    let end = |key: &str| -> Result<NodeId, InputError> { graph.find(&name_of(map, key)?).map_err(|e| e.below(key)) };
    let (from, to) = (end("source")?, end("target")?);
    let [capacity, delay, buffer] = EDGE_KEYS.map(|key| map.get(key));
    Ok(Edge {
        from,
        to,
        directed,
        id: id_of(map)?,
        capacity_bps: graph.capacity(capacity, &labels, beside)?,
        delay_ns: delay.map_or(Ok(beside.delay_ns.unwrap_or(0)), ns_from_json).map_err(|e| e.below("delay"))?,
        buffer_bytes: buffer.map(positive_bytes_from_json).transpose().map_err(|e| e.below("buffer"))?,
    })
}
