//! Node-link JSON as networkx' `node_link_data` writes it.

use super::{Defaults, EDGE_KEYS, Edge, Graph, no_capacity, refuse_slip};
use crate::document::{check_keys, list, table, text, unknown_word};
use crate::quantity::{capacity_from_json, ns_from_json, positive_bytes_from_json, shown};
use crate::{Fault, Network, NodeId, NodeKind};
use serde_json::{Map, Value};

/// The network that `value` describes.
pub fn network(value: &Value) -> Result<Network, Fault> {
    network_with(value, Defaults::default())
}

/// As [`network`], with what edges have where they do not say.
pub fn network_with(value: &Value, defaults: Defaults) -> Result<Network, Fault> {
    let map = table(value, "a graph", "{\"nodes\": [...], \"links\": [...]}")?;
    check_keys(map, &["directed", "multigraph", "graph", "nodes", "links", "edges"])?;
    let name = match (map.get("links"), map.get("edges")) {
        (Some(_), Some(_)) => {
            return Err(Fault::new("edges", "the graph has both \"links\" and \"edges\"", "keep one of them"));
        }
        (None, Some(_)) => "edges",
        _ => "links",
    };
    let directed = flag(map, "directed")?.unwrap_or(false);
    let mut graph = Graph { simple: flag(map, "multigraph")? == Some(false), ..Graph::default() };
    for (i, node) in items(map, "nodes")?.iter().enumerate() {
        read_node(node, &mut graph).map_err(|e| e.below(&format!("nodes[{i}]")))?;
    }
    for (i, edge) in items(map, name)?.iter().enumerate() {
        let edge = read_edge(edge, directed, &graph, defaults).map_err(|e| e.below(&format!("{name}[{i}]")))?;
        graph.edges.push(edge);
    }
    graph.build(name)
}

fn flag(map: &Map<String, Value>, key: &str) -> Result<Option<bool>, Fault> {
    match map.get(key) {
        None => Ok(None),
        Some(Value::Bool(b)) => Ok(Some(*b)),
        Some(other) => {
            Err(Fault::new(key, format!("{} is neither true nor false", shown(other)), "give true or false"))
        }
    }
}

fn items<'a>(map: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], Fault> {
    let value = map.get(key).ok_or_else(|| {
        Fault::new(key, format!("the graph has no list of {key}"), "write it as networkx' node_link_data does")
    })?;
    list(value, key, &format!("\"{key}\": [...]")).map_err(|e| e.below(key))
}

/// networkx writes a node's id as it was in Python: text or a whole number.
fn name_of(map: &Map<String, Value>, key: &str) -> Result<String, Fault> {
    match map.get(key) {
        Some(Value::String(name)) => Ok(name.clone()),
        Some(Value::Number(n)) if n.is_i64() || n.is_u64() => Ok(n.to_string()),
        Some(other) => {
            let what = format!("{} is neither a string nor a whole number", shown(other));
            Err(Fault::new(key, what, "give the node's id"))
        }
        None => Err(Fault::new(key, format!("\"{key}\" is missing"), "give the node's id")),
    }
}

fn read_node(value: &Value, graph: &mut Graph) -> Result<(), Fault> {
    let map = table(value, "a node", "{\"id\": \"h0\"}")?;
    let kind = match (map.get("kind"), map.get("type")) {
        (Some(kind), _) => Some(kind_of(text(kind, "a node's kind").map_err(|e| e.below("kind"))?)?),
        // `type` means many things in other people's graphs.
        (None, other) => other.and_then(Value::as_str).and_then(|word| kind_of(word).ok()),
    };
    graph.node(name_of(map, "id")?, kind)
}

/// The kind called `word`.
pub(super) fn kind_of(word: &str) -> Result<NodeKind, Fault> {
    match word {
        "host" => Ok(NodeKind::Host),
        "switch" => Ok(NodeKind::Switch),
        _ => Err(unknown_word(word, "kind of node", &["host", "switch"]).below("kind")),
    }
}

fn read_edge(value: &Value, directed: bool, graph: &Graph, defaults: Defaults) -> Result<Edge, Fault> {
    let map = table(value, "an edge", "{\"source\": \"a\", \"target\": \"b\", \"capacity\": \"10Gbps\"}")?;
    map.keys().try_for_each(|key| refuse_slip(key))?;
    let end = |key: &str| -> Result<NodeId, Fault> { graph.find(&name_of(map, key)?).map_err(|e| e.below(key)) };
    let (from, to) = (end("source")?, end("target")?);
    let [capacity, delay, buffer] = EDGE_KEYS.map(|key| map.get(key));
    Ok(Edge {
        from,
        to,
        directed,
        capacity_bps: match (capacity, defaults.capacity_bps) {
            (Some(own), _) => capacity_from_json(own).map_err(|e| e.below("capacity"))?,
            (None, default) => default.ok_or_else(no_capacity)?,
        },
        delay_ns: delay.map_or(Ok(defaults.delay_ns.unwrap_or(0)), ns_from_json).map_err(|e| e.below("delay"))?,
        buffer_bytes: buffer.map(positive_bytes_from_json).transpose().map_err(|e| e.below("buffer"))?,
    })
}
